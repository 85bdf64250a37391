/* tests/unit/cgroup_test.h: what is there of a pool's directories, asked of the kernel.
 * Other pools of the machine have theirs beside them.
 */
#ifndef KN_TESTS_CGROUP_TEST_H
#define KN_TESTS_CGROUP_TEST_H

#include "sandbox_test.h"

#include "sandbox/cgroup.h"
#include "sandbox/cgroup_dir.h"
#include "sandbox/cgroup_find.h"

static bool
has_dir(const char *in, const char *name)
{
	static const char *const end[] = { "", "-sup" };
	char path[KN_CGROUP_PATH_MAX + KN_CGROUP_NAME_MAX + 8];

	for (int i = 0; i < 2 && *in; i++) {
		snprintf(path, sizeof path, "%s/%s%s", in, name, end[i]);
		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

/* Whether a directory of that name is in any hierarchy: in our own group or, in v2, in
 * one above it. */
__attribute__((unused)) static bool
cgroup_is_there(const char *name)
{
	struct kn_cgroup_where w;
	char *v2 = w.unified.dir;

	if (kn_cgroup_where(&w, NULL) < 0)
		return false;
	for (size_t n = strlen(v2); n > 0 && n >= w.unified.mount_n; n--) {
		if (v2[n] == '/' || v2[n] == '\0') {
			v2[n] = '\0';
			if (has_dir(v2, name))
				return true;
		}
	}
	return has_dir(w.memory.dir, name) || has_dir(w.pids.dir, name) ||
	       has_dir(w.cpuacct.dir, name) || has_dir(w.cpu.dir, name);
}

/* A child that has joined w as the launcher does, and runs fn. */
__attribute__((unused)) static pid_t
start_inside(struct kn_cgroup *g, uint32_t w, void (*fn)(void))
{
	int fds[8], in[2];
	size_t n = kn_cgroup_join_fds(g, w, fds, 8);
	pid_t pid;
	char byte;

	assert_true(n > 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		for (size_t i = 0; i < n; i++)
			if (write(fds[i], "0", 1) != 1)
				_exit(90);
		if (write(in[1], "", 1) != 1)
			_exit(91);
		fn();
		_exit(0);
	}
	close(in[1]);
	assert_int_equal(read(in[0], &byte, 1), 1);
	close(in[0]);
	return pid;
}

#endif
