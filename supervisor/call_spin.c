/* supervisor/call_spin.c: waiting for the answer to a call without going to sleep.
 *
 * Worth it only while answers come within the time that a sleep would cost, from
 * another CPU: on the same one it keeps the worker from running, and never succeeds. So
 * it is left alone after a few failures, for longer each time.
 */
#include <sched.h>

#include "ipc/clock.h"
#include "ipc/park.h"
#include "sandbox/host.h"
#include "supervisor/inner.h"

enum {
	SPIN_NS = 50 * 1000,
	/* A long payload is copied on both sides: that is no pause. */
	BYTES_A_NS = 2,
	MORE_NS = 4 * 1000 * 1000,
	RECENT_NS = 100 * 1000,
	SPINS_A_LOOK = 64, /* at the clock */
	SPIN_FAILS = 4,
	NO_SPIN_MAX_SHIFT = 10,
	BURST = 8,
	FEW_LOOKS = 12, /* below a microsecond */
	YIELD_AT = 4,	/* calls under way */
	YIELDS = 3,
	LONG_YIELD_NS = 1000 * 1000,
	NO_YIELD_NS = 100 * 1000 * 1000,
};

/* few: so little is under way that the worker has most likely nothing else to write:
 * the line of the next answer is fetched beside the word that tells of it. */
static uint32_t
news(const struct kn_sup *s, bool few)
{
	uint32_t n = 0, m;

	for (uint32_t i = 0; i < s->worker_n; i++) {
		const struct kn_wk *w = &s->wk[i];

		if (!w->live || !kn_wk_owes(w))
			continue;
		if (few)
			kn_return_expect(&w->rx, &w->slice);
		m = kn_return_pending(&w->rx, &w->slice);
		if (few && m)
			kn_return_expect(&w->rx, &w->slice); /* it was the old one */
		n += (uint32_t)__builtin_popcount(m);
	}
	return n;
}

static void
pause_once(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* None of those that owe us something runs where we do, as far as is known. */
static bool
is_apart(const struct kn_sup *s)
{
	uint32_t here = (uint32_t)sched_getcpu() + 1;

	for (uint32_t i = 0; i < s->worker_n; i++) {
		const struct kn_wk *w = &s->wk[i];

		if (w->live && w->outstanding &&
		    kn_park_worker_cpu(w->slice.control) != here)
			return true;
	}
	return false;
}

/* On one CPU: it answers while we stand aside, and no bell has to ring for that, which
 * would cost two switches for each answer of many, and a look at all descriptors. Not
 * where others want the CPU too: they would come first. */
static bool
give_way(struct kn_sup *s, uint64_t began, int times)
{
	uint64_t now = began;

	for (int i = 0;; i++) {
		if (news(s, false) > 0) {
			s->round_ns = now;
			return true;
		}
		if (now - began > LONG_YIELD_NS)
			s->no_spin_ns = now + NO_YIELD_NS;
		if (now - began > LONG_YIELD_NS || i == times)
			return false;
		(void)sched_yield();
		now = kn_clock_now();
	}
}

static uint32_t
under_way(const struct kn_sup *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->worker_n; i++)
		n += s->wk[i].live ? s->wk[i].outstanding : 0;
	return n;
}

bool
kn_call_is_few(const struct kn_sup *s)
{
	return under_way(s) < 2 * BURST;
}

bool
kn_call_spin(struct kn_sup *s)
{
	uint32_t out = under_way(s), few = 0, shift, want;
	uint64_t now, end, more;
	bool is_hot;

	more =
	    s->long_bytes / BYTES_A_NS < MORE_NS ? s->long_bytes / BYTES_A_NS : MORE_NS;
	/* The first after a pause is slept for: who calls now and then is not served
	 * by a CPU that is kept busy, and both may be on one. */
	if (out == 0)
		return false;
	now = kn_clock_now();
	if (now < s->no_spin_ns)
		return false;
	is_hot = now - s->look_ns <= RECENT_NS + 2 * more;
	/* Of few calls the answer wakes us past whoever else wants this CPU; and to
	 * sleep is the one way of giving it up that every scheduler takes at once. But
	 * a worker with short turns (sandbox/stub/exec.c) most often comes when it is
	 * woken, or else now: then nobody has to sleep and be woken for its answer,
	 * which on an idle machine means on another CPU. */
	if (!is_apart(s))
		return give_way(s, now, out >= YIELD_AT ? YIELDS : 1);
	if (s->host->cpus < 2 || !is_hot)
		return false;
	want = out >= 2 * BURST ? BURST : 1;
	for (end = now + SPIN_NS + more; now < end; now = kn_clock_now()) {
		for (int i = 0; i < SPINS_A_LOOK; i++) {
			uint32_t n = news(s, want == 1);

			/* Of many a few are waited for: each look takes a line from
			 * the worker that is writing it. */
			if (n >= want || (n > 0 && ++few > FEW_LOOKS)) {
				s->spin_fails = 0;
				s->round_ns = now;
				return true;
			}
			pause_once();
		}
	}
	if (++s->spin_fails < SPIN_FAILS)
		return false;
	shift = s->spin_fails - SPIN_FAILS;
	shift = shift < NO_SPIN_MAX_SHIFT ? shift : NO_SPIN_MAX_SHIFT;
	s->no_spin_ns = now + (KN_MS_NS << shift);
	return false;
}

/* Who takes each result as it comes runs side by side with the worker for ever, each
 * waiting for the line that the other one has just written: half as many calls a
 * second. A microsecond behind it, bursts stay bursts. */
void
kn_call_gather(const struct kn_sup *s)
{
	if (kn_call_is_few(s) || !is_apart(s))
		return;
	for (int i = 0; i < FEW_LOOKS && news(s, false) < BURST; i++)
		pause_once();
}
