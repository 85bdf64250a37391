/* tests/unit/test_sandbox_host.c: what the probe says agrees with the machine, and
 * which bwrap is run is not for the caller's PATH to decide.
 */
#include "sandbox_test.h"

#include <sched.h>

#include "sandbox/host.h"
#include "sandbox/layer.h"

static void
probe_agrees_with_the_machine(void **state)
{
	struct kn_host h;
	struct kn_err e = { 0 };
	cpu_set_t set;

	(void)state;
	OK(kn_host_probe(&h, &e), e);
	assert_int_equal(h.uid, geteuid());
	assert_int_equal(h.gid, getegid());
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(h.cpus, CPU_COUNT(&set));
	assert_true(kn_host_memory() > 16 << 20);
	assert_true(kn_host_memory() <= (uint64_t)sysconf(_SC_PHYS_PAGES) *
					    (uint64_t)sysconf(_SC_PAGESIZE));
	if (h.root) {
		assert_int_equal(h.uid, 0);
		assert_true(h.worker_uid_base > 0);
		assert_true(h.worker_uid_n > 0);
	}
}

static void
affinity_bounds_the_cpus(void **state)
{
	struct kn_host h;
	struct kn_err e = { 0 };
	cpu_set_t before, one;
	int cpu = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	OK(kn_host_probe(&h, &e), e);
	assert_int_equal(h.cpus, 1);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void
bwrap_comes_from_the_variable_or_a_fixed_place(void **state)
{
	char dir[64], path[256] = "untouched";
	struct kn_err e = { 0 };

	(void)state;
	scratch_make(dir);
	write_file(join(dir, "bwrap"), "#!/bin/sh\n");
	/* Planted in PATH: never looked at. */
	char *old = strdup(getenv("PATH") ? getenv("PATH") : "");
	assert_int_equal(chmod(join(dir, "bwrap"), 0755), 0);
	setenv("PATH", dir, 1);
	if (kn_host_find_bwrap(path, sizeof(path), &e) == 0)
		assert_null(strstr(path, dir));
	else
		assert_non_null(strstr(e.hint, "bubblewrap"));
	setenv("PATH", old, 1);
	free(old);
	/* Named: used, if it can be. */
	setenv("KNIT_BWRAP", join(dir, "bwrap"), 1);
	OK(kn_host_find_bwrap(path, sizeof(path), &e), e);
	assert_string_equal(path, join(dir, "bwrap"));
	assert_int_equal(chmod(join(dir, "bwrap"), 0644), 0);
	assert_int_equal(kn_host_find_bwrap(path, sizeof(path), &e), -1);
	assert_int_equal(e.kind, KN_EK_USAGE);
	assert_non_null(strstr(e.msg, "KNIT_BWRAP"));
	assert_int_equal(chmod(join(dir, "bwrap"), 0777), 0);
	assert_int_equal(kn_host_find_bwrap(path, sizeof(path), &e), -1);
	assert_non_null(strstr(e.msg, "writable by everybody"));
	setenv("KNIT_BWRAP", "bwrap", 1);
	assert_int_equal(kn_host_find_bwrap(path, sizeof(path), &e), -1);
	assert_non_null(strstr(e.msg, "absolute"));
	setenv("KNIT_BWRAP", "/tmp", 1);
	assert_int_equal(kn_host_find_bwrap(path, sizeof(path), &e), -1);
	unsetenv("KNIT_BWRAP");
	scratch_remove(dir);
}

static void
layers_have_names_both_ways(void **state)
{
	(void)state;
	for (int i = 0; i < KN_LAYER_N; i++)
		assert_int_equal(kn_layer_by_name(kn_layer_name((enum kn_layer)i)), i);
	assert_int_equal(kn_layer_by_name("cgroup.memory"), KN_LAYER_CG_MEMORY);
	assert_int_equal(kn_layer_by_name("cgroup"), -1);
	assert_int_equal(kn_layer_by_name(NULL), -1);
	assert_string_equal(kn_layer_state_name(KN_LAYER_DEGRADED), "degraded");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe_agrees_with_the_machine),
		cmocka_unit_test(affinity_bounds_the_cpus),
		cmocka_unit_test(bwrap_comes_from_the_variable_or_a_fixed_place),
		cmocka_unit_test(layers_have_names_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
