/* sandbox/module/serve.c: claim, run, answer, sleep, stop.
 *
 * Short calls are claimed several at a time, which saves an exchange of cache lines for
 * each; long ones singly, so that what another worker could do does not wait here. The
 * begun word says at every moment which of them runs: if the process dies, that one is
 * answered for, and the others go to another worker.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "ipc/bell.h"
#include "ipc/clock.h"
#include "ipc/control.h"
#include "ipc/park.h"
#include "ipc/shm.h"
#include "sandbox/module/module.h"

enum {
	BATCH_NS = 20 * 1000, /* of work claimed at once, as far as can be told */
	COLD_NS = 200 * 1000, /* a wait that long is a pause */
	BYTES_A_NS = 2,	      /* copied, about */
	LONG_NS = 4000 * 1000,
	SPINS_A_LOOK = 64, /* at the clock and the stop word */
	ROOM_SPINS = 1000, /* before sleeping for room */
	ROOM_SLEEP_NS = 1000 * 1000,
	NEAR_NS = 50 * 1000,	  /* a call that takes longer is no reason to move */
	HEAVY_MIN_NS = 16 * 1000, /* of copying, both ways: 16 KiB each */
	HEAVY_MAX_NS = 300 * 1000,
	NEAR_AFTER = 3,	   /* pauses in a row */
	PLACES = 64,	   /* so often the CPUs that we may use are taken as known */
	TOGETHER_MIN = 16, /* calls that were answered on the caller's CPU, and then */
	TOGETHER_MAX = 1024,  /* another is tried; more of them each time */
	KEEP_BYTES = 1 << 20, /* of the return area, however long nothing is done */
};
/* Idle for so long, the pages of long results go back. */
#define IDLE_NS KN_S_NS

void
kn_mod_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* ---- answers ---- */

static void
ring(struct kn_mod *m)
{
	errno = 0;
	/* A task that closed it harms itself: nobody would hear of its results. */
	if (!kn_bell_ring(m->slice.control, m->bell) && errno != 0)
		kn_mod_die("the doorbell is gone: a task closed a descriptor that it "
			   "did not open");
}

/* A stop comes to a lane of our own when every call of it has been answered, so that
 * nobody waits for this result. To who claims from a bank it may come at any time, and
 * what is claimed is run to the end: the supervisor reads on, and if it does not, it is
 * not for us to say that the call ended. */
static void
end_when_told(struct kn_mod *m)
{
	if (m->claimant || !kn_control_stopping(m->slice.control))
		return;
	kn_control_ack_stop(m->slice.control);
	exit(0);
}

void
kn_mod_wait_for_room(struct kn_mod *m, unsigned round)
{
	const struct timespec t = { 0, ROOM_SLEEP_NS };

	m->waited = true;
	if (round < ROOM_SPINS) {
		kn_mod_pause();
		return;
	}
	if (round == ROOM_SPINS)
		ring(m);
	end_when_told(m);
	(void)nanosleep(&t, NULL);
}

void
kn_mod_publish(
    struct kn_mod *m, const struct kn_slot_head *head, const void *inline_bytes)
{
	for (unsigned round = 0;
	     !kn_return_publish(&m->tx, &m->slice, head, inline_bytes); round++)
		kn_mod_wait_for_room(m, round);
	ring(m);
}

/* ---- one call ---- */

static void
echo_and_tell(struct kn_mod *m, const struct kn_slot *slot)
{
	struct kn_slot_head h = slot->head;
	char bytes[KN_INLINE_MAX];
	size_t n = h.payload_len;

	memcpy(bytes, slot->inline_bytes, n);
	kn_mod_tell(m, bytes + n, sizeof bytes - n);
	h.payload_len += (uint32_t)strnlen(bytes + n, sizeof bytes - n);
	kn_mod_publish(m, &h, bytes);
}

static void
answer_ping(struct kn_mod *m, const struct kn_slot *slot, uint64_t now_ns)
{
	struct knit_call *call = &m->call;

	if (m->failed) {
		call->head = &slot->head;
		call->begun_ns = now_ns;
		kn_mod_answer_error(m, call, &m->load_error, 0, now_ns);
		return;
	}
	if (slot->head.area != KN_AREA_INLINE ||
	    slot->head.payload_len >= KN_INLINE_MAX)
		kn_mod_die("a ping that is no ping");
	if (slot->head.flags & KN_PING_TELL)
		echo_and_tell(m, slot);
	else
		kn_mod_publish(m, &slot->head, slot->inline_bytes);
	m->greeted = m->claimant != NULL;
}

