/* tests/evil/main.c: the lying stub: who lies, when, and what lies are made of. */
#include "evil.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/bell.h"
#include "ipc/clock.h"
#include "ipc/control.h"
#include "sandbox/stub/sys.h"

/* Rewritten in the copy: the name, padded with '.', and whether each incarnation lies
 * ('*') or only the first ('1'). */
static const volatile char mode[] =
    "knit-evil-mode:1:none....................................";
enum { TIMES_AT = 15, NAME_AT = 17, NAME_MAX_N = 40 };

struct evil_hooks evil;

/* ---- what honest code calls ---- */

bool __real_kn_return_publish(struct kn_return_tx *r, const struct kn_slice *sl,
    const struct kn_slot_head *head, const void *inline_bytes);
bool __wrap_kn_return_publish(struct kn_return_tx *r, const struct kn_slice *sl,
    const struct kn_slot_head *head, const void *inline_bytes);
size_t __real_kn_job_result_encode(
    const struct kn_job_result *r, void *buf, size_t cap);
size_t __wrap_kn_job_result_encode(
    const struct kn_job_result *r, void *buf, size_t cap);
void __real_kn_control_begin(
    struct kn_control *c, uint32_t task, uint32_t gen, uint64_t now_ns);
void __wrap_kn_control_begin(
    struct kn_control *c, uint32_t task, uint32_t gen, uint64_t now_ns);
bool __real_kn_bell_ring(struct kn_control *c, int eventfd);
bool __wrap_kn_bell_ring(struct kn_control *c, int eventfd);
void __real_kn_control_ack_stop(struct kn_control *c);
void __wrap_kn_control_ack_stop(struct kn_control *c);

/* A slot that says whatever it likes, which ipc/lane.c would not write. */
static bool
publish_raw(struct kn_return_tx *r, const struct kn_slice *sl,
    const struct kn_slot_head *head, const void *bytes)
{
	uint32_t retired =
	    __atomic_load_n(&sl->control->return_retired, __ATOMIC_ACQUIRE);
	uint32_t busy = r->published ^ retired;
	unsigned slot = r->cursor % KN_SLOTS;

	if (busy == UINT32_MAX)
		return false;
	while (busy >> slot & 1)
		slot = (slot + 1) % KN_SLOTS;
	memcpy(sl->return_slots[slot].inline_bytes, bytes, KN_INLINE_MAX);
	memcpy(&sl->return_slots[slot].head, head, sizeof *head);
	r->published ^= 1u << slot;
	r->cursor = slot + 1;
	__atomic_store_n(
	    &sl->control->return_published, r->published, __ATOMIC_RELEASE);
	return true;
}

bool
__wrap_kn_return_publish(struct kn_return_tx *r, const struct kn_slice *sl,
    const struct kn_slot_head *head, const void *inline_bytes)
{
	uint8_t bytes[KN_INLINE_MAX] = { 0 };
	struct kn_slot_head h = *head;

	if (evil.no_result && h.kind == KN_REQ_EXEC)
		return true;
	if (!evil.head || h.kind == KN_REQ_PING)
		return __real_kn_return_publish(r, sl, head, inline_bytes);
	memcpy(bytes, inline_bytes, h.payload_len);
	evil.head(&h, bytes);
	return publish_raw(r, sl, &h, bytes);
}

size_t
__wrap_kn_job_result_encode(const struct kn_job_result *r, void *buf, size_t cap)
{
	struct kn_job_result other = *r;

	if (evil.result)
		evil.result(&other);
	return __real_kn_job_result_encode(&other, buf, cap);
}

void
__wrap_kn_control_begin(
    struct kn_control *c, uint32_t task, uint32_t gen, uint64_t now_ns)
{
	if (evil.begin)
		evil.begin(&task, &gen, &now_ns);
	__real_kn_control_begin(c, task, gen, now_ns);
}

bool
__wrap_kn_bell_ring(struct kn_control *c, int eventfd)
{
	return evil.no_ring ? false : __real_kn_bell_ring(c, eventfd);
}

void
__wrap_kn_control_ack_stop(struct kn_control *c)
{
	if (!evil.no_ack)
		__real_kn_control_ack_stop(c);
}

/* ---- what lies are made of ---- */

_Noreturn void
evil_sleep(void)
{
	for (;;)
		evil_pause_ms(1000000);
}

void
evil_pause_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	(void)kn_sys_ppoll(NULL, 0, &t);
}

uint32_t
evil_random(void)
{
	static uint64_t x;

	if (!x)
		x = kn_clock_now() | 1;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 16);
}

