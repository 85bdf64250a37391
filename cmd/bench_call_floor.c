/* cmd/bench_call_floor.c: what a call is held against: two processes that share a page
 * and do nothing but hand something over.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/bench_call.h"
#include "ipc/clock.h"

enum { RING = 1024, BATCH = 32, SPINS_A_YIELD = 1 << 14 };

struct entry {
	_Alignas(64) uint64_t word[8];
};
/* Not the arena's words: a floor of its own, with the language's atomics. */
struct shared {
	_Alignas(64) atomic_uint ping;
	_Alignas(64) atomic_uint pong;
	_Alignas(64) atomic_uint head[2]; /* written by the producer of ring 0, 1 */
	_Alignas(64) atomic_uint back;
	struct entry ring[2][RING];
};

static void
pause_once(unsigned *spins)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
	/* With one CPU for both the other side has to get it. */
	if (++*spins % SPINS_A_YIELD == 0)
		sched_yield();
}

static void
await(atomic_uint *word, unsigned want)
{
	unsigned spins = 0;

	while (atomic_load_explicit(word, memory_order_acquire) != want)
		pause_once(&spins);
}

static void
pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	(void)sched_setaffinity(0, sizeof set, &set);
}

static struct shared *
begin(void (*child)(struct shared *s, unsigned n, unsigned arg), unsigned n,
    unsigned arg, pid_t *out_pid, struct kn_err *e)
{
	struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	pid_t pid;

	if (s == MAP_FAILED) {
		kn_err_sys(e, KN_EK_HOST, "map a page for two");
		return NULL;
	}
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		child(s, n, arg);
		_exit(0);
	}
	if (pid < 0) {
		kn_err_sys(e, KN_EK_HOST, "fork");
		munmap(s, sizeof *s);
		return NULL;
	}
	*out_pid = pid;
	return s;
}

static void
finish(struct shared *s, pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	munmap(s, sizeof *s);
}

/* ---- two atomics ---- */

static void
answer_spinning(struct shared *s, unsigned n, unsigned arg)
{
	(void)arg;
	for (unsigned i = 1; i <= n; i++) {
		await(&s->ping, i);
		atomic_store_explicit(&s->pong, i, memory_order_release);
	}
}

int
kn_bench_pingpong(unsigned n, struct kn_series *us, struct kn_err *e)
{
	pid_t pid;
	struct shared *s = begin(answer_spinning, n, 0, &pid, e);

	if (!s)
		return -1;
	for (unsigned i = 1; i <= n; i++) {
		uint64_t t0 = kn_clock_now();

		atomic_store_explicit(&s->ping, i, memory_order_release);
		await(&s->pong, i);
		kn_series_add(us, (double)(kn_clock_now() - t0) / 1e3);
	}
	finish(s, pid);
	return 0;
}

/* ---- two futexes ---- */

static void
sleep_until(atomic_uint *word, unsigned want)
{
	unsigned now;

	while ((now = atomic_load(word)) != want)
		(void)syscall(SYS_futex, word, FUTEX_WAIT, now, NULL, NULL, 0);
}

static void
tell(atomic_uint *word, unsigned v)
{
	atomic_store(word, v);
	(void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void
answer_sleeping(struct shared *s, unsigned n, unsigned one_cpu)
{
	pin(one_cpu ? 0 : 1);
	for (unsigned i = 1; i <= n; i++) {
		sleep_until(&s->ping, i);
		tell(&s->pong, i);
	}
}

int
kn_bench_futex(
    unsigned n, unsigned pace_ms, bool one_cpu, struct kn_series *us, struct kn_err *e)
{
	const struct timespec pace = { 0, (long)pace_ms * 1000000 };
	cpu_set_t was;
	pid_t pid;
	struct shared *s;

	if (sched_getaffinity(0, sizeof was, &was) < 0)
		return kn_err_sys(e, KN_EK_HOST, "read the CPUs");
	s = begin(answer_sleeping, n, one_cpu, &pid, e);
	if (!s)
		return -1;
	pin(0);
	for (unsigned i = 1; i <= n; i++) {
		uint64_t t0;

		nanosleep(&pace, NULL);
		t0 = kn_clock_now();
		tell(&s->ping, i);
		sleep_until(&s->pong, i);
		kn_series_add(us, (double)(kn_clock_now() - t0) / 1e3);
	}
	(void)sched_setaffinity(0, sizeof was, &was);
	finish(s, pid);
	return 0;
}

/* ---- a ring ---- */

/* Takes what is there, up to BATCH entries, and hands it back on the other ring. */
static void
answer_ring(struct shared *s, unsigned n, unsigned arg)
{
	unsigned done = 0, spins = 0;

	(void)arg;
	while (done < n) {
		unsigned head = atomic_load_explicit(&s->head[0], memory_order_acquire);
		unsigned k = head - done < BATCH ? head - done : BATCH;

		if (k == 0) {
			pause_once(&spins);
			continue;
		}
		for (unsigned i = 0; i < k; i++)
			s->ring[1][(done + i) % RING] = s->ring[0][(done + i) % RING];
		done += k;
		atomic_store_explicit(&s->back, done, memory_order_release);
	}
}

int
kn_bench_ring(unsigned n, unsigned depth, double *out_ms, struct kn_err *e)
{
	unsigned sent = 0, got = 0, spins = 0;
	uint64_t t0, sum = 0;
	pid_t pid;
	struct shared *s = begin(answer_ring, n, 0, &pid, e);

	if (!s)
		return -1;
	t0 = kn_clock_now();
	while (got < n) {
		unsigned back = atomic_load_explicit(&s->back, memory_order_acquire);
		unsigned room = depth - (sent - got), k = n - sent;

		for (; got < back; got++)
			sum += s->ring[1][got % RING].word[0];
		room = depth - (sent - got);
		k = k < room ? k : room;
		k = k < BATCH ? k : BATCH;
		if (k == 0) {
			pause_once(&spins);
			continue;
		}
		for (unsigned i = 0; i < k; i++)
			s->ring[0][(sent + i) % RING].word[0] = sent + i;
		sent += k;
		atomic_store_explicit(&s->head[0], sent, memory_order_release);
	}
	*out_ms = (double)(kn_clock_now() - t0) / 1e6;
	finish(s, pid);
	return sum == (uint64_t)n * (n - 1) / 2
		   ? 0
		   : kn_err_set(e, KN_EK_BUG, "the ring lost something");
}

double
kn_bench_copies_ms(size_t bytes, unsigned n)
{
	char *a = malloc(bytes), *c = malloc(bytes);
	double ms = -1;

	if (a && c) {
		uint64_t t0;

		memset(a, 1, bytes);
		memset(c, 2, bytes);
		t0 = kn_clock_now();
		for (unsigned i = 0; i < 3 * n; i++) {
			memcpy(i % 2 ? a : c, i % 2 ? c : a, bytes);
			__asm__ volatile("" ::: "memory");
		}
		ms = (double)(kn_clock_now() - t0) / 1e6;
	}
	free(a);
	free(c);
	return ms;
}