/* Where the payload lies; the supervisor is whom we take orders from, but a number out
 * of range would only crash later. */
static const uint8_t *
payload_of(struct kn_mod *m, const struct kn_slot *slot)
{
	const struct kn_slot_head *h = &slot->head;
	uint64_t max = m->area_bytes;

	if (h->name_n > h->payload_len)
		kn_mod_die("a call's name is longer than the call");
	if (h->area == KN_AREA_INLINE) {
		if (h->payload_len > KN_INLINE_MAX)
			kn_mod_die("an inline payload that is too long");
		return slot->inline_bytes;
	}
	if (h->area >= KN_AREAS || h->payload_off > max ||
	    h->payload_len > max - h->payload_off)
		kn_mod_die("a payload outside of the area");
	return m->area + h->payload_off;
}

static void
refuse(struct kn_mod *m, struct knit_call *call, uint64_t now_ns)
{
	char list[KN_CALL_ERROR_TEXT / 2];
	struct kn_mod_error *e = &call->error;

	if (m->failed) {
		kn_mod_answer_error(m, call, &m->load_error, 0, now_ns);
		return;
	}
	kn_mod_list(m, list, sizeof list);
	kn_mod_error_set(e, "NotFoundError", "the module exports no task %s; it has %s",
	    call->fn ? call->fn->name : "of that number", list[0] ? list : "none");
	kn_mod_answer_error(m, call, e, KN_CALL_NOT_FOUND, now_ns);
}

/* What came of it: a value, or an error if the task says so or set no whole result. */
static void
settle(struct kn_mod *m, struct knit_call *call, int r, uint64_t ended_ns)
{
	struct kn_mod_error *e = &call->error;

	if (r == 0 && !call->spoilt && !call->reserved) {
		kn_mod_answer_value(m, call, ended_ns);
		return;
	}
	if (r == 0 && !call->spoilt)
		kn_mod_error_set(e, "ResultError",
		    "task %s reserved a result and did not commit it", call->fn->name);
	else if (e->e.n == 0)
		kn_mod_error_set(e, "Error", "task %s returned %d", call->fn->name, r);
	kn_mod_result_clear(m, call);
	kn_mod_answer_error(m, call, e, 0, ended_ns);
}

/* What knit_aborted() looks at: a thread that a call has left behind goes on asking,
 * and what it is told between two calls, or of the one before, is not the next one's.
 */
static void
begin_turn(struct kn_mod_abort *a, uint32_t id, uint64_t give_up_ns)
{
	kn_shm_store32_release(&a->abort_id, id);	    /* U1 */
	kn_shm_store64_release(&a->give_up_ns, give_up_ns); /* U1 */
	kn_shm_store64_release(&a->turn, a->turn + 1);	    /* U1 */
}

static void
end_turn(struct kn_mod_abort *a)
{
	kn_shm_store32_release(&a->abort_id, KN_NO_ABORT); /* U1 */
	kn_shm_store64_release(&a->give_up_ns, 0);	   /* U1 */
}

static uint64_t
run_call(struct kn_mod *m, const struct kn_slot *slot, uint64_t now_ns)
{
	const struct kn_slot_head *h = &slot->head;
	struct knit_call *call = &m->call;
	uint64_t ended_ns;
	int r = -1;

	call->head = h;
	call->arg = payload_of(m, slot);
	call->arg_n = h->payload_len - h->name_n;
	call->begun_ns = now_ns;
	call->fn = m->failed ? NULL : kn_mod_find(m, h, call->arg);
	begin_turn(&m->abort, h->abort, kn_clock_after_ms(now_ns, h->soft_ms));
	if (call->fn && call->fn->run)
		r = call->fn->run(call);
	ended_ns = kn_clock_now();
	end_turn(&m->abort);
	m->long_ns = (call->arg_n + call->n) / BYTES_A_NS;
	if (m->long_ns > LONG_NS)
		m->long_ns = LONG_NS;
	if (h->area != KN_AREA_INLINE && m->area == m->slice.submit_area)
		kn_payload_free(&m->slice.control->submit_freed, (int)h->area);
	else if (h->area != KN_AREA_INLINE)
		kn_claim_free(m->claimant, h->area);
	m->waited = false;
	if (call->fn && call->fn->run)
		settle(m, call, r, ended_ns);
	else
		refuse(m, call, ended_ns);
	kn_mod_call_clear(call);
	return m->waited ? kn_clock_now() : ended_ns;
}

