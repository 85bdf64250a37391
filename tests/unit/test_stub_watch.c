/* tests/unit/test_stub_watch.c: the exact look at a cell's memory outlasts nothing that
 * has to be done, and is not skipped for ever. /proc is a directory of ours here.
 */
#include "sandbox_test.h"

#include "ipc/clock.h"
#include "sandbox/stub/below.c"
#include "sandbox/stub/cgroup.c"
#include "sandbox/stub/look.c"
#include "sandbox/stub/spent.c"
#include "sandbox/stub/watch.c"

enum { INIT = 2, TASK = 7, MIB = 1 << 20 };

static struct kn_cg none; /* a machine without cgroups */

static char proc[64];

/* A process that statm says has so much, and a close look so much. */
static void
process(int pid, unsigned resident_mib, unsigned share_mib)
{
	char dir[96], text[256];

	snprintf(dir, sizeof dir, "%s/%d", proc, pid);
	(void)mkdir(dir, 0700);
	snprintf(text, sizeof text, "9999999 %u 0 1 0 56 0\n", resident_mib * 256);
	write_file(join(dir, "statm"), text);
	snprintf(text, sizeof text,
	    "Rss:  1 kB\nPss_Anon:  %u kB\nPss_File:  9999 kB\nPss_Shmem:  0 kB\n",
	    share_mib * 1024);
	write_file(join(dir, "smaps_rollup"), text);
}

static void
begin(struct kn_watch *w, uint32_t hard_ms)
{
	const struct kn_job_limits l = { .memory = 100 * MIB, .hard_ms = hard_ms };

	scratch_make(proc);
	*w = (struct kn_watch){ .cpus = 1 };
	w->proc_fd = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	kn_watch_begin(w, &none, &l, kn_clock_now());
	assert_true(w->next_ns != 0);
}

static enum kn_cause
look(struct kn_watch *w, uint64_t until_ns)
{
	const struct kn_watched cell = { INIT, 0, until_ns };

	w->memory_ns = w->next_ns = w->next_ns ? 1 : 0; /* it is time */
	return kn_watch_look(w, &none, &cell, kn_clock_now());
}

/* What comes of a look, in as many slices as this machine takes for it. */
static enum kn_cause
look_out(struct kn_watch *w)
{
	enum kn_cause cause = look(w, 0);

	for (int i = 0; i < 20 && cause == KN_CAUSE_NONE && w->exact.on; i++)
		cause = look(w, 0);
	return cause;
}

static void
end(struct kn_watch *w)
{
	close(w->proc_fd);
	scratch_remove(proc);
}

static void
shared_memory_counts_once(void **state)
{
	struct kn_watch w;

	(void)state;
	begin(&w, 0);
	process(INIT, 500, 500); /* its pages are the stub's */
	process(TASK, 80, 40);
	process(TASK + 1, 80, 40);
	assert_int_equal(look_out(&w), KN_CAUSE_NONE);
	assert_false(w.exact.on);
	process(TASK + 2, 80, 40);
	assert_int_equal(look_out(&w), KN_CAUSE_MEMORY);
	end(&w);
}

static void
a_close_look_leaves_time_for_the_deadline(void **state)
{
	struct kn_watch w;
	uint64_t now = kn_clock_now();

	(void)state;
	begin(&w, 10000);
	process(TASK, 200, 200);
	/* Nobody knows yet how long it takes, and the deadline is near. */
	assert_int_equal(look(&w, now + 100 * KN_MS_NS), KN_CAUSE_NONE);
	assert_true(w.exact.on);
	assert_int_equal(w.exact.after, 0);
	assert_true(w.next_ns != 0);		      /* it goes on */
	assert_int_equal(look(&w, 0), KN_CAUSE_NONE); /* in two parts: not yet */
	assert_int_equal(look(&w, 0), KN_CAUSE_MEMORY);
	end(&w);
}

static void
what_one_process_took_is_known_for_the_next(void **state)
{
	struct kn_watch w;

	(void)state;
	begin(&w, 10000);
	process(TASK, 200, 20);
	assert_int_equal(look(&w, 0), KN_CAUSE_NONE);
	assert_false(w.exact.on);
	assert_true(w.exact.known);
	w.exact.read_ns = 5000 * KN_MS_NS; /* as of one with many mappings */
	process(TASK, 200, 200);
	assert_int_equal(look(&w, kn_clock_now() + 4000 * KN_MS_NS), KN_CAUSE_NONE);
	assert_int_equal(w.exact.after, 0);
	assert_int_equal(look(&w, kn_clock_now() + 400000 * KN_MS_NS), KN_CAUSE_NONE);
	assert_int_equal(look(&w, kn_clock_now() + 400000 * KN_MS_NS), KN_CAUSE_MEMORY);
	end(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_memory_counts_once),
		cmocka_unit_test(a_close_look_leaves_time_for_the_deadline),
		cmocka_unit_test(what_one_process_took_is_known_for_the_next),
	};

	for (int i = 0; i < KN_BOOT_FD_N; i++)
		none.fd[i] = -1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
