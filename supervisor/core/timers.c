/* supervisor/core/timers.c: an indexed binary heap; see timers.h. */
#include "supervisor/core/timers.h"

void
kn_timers_init(struct kn_timers *t, uint32_t id_n)
{
	t->heap_n = 0;
	t->id_n = id_n;
	for (uint32_t i = 0; i < id_n; i++) {
		t->due_ns[i] = 0;
		t->at[i] = 0;
		t->heap[i] = 0;
	}
}

static void
place(struct kn_timers *t, uint32_t at, uint32_t id)
{
	t->heap[at] = id;
	t->at[id] = at;
}

/* Ties go to the lower id, so that a run can be replayed. */
static bool
before(const struct kn_timers *t, uint32_t a, uint32_t b)
{
	if (t->due_ns[a] != t->due_ns[b])
		return t->due_ns[a] < t->due_ns[b];
	return a < b;
}

static void
sift_up(struct kn_timers *t, uint32_t at, uint32_t id)
{
	while (at > 0) {
		uint32_t up = (at - 1) / 2;
		if (!before(t, id, t->heap[up]))
			break;
		place(t, at, t->heap[up]);
		at = up;
	}
	place(t, at, id);
}

static void
sift_down(struct kn_timers *t, uint32_t at, uint32_t id)
{
	for (;;) {
		uint32_t kid = 2 * at + 1;
		if (kid >= t->heap_n)
			break;
		if (kid + 1 < t->heap_n && before(t, t->heap[kid + 1], t->heap[kid]))
			kid++;
		if (!before(t, t->heap[kid], id))
			break;
		place(t, at, t->heap[kid]);
		at = kid;
	}
	place(t, at, id);
}

static void
take_out(struct kn_timers *t, uint32_t id)
{
	uint32_t at = t->at[id];
	uint32_t last = t->heap[--t->heap_n];
	t->due_ns[id] = 0;
	if (last == id)
		return;
	if (at > 0 && before(t, last, t->heap[(at - 1) / 2]))
		sift_up(t, at, last);
	else
		sift_down(t, at, last);
}

void
kn_timers_set(struct kn_timers *t, uint32_t id, uint64_t due_ns)
{
	if (t->due_ns[id] == due_ns)
		return;
	if (t->due_ns[id] != 0)
		take_out(t, id);
	if (due_ns == 0)
		return;
	t->due_ns[id] = due_ns;
	sift_up(t, t->heap_n++, id);
}

uint64_t
kn_timers_next(const struct kn_timers *t)
{
	return t->heap_n > 0 ? t->due_ns[t->heap[0]] : 0;
}

bool
kn_timers_pop(struct kn_timers *t, uint64_t now_ns, uint32_t *out_id)
{
	if (t->heap_n == 0 || t->due_ns[t->heap[0]] > now_ns)
		return false;
	*out_id = t->heap[0];
	take_out(t, *out_id);
	return true;
}