/* Returns when it was over: that is when the next one of a batch begins. */
static uint64_t
serve_one(struct kn_mod *m, const struct kn_slot *slot, uint64_t now_ns)
{
	kn_control_begin(m->slice.control, slot->head.task, slot->head.gen, now_ns);
	if (slot->head.kind == KN_REQ_CALL)
		return run_call(m, slot, now_ns);
	if (slot->head.kind != KN_REQ_PING)
		kn_mod_die("a request of an unknown kind");
	answer_ping(m, slot, now_ns);
	return kn_clock_now();
}

/* ---- the loop ---- */

/* By the worst of late: one long call is enough to become careful, several short ones
 * to become bold again. */
static void
learn(struct kn_mod *m, uint64_t took_ns)
{
	if (took_ns >= m->usual_ns)
		m->usual_ns = took_ns;
	else
		m->usual_ns -= (m->usual_ns - took_ns + 7) / 8;
}

unsigned
kn_mod_batch_size(const struct kn_mod *m)
{
	uint64_t n = BATCH_NS / (m->usual_ns + 1);

	if (n < 1)
		return 1;
	return n < KN_SLOTS ? (unsigned)n : KN_SLOTS;
}

uint64_t
kn_mod_serve_one(struct kn_mod *m, const struct kn_slot *slot, uint64_t now_ns)
{
	uint64_t over = serve_one(m, slot, now_ns);

	learn(m, over - now_ns);
	return over;
}

/* Ends with work, and the time it has just read, or with neither. */
static void
spin(struct kn_mod *m)
{
	struct kn_control *c = m->slice.control;
	uint64_t now = kn_clock_now(), until;

	if (m->record.spin_us == 0)
		return;
	/* Our only caller copies long payloads before he comes again. */
	until = now + 1000ull * m->record.spin_us + m->long_ns;
	do {
		for (int i = 0; i < SPINS_A_LOOK; i++) {
			kn_submit_expect(&m->slice, m->cursor);
			if (kn_submit_pending(&m->slice)) {
				m->spun_ns = now;
				return;
			}
			kn_mod_pause();
		}
		now = kn_clock_now();
	} while (now < until && !kn_control_stopping(c));
}

/* ---- where it sleeps ---- */

static void
tell_cpu(struct kn_mod *m)
{
	int cpu = sched_getcpu();

	if (cpu == m->cpu)
		return;
	m->cpu = cpu;
	kn_park_worker_is_on(m->slice.control, cpu < 0 ? 0 : (uint32_t)cpu + 1);
}

/* Whoever spins on the CPU that the other side needs keeps it from calling again: it
 * did not have to sleep for the answer, where we came before it. */
static bool
is_apart(const struct kn_mod *m)
{
	uint32_t host = kn_park_host_cpu(m->slice.control);

	return host == 0 || (int)host - 1 != sched_getcpu();
}

/* What he hands over lies in the cache of his CPU, and our answer will be read there.
 * Short of that a switch costs less than to fetch the bytes from one CPU to the other,
 * twice; beyond it neither cache holds them. Of several calls each side would be idle
 * while the other one copies. */
static bool
is_heavy(const struct kn_mod *m)
{
	return m->record.may_place && m->single && m->long_ns >= HEAVY_MIN_NS &&
	       m->long_ns <= HEAVY_MAX_NS && m->usual_ns < NEAR_NS + m->long_ns;
}

/* Those that we may run on: asked for now and then. */
static bool
know_cpus(struct kn_mod *m)
{
	if (m->places % PLACES == 0 &&
	    sched_getaffinity(0, sizeof m->cpus, &m->cpus) < 0)
		return false;
	m->places++;
	return true;
}

/* To wake a CPU that idles takes longer than all else of a short call. So who is called
 * now and then, and briefly, sleeps where his caller is awake at that moment, and runs
 * wherever the machine likes: that a call is a long one is only known afterwards. */
