/* tests/unit/test_sandbox_delegated.c: what is missing of a delegation has a name. The
 * directories here are ordinary ones with the files that are looked at.
 */
#include "sandbox_test.h"

#include "sandbox/cgroup.h"
#include "sandbox/cgroup_delegated.h"
#include "sandbox/cgroup_find.h"
#include "sandbox/cgroup_tree.h"

static char dir[64];

static int
make_group(void **state)
{
	(void)state;
	scratch_make(dir);
	write_file(join(dir, "cgroup.procs"), "1\n");
	write_file(join(dir, "cgroup.subtree_control"), "\n");
	write_file(join(dir, "cgroup.controllers"), "cpu memory pids\n");
	return 0;
}

static int
remove_group(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

static struct kn_cgroup_where
only_v2(void)
{
	struct kn_cgroup_where w = { 0 };

	snprintf(w.unified.dir, sizeof w.unified.dir, "%s", dir);
	return w;
}

static void
refused(const struct kn_cgroup_where *w, const char *why)
{
	struct kn_err e = { 0 };

	assert_int_equal(kn_cgroup_delegated_at(w, &e), -1);
	assert_int_equal(e.kind, KN_EK_HOST);
	if (strstr(e.msg, why) == NULL)
		fail_msg("says \"%s\" without \"%s\"", e.msg, why);
}

static void
v2_group_with_all_is_taken(void **state)
{
	struct kn_cgroup_where w = only_v2();
	struct kn_err e = { 0 };

	(void)state;
	OK(kn_cgroup_delegated_at(&w, &e), e);
}

static void
missing_controllers_are_named(void **state)
{
	struct kn_cgroup_where w = only_v2();

	(void)state;
	write_file(join(dir, "cgroup.controllers"), "cpu pids\n");
	refused(&w, "controllers missing: memory (there are: cpu pids)");
	write_file(join(dir, "cgroup.controllers"), "hugememory pidsx\n");
	refused(&w, "controllers missing: memory, pids");
	write_file(join(dir, "cgroup.controllers"), "\n");
	refused(&w, "there are: none");
}

static void
files_that_are_not_ours_are_named(void **state)
{
	struct kn_cgroup_where w = only_v2();

	(void)state;
	unlink(join(dir, "cgroup.subtree_control"));
	refused(&w, "cgroup.subtree_control may not be written: No such file");
	unlink(join(dir, "cgroup.procs"));
	refused(&w, "cgroup.procs may not be written");
	snprintf(w.unified.dir, sizeof w.unified.dir, "/proc/self");
	refused(&w, "cgroup /proc/self:");
}

static void
no_hierarchy_at_all_is_said(void **state)
{
	const struct kn_cgroup_where w = { 0 };

	(void)state;
	refused(&w, "no cgroup hierarchy");
}

static void
controllers_of_v1_need_no_v2(void **state)
{
	struct kn_cgroup_where w = { 0 };
	struct kn_err e = { 0 };

	(void)state;
	snprintf(w.memory.dir, sizeof w.memory.dir, "%s", dir);
	refused(&w, "no cgroup hierarchy"); /* pids is looked for in v2 */
	snprintf(w.pids.dir, sizeof w.pids.dir, "%s", dir);
	OK(kn_cgroup_delegated_at(&w, &e), e);
	snprintf(w.pids.dir, sizeof w.pids.dir, "%s/none", dir);
	refused(&w, "may not be written");
}

/* memory.memsw is not on every v1 machine, and a group takes its swappiness from the
 * one above it when it is made. */
static void
a_worker_s_group_of_v1_does_not_swap(void **state)
{
	struct kn_cgroup *g = NULL;
	struct kn_err e = { 0 };
	int fds[KN_CGROUP_TREES_MAX];
	unsigned seen = 0;

	(void)state;
	for (uint32_t workers = 1; workers <= 2; workers++) {
		OK(kn_cgroup_open(test_pool_id, workers, &g, &e), e);
		OK(kn_cgroup_prepare(g, 0, 16 << 20, 0, &e), e);
		size_t n = kn_cgroup_join_fds(g, 0, fds, KN_CGROUP_TREES_MAX);
		for (size_t i = 0; i < n; i++) {
			char link[64], path[512], text[8] = "";
			ssize_t len;
			int fd;

			snprintf(link, sizeof link, "/proc/self/fd/%d", fds[i]);
			len = readlink(link, path, sizeof path - 32);
			assert_true(len > 0);
			path[len] = '\0';
			memcpy(strrchr(path, '/') + 1, "memory.swappiness", 18);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd < 0)
				continue;
			assert_true(read(fd, text, sizeof text - 1) > 0);
			assert_string_equal(text, "0\n");
			close(fd);
			seen++;
		}
		kn_cgroup_close(g);
	}
	if (seen == 0)
		print_message("  not here: no memory cgroup of v1\n");
}

