/* supervisor/call_spin.c: waiting for the answer to a call without going to sleep.
 *
 * Worth it only while answers come within the time that a sleep would cost, from
 * another CPU: on the same one it keeps the worker from running, and never succeeds. So
 * it is left alone after a few failures, for longer each time.
 */
#include "ipc/clock.h"
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
};

static bool
has_news(const struct kn_sup *s)
{
	for (uint32_t i = 0; i < s->worker_n; i++) {
		const struct kn_wk *w = &s->wk[i];

		if (w->live && kn_wk_owes(w) && kn_return_pending(&w->rx, &w->slice))
			return true;
	}
	return false;
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

bool
kn_call_spin(struct kn_sup *s)
{
	uint64_t now, end;
	uint32_t out = 0, shift;
	uint64_t more;

	for (uint32_t i = 0; i < s->worker_n; i++)
		out += s->wk[i].live ? s->wk[i].outstanding : 0;
	now = s->round_ns;
	more =
	    s->long_bytes / BYTES_A_NS < MORE_NS ? s->long_bytes / BYTES_A_NS : MORE_NS;
	/* The first after a pause is slept for: who calls now and then is not served
	 * by a CPU that is kept busy, and both may be on one. */
	if (out == 0 || s->host->cpus < 2 || now < s->no_spin_ns ||
	    now - s->look_ns > RECENT_NS + 2 * more)
		return false;
	for (end = now + SPIN_NS + more; now < end; now = kn_clock_now()) {
		for (int i = 0; i < SPINS_A_LOOK; i++) {
			if (has_news(s)) {
				s->spin_fails = 0;
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
