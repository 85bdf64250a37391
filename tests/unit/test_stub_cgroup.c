/* What the stub writes to a worker's cgroup and how it reads the figures: files of both
 * cgroup versions, played by plain files. */
#include "tests/unit/ipc_test.h"

#include "ipc/clock.h"
#include "sandbox/stub/cgroup.c"

static int fd[KN_BOOT_FD_N];

static int
make_files(void **state)
{
	(void)state;
	for (int i = 0; i < KN_BOOT_FD_N; i++) {
		fd[i] =
		    i < KN_BOOT_FD_MEM_LIMIT ? -1 : memfd_create("file", MFD_CLOEXEC);
		assert_true(i < KN_BOOT_FD_MEM_LIMIT || fd[i] >= 0);
	}
	return 0;
}

static int
close_files(void **state)
{
	(void)state;
	for (int i = 0; i < KN_BOOT_FD_N; i++)
		kn_fd_close(&fd[i]);
	return 0;
}

static void
play(int i, const char *text)
{
	assert_int_equal(ftruncate(fd[i], 0), 0);
	assert_int_equal(pwrite(fd[i], text, strlen(text), 0), (ssize_t)strlen(text));
}

static const char *
shown(int i)
{
	static char buf[64];
	ssize_t n = pread(fd[i], buf, sizeof buf - 1, 0);

	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

static struct kn_boot
boot(uint32_t flags)
{
	return (struct kn_boot){ .flags = flags,
		.mem_overhead = 1000,
		.worker_mem = 1000000,
		.pids_overhead = 3 };
}

static void
limits_are_the_tasks_plus_ours_and_below_the_workers(void **state)
{
	struct kn_boot b = boot(0);
	struct kn_job_limits l = { .memory = 5000, .pids = 10 };
	const char *what = NULL;
	struct kn_cg g;

	(void)state;
	kn_cg_init(&g, &b, fd);
	assert_int_equal(kn_cg_begin(&g, &l, &what), 0);
	assert_string_equal(shown(KN_BOOT_FD_MEM_LIMIT), "6000");
	assert_string_equal(shown(KN_BOOT_FD_MEM_SWAP), "6000"); /* v1: with memory */
	assert_string_equal(shown(KN_BOOT_FD_PIDS_MAX), "13");
	/* Nothing asked, or more than the worker has: the worker's. */
	for (int i = KN_BOOT_FD_MEM_LIMIT; i < KN_BOOT_FD_N; i++)
		play(i, "");
	l.memory = 0;
	l.pids = 0;
	assert_int_equal(kn_cg_begin(&g, &l, &what), 0);
	assert_string_equal(shown(KN_BOOT_FD_MEM_LIMIT), "1001000");
	assert_string_equal(shown(KN_BOOT_FD_PIDS_MAX), "max");
	/* What stands already is not written again. */
	play(KN_BOOT_FD_MEM_LIMIT, "");
	l.memory = 2000000;
	assert_int_equal(kn_cg_begin(&g, &l, &what), 0);
	assert_string_equal(shown(KN_BOOT_FD_MEM_LIMIT), "");
}

static void
version_two_has_no_swap_and_says_max(void **state)
{
	struct kn_boot b = boot(KN_BOOT_CGROUP_V2_MEM | KN_BOOT_CGROUP_V2_CPU);
	struct kn_job_limits l = { .memory = 5000 };
	const char *what = NULL;
	struct kn_cg g;

	(void)state;
	b.worker_mem = 0;
	kn_cg_init(&g, &b, fd);
	assert_int_equal(kn_cg_begin(&g, &l, &what), 0);
	assert_string_equal(shown(KN_BOOT_FD_MEM_LIMIT), "6000");
	assert_string_equal(shown(KN_BOOT_FD_MEM_SWAP), "0");
	l.memory = 0;
	play(KN_BOOT_FD_MEM_LIMIT, "");
	assert_int_equal(kn_cg_begin(&g, &l, &what), 0);
	assert_string_equal(shown(KN_BOOT_FD_MEM_LIMIT), "max");
}

static void
a_refused_limit_is_an_error_with_its_name(void **state)
{
	struct kn_boot b = boot(0);
	struct kn_job_limits l = { .memory = 5000 };
	const char *what = NULL;
	struct kn_cg g;

	(void)state;
	kn_fd_close(&fd[KN_BOOT_FD_MEM_LIMIT]);
	fd[KN_BOOT_FD_MEM_LIMIT] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	kn_cg_init(&g, &b, fd);
	assert_true(kn_cg_begin(&g, &l, &what) < 0);
	assert_non_null(strstr(what, "memory"));
}

static void
figures_are_those_since_the_start(void **state)
{
	struct kn_boot b = boot(KN_BOOT_CGROUP_V2_CPU);
	struct kn_job_limits l = { 0 };
	struct kn_job_result r = { 0 };
	const char *what = NULL;
	struct kn_cg g;

	(void)state;
	kn_cg_init(&g, &b, fd);
	play(KN_BOOT_FD_MEM_EVENTS, "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
	play(KN_BOOT_FD_CPU_USAGE, "usage_usec 1000000\nuser_usec 5\nsystem_usec 6\n");
	play(KN_BOOT_FD_PIDS_PEAK, "5");
	assert_int_equal(kn_cg_begin(&g, &l, &what), 0);
	play(KN_BOOT_FD_MEM_PEAK, "70000"); /* the reset left "0" there */
	play(KN_BOOT_FD_MEM_EVENTS, "oom_kill_disable 0\nunder_oom 0\noom_kill 6\n");
	play(KN_BOOT_FD_CPU_USAGE, "usage_usec 9000000\nuser_usec 5\nsystem_usec 6\n");
	play(KN_BOOT_FD_PIDS_PEAK, "9");
	kn_cg_end(&g, &r);
	assert_int_equal(r.memory_peak, 70000);
	assert_int_equal(r.oom_kills, 2);
	assert_int_equal(r.pids_peak, 6); /* without our three */
	/* Eight seconds less what this test used since. */
	assert_in_range(kn_cg_cpu_ns(&g), 7 * KN_S_NS, 8 * KN_S_NS);
}

/* Page cache of earlier tasks was there at the start and went: the peak above it would
 * tell of a task that was killed far below its limit. */
static void
who_met_the_limit_had_all_of_it(void **state)
{
	struct kn_boot b = boot(0);
	struct kn_job_limits l = { .memory = 32000 };
	struct kn_job_result r = { 0 };
	const char *what = NULL;
	struct kn_cg g;

	(void)state;
	kn_cg_init(&g, &b, fd);
	play(KN_BOOT_FD_MEM_EVENTS, "oom_kill 0\n");
	assert_int_equal(kn_cg_begin(&g, &l, &what), 0);
	g.peak0 = 5000;
	play(KN_BOOT_FD_MEM_PEAK, "33000");
	kn_cg_end(&g, &r);
	assert_int_equal(r.memory_peak, 28000);
	play(KN_BOOT_FD_MEM_EVENTS, "oom_kill 1\n");
	kn_cg_end(&g, &r);
	assert_int_equal(r.memory_peak, 32000);
	play(KN_BOOT_FD_MEM_PEAK, "39000");
	kn_cg_end(&g, &r);
	assert_int_equal(r.memory_peak, 34000); /* more is told as it is */
}

/* One kill in a worker whose limit is 64 MiB. */
static uint32_t
outside(unsigned flags, const char *after, const char *peak)
{
	struct kn_boot b = boot(flags);
	struct kn_job_limits l = { .memory = 64 << 20 };
	struct kn_job_result r = { 0 };
	const char *what = NULL;
	struct kn_cg g;

	b.worker_mem = 0;
	kn_cg_init(&g, &b, fd);
	play(KN_BOOT_FD_MEM_EVENTS, "max 3\noom 1\noom_kill 1\noom_group_kill 0\n");
	assert_int_equal(kn_cg_begin(&g, &l, &what), 0);
	play(KN_BOOT_FD_MEM_EVENTS, after);
	play(KN_BOOT_FD_MEM_PEAK, peak);
	kn_cg_end(&g, &r);
	assert_int_equal(r.oom_kills, 1);
	return r.oom_outside;
}

static void
a_kill_at_no_limit_of_ours_is_told_apart(void **state)
{
	(void)state;
	assert_int_equal(
	    outside(KN_BOOT_CGROUP_V2_MEM, "max 9\noom 2\noom_kill 2\n", "67000000"),
	    0);
	assert_int_equal(
	    outside(KN_BOOT_CGROUP_V2_MEM, "max 3\noom 1\noom_kill 2\n", "30000000"),
	    1);
	assert_int_equal(outside(0, "under_oom 0\noom_kill 2\n", "67100000"), 0);
	assert_int_equal(outside(0, "under_oom 0\noom_kill 2\n", "30000000"), 1);
	/* What was swapped out counts, and is in no peak. */
	assert_int_equal(
	    outside(KN_BOOT_SWAP, "under_oom 0\noom_kill 2\n", "30000000"), 0);
	/* The peak cannot be had: a limit stands, and most kills are for limits. */
	assert_int_equal(outside(0, "under_oom 0\noom_kill 2\n", ""), 0);
}

static void
what_is_not_counted_here_reads_as_unknown(void **state)
{
	struct kn_boot b = boot(0);
	struct kn_job_limits l = { .memory = 5, .pids = 5 };
	struct kn_job_result r = { 0 };
	const char *what = NULL;
	int none[KN_BOOT_FD_N];
	struct kn_cg g;

	(void)state;
	for (int i = 0; i < KN_BOOT_FD_N; i++)
		none[i] = -1;
	kn_cg_init(&g, &b, none);
	assert_false(kn_cg_holds_memory(&g));
	assert_false(kn_cg_holds_pids(&g));
	assert_false(kn_cg_counts_cpu(&g));
	assert_int_equal(kn_cg_begin(&g, &l, &what), 0);
	kn_cg_end(&g, &r);
	assert_int_equal(r.memory_peak, 0);
	assert_int_equal(r.pids_peak, 0);
	assert_int_equal(r.oom_kills, 0);
	assert_int_equal(kn_cg_cpu_ns(&g), 0);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, make_files, close_files)
	const struct CMUnitTest tests[] = {
		T(limits_are_the_tasks_plus_ours_and_below_the_workers),
		T(version_two_has_no_swap_and_says_max),
		T(a_refused_limit_is_an_error_with_its_name),
		T(figures_are_those_since_the_start),
		T(who_met_the_limit_had_all_of_it),
		T(a_kill_at_no_limit_of_ours_is_told_apart),
		T(what_is_not_counted_here_reads_as_unknown),
	};

	return cmocka_run_group_tests_name("stub/cgroup", tests, NULL, NULL);
}