/* What files say that the kernel makes; "" is an empty one. */
static bool
unlimited_with(const char *file, const char *text)
{
	bool free_of_all;

	write_file(join(dir, file), text);
	free_of_all = kn_cgroup_has_no_limit(dir);
	assert_int_equal(unlink(join(dir, file)), 0);
	return free_of_all;
}

static void
a_limit_of_any_controller_is_not_left_behind(void **state)
{
	static const struct {
		const char *file, *none, *some;
	} files[] = {
		{ "memory.max", "max\n", "67108864\n" },
		{ "memory.high", "max\n", "0\n" },
		{ "memory.swap.max", "max\n", "0\n" },
		{ "memory.swap.high", "max\n", "4096\n" },
		{ "memory.zswap.max", "max\n", "0\n" },
		{ "pids.max", "max\n", "100\n" },
		{ "cpu.max", "max 100000\n", "50000 100000\n" },
		{ "cpuset.cpus", "\n", "0\n" },
		{ "cpuset.mems", "", "0-1\n" },
		{ "io.max", "", "8:16 rbps=2097152 wbps=max riops=max wiops=max\n" },
		{ "io.max", "8:0 rbps=max wbps=max\n8:16 rbps=max wbps=max\n",
		    "8:0 rbps=max wbps=max\n8:16 rbps=max wbps=1\n" },
		{ "hugetlb.2MB.max", "max\n", "0\n" },
		{ "hugetlb.1GB.rsvd.max", "max\n", "1073741824\n" },
		{ "rdma.max", "mlx4_0 hca_handle=max hca_object=max\n",
		    "mlx4_0 hca_handle=2 hca_object=max\n" },
		{ "misc.max", "res_a max\nres_b max\n", "res_a max\nres_b 4\n" },
		{ "of_a_later_kernel.max", "max\n", "maximal\n" },
	};

	(void)state;
	write_file(join(dir, "cpu.weight"), "100\n");
	write_file(join(dir, "cpuset.cpus.effective"), "0-1\n");
	write_file(join(dir, "cgroup.max.depth"), "max\n");
	assert_true(kn_cgroup_has_no_limit(dir));
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (!unlimited_with(files[i].file, files[i].none))
			fail_msg("%s: \"%s\" is a limit", files[i].file, files[i].none);
		if (unlimited_with(files[i].file, files[i].some))
			fail_msg("%s: \"%s\" is none", files[i].file, files[i].some);
	}
	/* What cannot be read, or looked at, may be one. */
	assert_int_equal(mkdir(join(dir, "dmem.max"), 0755), 0);
	assert_false(kn_cgroup_has_no_limit(dir));
	assert_int_equal(rmdir(join(dir, "dmem.max")), 0);
	assert_false(kn_cgroup_has_no_limit(join(dir, "none")));
}

int
main(void)
{
#define WITH_GROUP(f) cmocka_unit_test_setup_teardown(f, make_group, remove_group)
	const struct CMUnitTest tests[] = {
		WITH_GROUP(v2_group_with_all_is_taken),
		WITH_GROUP(missing_controllers_are_named),
		WITH_GROUP(files_that_are_not_ours_are_named),
		cmocka_unit_test(no_hierarchy_at_all_is_said),
		WITH_GROUP(controllers_of_v1_need_no_v2),
		cmocka_unit_test(a_worker_s_group_of_v1_does_not_swap),
		WITH_GROUP(a_limit_of_any_controller_is_not_left_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
