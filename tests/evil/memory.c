/* tests/evil/memory.c: what it writes all over its slice, for seconds, while the
 * supervisor reads; and descriptors that are not what they are said to be. */
#include <string.h>
#include <sys/mman.h>

#include "evil.h"
#include "ipc/clock.h"
#include "ipc/control.h"
#include "sandbox/stub/sys.h"

enum { SCRIBBLE_MS = 3000, EATEN_BYTES = 256 << 20, FORKED = 200 };

static void
scribble(struct kn_stub *s, uint8_t *from, size_t bytes, unsigned rings)
{
	uint64_t until = kn_clock_after_ms(kn_clock_now(), SCRIBBLE_MS);
	uint32_t *words = (uint32_t *)(void *)from;
	size_t n = bytes / sizeof *words;

	do {
		for (int i = 0; i < 4096; i++)
			__atomic_store_n(
			    &words[evil_random() % n], evil_random(), __ATOMIC_RELAXED);
		if (rings && evil_random() % rings == 0)
			evil_ring(s);
	} while (kn_clock_now() < until);
	evil_sleep();
}

static uint8_t *
base(const struct kn_stub *s)
{
	return (uint8_t *)s->slice.control;
}

/* All of the slice. */
static void
scribble_all(struct kn_stub *s)
{
	scribble(s, base(s), s->slice_map.n, 50);
}

/* The words and the slots, where all that is read stands. */
static void
scribble_lanes(struct kn_stub *s)
{
	size_t n = (size_t)((uint8_t *)s->slice.return_slots - base(s)) +
		   KN_SLOTS * sizeof s->slice.return_slots[0];

	scribble(s, base(s), n, 50);
}

/* While it also serves: claims and answers go on in between. */
static void
scribble_slots(struct kn_stub *s)
{
	uint64_t until = kn_clock_after_ms(kn_clock_now(), SCRIBBLE_MS);
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_slot_head h;
	struct kn_waiting w;

	(void)evil_claim(s, &w, &h);
	evil_answer(&h, bytes, w.task, w.gen, 0);
	/* the same slot, true and false by turns, while it is being copied */
	do {
		struct kn_slot *slot = &s->slice.return_slots[evil_random() % KN_SLOTS];

		memcpy(slot->inline_bytes, bytes, sizeof bytes);
		slot->head = h;
		__atomic_store_n(&s->slice.control->return_published, evil_random(),
		    __ATOMIC_SEQ_CST);
		slot->head.payload_len = evil_random();
		slot->head.area = evil_random();
		slot->inline_bytes[evil_random() % KN_INLINE_MAX] ^= 0xff;
		evil_ring(s);
	} while (kn_clock_now() < until);
	evil_sleep();
}

/* Areas: given back twice, and before their time. */
static void
frees_all_areas(struct kn_stub *s)
{
	for (int i = 0; i < 3000; i++) {
		(void)__atomic_xor_fetch(
		    &s->slice.control->submit_freed, evil_random(), __ATOMIC_SEQ_CST);
		if (i % 10 == 0)
			evil_pause_ms(1);
	}
}

static void
frees_no_area(struct kn_stub *s)
{
	uint64_t until = kn_clock_after_ms(kn_clock_now(), SCRIBBLE_MS);
	struct kn_order none = { KN_CAUSE_NONE, 0 };

	while (kn_clock_now() < until && s->waiting_n < KN_SLOTS) {
		uint8_t bytes[KN_INLINE_MAX];
		struct kn_slot_head h;
		struct kn_waiting w;

		if (s->waiting_n == 0)
			kn_serve_message(s, true, 0, 0, &none);
		if (s->waiting_n == 0 || !evil_claim(s, &w, &h))
			continue;
		for (int i = 0; i < w.fd_n; i++)
			kn_sys_close(w.fds[i]);
		evil_answer(&h, bytes, w.task, w.gen, 0);
		(void)evil_publish(s, &h, bytes);
	}
}

/* More memory than a worker that runs nothing has any use for. */
static void
eats_memory(struct kn_stub *s)
{
	const size_t n = EATEN_BYTES;
	volatile char *p =
	    mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)s;
	for (size_t i = 0; p != MAP_FAILED && i < n; i += KN_PAGE)
		p[i] = 1;
	evil_sleep();
}

/* Processes of its own, all around the task that it does not run. */
static void
forks(struct kn_stub *s)
{
	(void)s;
	for (int i = 0; i < FORKED; i++)
		if (evil_fork() == 0)
			evil_sleep();
	evil_sleep();
}

/* A descriptor that tells of refused calls, and is none. The true one was sent with the
 * boot, which is when one may come. */
static void
listener_again(struct kn_stub *s)
{
	const struct kn_msg m = { .type = KN_MSG_LISTENER };

	(void)kn_fd_send(s->sock, &m, sizeof m, &s->told_fd, 1, 0);
}

const struct evil_lie evil_memory_lies[] = {
	{ "listener-again", EVIL_START, listener_again },
	{ "listener-late", EVIL_TASK, listener_again },
	{ "scribbles-over-all", EVIL_TASK, scribble_all },
	{ "scribbles-over-lanes", EVIL_TASK, scribble_lanes },
	{ "scribbles-over-answers", EVIL_TASK, scribble_slots },
	{ "frees-all-areas", EVIL_TASK, frees_all_areas },
	{ "frees-no-area", EVIL_TASK, frees_no_area },
	{ "eats-memory", EVIL_TASK, eats_memory },
	{ "forks", EVIL_TASK, forks },
	{ NULL, EVIL_START, NULL },
};