bool
evil_claim(struct kn_stub *s, struct kn_waiting *out_w, struct kn_slot_head *out)
{
	uint8_t bytes[KN_INLINE_MAX];

	*out_w = s->waiting[s->waiting_at];
	s->waiting_at = (s->waiting_at + 1) % KN_SLOTS;
	s->waiting_n--;
	return kn_submit_claim_task(
	    &s->slice, (int)out_w->slot, out_w->task, out_w->gen, out, bytes);
}

void
evil_answer(struct kn_slot_head *h, uint8_t bytes[KN_INLINE_MAX], uint32_t task,
    uint32_t gen, uint32_t file_n)
{
	struct kn_job_result r = { .begun_ns = kn_clock_now(), .file_n = file_n };

	r.ended_ns = r.begun_ns;
	*h = (struct kn_slot_head){
		.kind = KN_REQ_EXEC, .task = task, .gen = gen, .area = KN_AREA_INLINE
	};
	memset(bytes, 0, KN_INLINE_MAX);
	h->payload_len =
	    (uint32_t)__real_kn_job_result_encode(&r, bytes, KN_INLINE_MAX);
}

void
evil_ring(struct kn_stub *s)
{
	uint64_t one = 1;

	(void)kn_sys_write(s->bell, &one, sizeof one);
}

bool
evil_publish(struct kn_stub *s, const struct kn_slot_head *h, const void *bytes)
{
	bool fits = publish_raw(&s->tx, &s->slice, h, bytes);

	evil_ring(s);
	return fits;
}

int
evil_fork(void)
{
	struct clone_args a = { .exit_signal = SIGCHLD };

	return (int)KN_SYS2(SYS_clone3, &a, sizeof a);
}

/* ---- who lies, and when ---- */

static bool
is_called(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++)
		if (mode[NAME_AT + i] != name[i])
			return false;
	return mode[NAME_AT + n] == '.';
}

static const struct evil_lie *
chosen(void)
{
	static const struct evil_lie *const lists[] = { evil_lane_lies,
		evil_result_lies, evil_sock_lies, evil_memory_lies,
		evil_resident_lies };

	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
		for (const struct evil_lie *l = lists[i]; l->name; l++)
			if (is_called(l->name))
				return l;
	return NULL;
}

/* Answer the ping, and nothing else: what kn_serve() does with its first message. */
static void
become_ready(struct kn_stub *s)
{
	struct kn_waiting w = s->waiting[s->waiting_at];
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_slot_head h;

	s->waiting_at = (s->waiting_at + 1) % KN_SLOTS;
	s->waiting_n--;
	if (!kn_submit_claim_task(&s->slice, (int)w.slot, w.task, w.gen, &h, bytes))
		kn_serve_abandon(s);
	kn_serve_answer(s, &h, bytes);
}

static void
lie(struct kn_stub *s, const struct evil_lie *l)
{
	struct kn_order none = { KN_CAUSE_NONE, 0 };

	if (l->when == EVIL_SERVE) /* sets its hooks */
		l->tell(s);
	if (l->when == EVIL_TASK) {
		become_ready(s);
		while (s->waiting_n == 0 && !kn_serve_stopping(s))
			kn_serve_message(s, true, 0, 0, &none);
		if (s->waiting_n == 0)
			return;
	}
	if (l->when == EVIL_START || l->when == EVIL_TASK)
		l->tell(s);
	evil.no_ack |= l->when == EVIL_STOP && is_called("stop-ignored");
	kn_serve(s);
	if (l->when == EVIL_STOP)
		l->tell(s);
}

int
main(void)
{
	static struct kn_stub stub;
	struct kn_order none = { KN_CAUSE_NONE, 0 };
	const struct evil_lie *l = chosen();

	stub.sock = KN_STUB_SOCK_FD;
	if (!l || fcntl(stub.sock, F_SETFD, FD_CLOEXEC) < 0 ||
	    syscall(SYS_close_range, KN_STUB_EXE_FD + 1, ~0u, 0) < 0)
		return 1;
	if (kn_boot_stub(&stub) < 0)
		return 1;
	/* The first message is the ping, whose gen is the incarnation. */
	kn_serve_message(&stub, true, 0, 0, &none);
	if (stub.waiting_n == 0)
		kn_serve_abandon(&stub);
	if (stub.worker == 0 &&
	    (mode[TIMES_AT] == '*' || stub.waiting[stub.waiting_at].gen == 1))
		lie(&stub, l);
	else
		kn_serve(&stub);
	return 0;
}
