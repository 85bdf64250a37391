/* tests/unit/test_ipc_bell.c: no wake is lost, and a burst costs one ring. */
#include "tests/unit/ipc_test.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "ipc/bell.h"
#include "ipc/lane.h"
#include "ipc/shm.h"

static struct kn_arena arena;
static struct kn_slice sl;
static int bell;

static int
start(void **state)
{
	(void)state;
	open_arena(&arena, 1, 4096);
	kn_arena_slice(&arena, 0, &sl);
	bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return bell < 0;
}

static int
stop(void **state)
{
	(void)state;
	pin(-1);
	kn_fd_close(&bell);
	kn_arena_close(&arena);
	return 0;
}

static uint64_t
drain(void)
{
	uint64_t n = 0;

	return read(bell, &n, sizeof n) == (ssize_t)sizeof n ? n : 0;
}

static void
an_unarmed_bell_costs_no_write(void **state)
{
	(void)state;
	assert_false(kn_bell_ring(sl.control, bell));
	assert_int_equal(drain(), 0);
	/* a descriptor that cannot be written shows that none was tried */
	assert_false(kn_bell_ring(sl.control, -1));
}

static void
a_burst_costs_one_ring(void **state)
{
	(void)state;
	kn_bell_arm(sl.control);
	assert_true(kn_bell_ring(sl.control, bell));
	assert_false(kn_bell_ring(sl.control, bell));
	assert_false(kn_bell_ring(sl.control, bell));
	assert_int_equal(drain(), 1);
	kn_bell_arm(sl.control);
	kn_bell_disarm(sl.control);
	assert_false(kn_bell_ring(sl.control, bell));
	assert_int_equal(drain(), 0);
}

static void
a_counter_that_is_full_still_wakes(void **state)
{
	uint64_t full = UINT64_MAX - 1;

	(void)state;
	assert_int_equal(write(bell, &full, sizeof full), sizeof full);
	kn_bell_arm(sl.control);
	assert_true(kn_bell_ring(sl.control, bell));
	assert_true(drain() > 0);
}

enum { ANSWERS = 20000 };

/* One answer at a time, each awaited before the next: a ring that comes too late would
 * otherwise be made good by the next one, and the loss not be seen. */
/* Both sides do, so that they meet at every point of the way to sleep. */
static void
dawdle(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	for (volatile uint32_t i = *seed >> 23; i; i--)
		;
}

static int
answer_and_ring(void *arg)
{
	struct kn_slot_head h = { .gen = 1, .area = KN_AREA_INLINE };
	struct kn_return_tx tx = { 0 };
	struct kn_slice mine;
	struct kn_map m;
	uint32_t seed = 1;
	int sealed;

	(void)arg;
	pin(1);
	if (kn_arena_map_slice(arena.fd, &arena.layout, pool_id, 0, &m, &sealed, NULL) <
	    0)
		return 1;
	kn_slice_at(m.p, &arena.layout, &mine);
	for (h.task = 0; h.task < ANSWERS; h.task++) {
		dawdle(&seed);
		while (!kn_return_publish(&tx, &mine, &h, NULL))
			sched_yield();
		kn_bell_ring(mine.control, bell);
		while (kn_shm_load32_acquire(&mine.control->return_retired) !=
		       tx.published)
			;
	}
	return 0;
}

static void
the_supervisor_never_sleeps_over_an_answer(void **state)
{
	struct pollfd pfd = { bell, POLLIN, 0 };
	struct kn_return_rx rx = { 0 };
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	pid_t pid = start_child(answer_and_ring, NULL);
	uint32_t next = 0, seed = 77;
	unsigned slept = 0;
	int status = 0;

	(void)state;
	pin(0);
	while (next < ANSWERS) {
		int slot;

		dawdle(&seed);
		slot = kn_return_peek(&rx, &sl, &h, in);
		if (slot < 0) {
			kn_bell_arm(sl.control);
			slot = kn_return_peek(&rx, &sl, &h, in);
		}
		if (slot < 0) {
			slept++;
			/* A lost wake would end in this time-out. */
			if (poll(&pfd, 1, 20000) != 1) {
				pid_t ended = waitpid(pid, &status, WNOHANG);

				fail_msg(
				    "slept over answer %u: armed %u, published %x, "
				    "retired %x, child %d %x",
				    next, sl.control->armed,
				    sl.control->return_published,
				    sl.control->return_retired, ended, status);
			}
			drain();
			kn_bell_disarm(sl.control);
			continue;
		}
		assert_int_equal(h.task, next++);
		kn_return_retire(&rx, &sl, slot);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	print_message("slept %u times\n", slept);
	assert_true(slept > 10);
}

int
main(void)
{
#define BELL(t) cmocka_unit_test_setup_teardown(t, start, stop)
	const struct CMUnitTest tests[] = {
		BELL(an_unarmed_bell_costs_no_write),
		BELL(a_burst_costs_one_ring),
		BELL(a_counter_that_is_full_still_wakes),
		BELL(the_supervisor_never_sleeps_over_an_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