static void
go_near(struct kn_mod *m)
{
	uint32_t host = kn_park_host_cpu(m->slice.control);
	cpu_set_t one;

	if (!m->record.may_place ||
	    (!is_heavy(m) && (m->pauses < NEAR_AFTER || m->usual_ns > NEAR_NS)) ||
	    !know_cpus(m) || host == 0 || host > CPU_SETSIZE ||
	    !CPU_ISSET(host - 1, &m->cpus))
		return;
	CPU_ZERO(&one);
	CPU_SET(host - 1, &one);
	m->near = sched_setaffinity(0, sizeof one, &one) == 0;
}

/* One call after the other is answered soonest by who runs and waits on another CPU.
 * Where that is idle, the kernel puts us there when we are woken; where it is kept busy
 * by what matters less, it does not, as long as each of us sleeps while the other one
 * runs. So it is tried now and then; the kernel may take us back. */
static void
go_apart(struct kn_mod *m)
{
	uint32_t host = kn_park_host_cpu(m->slice.control);
	cpu_set_t others;

	if (!m->record.may_place || !m->record.spin_us || ++m->together < m->apart_at)
		return;
	m->together = 0;
	m->apart_at = m->apart_at < TOGETHER_MAX ? 2 * m->apart_at : TOGETHER_MAX;
	if (!know_cpus(m) || host == 0 || host > CPU_SETSIZE)
		return;
	others = m->cpus;
	CPU_CLR(host - 1, &others);
	if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
		(void)sched_setaffinity(0, sizeof m->cpus, &m->cpus);
}

static void
go_free(struct kn_mod *m)
{
	if (m->near)
		(void)sched_setaffinity(0, sizeof m->cpus, &m->cpus);
	m->near = false;
}

/* Our results only: of the submit area the supervisor knows what is free. Later, where
 * it still reads one of them. */
static void
give_pages_back(struct kn_mod *m)
{
	uint64_t n = kn_payload_idle(&m->pay, &m->slice.control->return_freed);

	if (n > KEEP_BYTES)
		(void)madvise(
		    m->slice.return_area + KEEP_BYTES, n - KEEP_BYTES, MADV_REMOVE);
}

void
kn_mod_park(struct kn_mod *m, uint32_t seen)
{
	if (m->pay.high <= KEEP_BYTES)
		kn_park(m->slice.control, seen);
	else if (!kn_park_for(m->slice.control, seen, IDLE_NS))
		give_pages_back(m);
}

static void
wait_for_work(struct kn_mod *m)
{
	struct kn_control *c = m->slice.control;
	uint64_t since = kn_clock_now();
	uint32_t seen;

	m->spun_ns = 0;
	/* Who calls now and then is not served by a CPU that is kept busy: it may be
	 * the one that has to hear of the answer. */
	if (m->pauses == 0 && !is_heavy(m)) {
		if (!is_apart(m))
			go_apart(m);
		if (is_apart(m))
			spin(m);
	}
	if (kn_submit_pending(&m->slice)) {
		m->pauses = 0;
		return;
	}
	go_near(m);
	seen = kn_park_begin(c);
	if (kn_submit_pending(&m->slice) || kn_control_stopping(c))
		kn_park_end(c);
	else
		kn_mod_park(m, seen);
	go_free(m);
	if (kn_clock_now() - since <= COLD_NS + 2 * m->long_ns)
		m->pauses = 0;
	else if (m->pauses < NEAR_AFTER)
		m->pauses++;
}

void
kn_mod_serve(struct kn_mod *m)
{
	struct kn_control *c = m->slice.control;

	m->call.area = -1;
	m->usual_ns = BATCH_NS;
	m->cpu = -1;
	m->apart_at = TOGETHER_MIN;
	while (!kn_control_stopping(c) && !m->greeted) {
		int n = kn_submit_claim_many(
		    &m->slice, &m->cursor, kn_mod_batch_size(m), m->batch);
		uint64_t now;

		if (n == 0) {
			wait_for_work(m);
			continue;
		}
		tell_cpu(m);
		m->single = n == 1;
		/* After a spin the last look at the clock will do: a microsecond ago.
		 */
		now = m->spun_ns ? m->spun_ns : kn_clock_now();
		m->spun_ns = 0;
		for (int i = 0; i < n; i++)
			now = kn_mod_serve_one(m, &m->batch[i], now);
		kn_control_end(c);
	}
	if (m->greeted)
		kn_mod_serve_shared(m);
	kn_control_ack_stop(c);
}
