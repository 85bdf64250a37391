/* tests/unit/test_batch_keep.c: the private directory of kept files: whose it is, and
 * what is left of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "supervisor/batch_keep.h"

static char base[64];
static struct kn_err err;

static int
setup(void **state)
{
	(void)state;
	snprintf(base, sizeof base, "/tmp/knit-test-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	return setenv("TMPDIR", base, 1);
}

static int
teardown(void **state)
{
	(void)state;
	return rmdir(base); /* fails if anything is left */
}

static char *
below(const char *name)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", base, name);
	return path;
}

static unsigned
count(void)
{
	DIR *d = opendir(base);
	unsigned n = 0;
	struct dirent *de;

	assert_non_null(d);
	while ((de = readdir(d)))
		n += de->d_name[0] != '.';
	closedir(d);
	return n;
}

static void
what_is_kept_is_gone_after_the_close(void **state)
{
	KN_OWN_FD int fd = kn_fd_sealed("kept", "data", 4, 0, &err), got = -1;
	struct kn_keep *k;
	uint32_t mode;

	(void)state;
	assert_int_equal(kn_keep_open(NULL, &k, &err), 0);
	assert_int_equal(count(), 0);
	assert_int_equal(kn_keep_put(k, "a", "out/x", fd, 100, 0755, &err), 0);
	assert_int_equal(count(), 1);
	assert_int_equal(kn_keep_get(k, "a", "out/x", &got, &mode, &err), 0);
	assert_int_equal(mode, 0755);
	kn_keep_close(k);
	assert_int_equal(count(), 0);
}

static void
the_next_start_removes_what_a_killed_one_left(void **state)
{
	int held;

	(void)state;
	assert_int_equal(mkdir(below("knit-keep-dead"), 0700), 0);
	assert_int_equal(mkdir(below("knit-keep-dead/a"), 0700), 0);
	assert_int_equal(mkdir(below("knit-keep-live"), 0700), 0);
	assert_int_equal(mkdir(below("other"), 0700), 0);
	held = open(below("knit-keep-live"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(held, LOCK_EX), 0);
	kn_keep_sweep();
	assert_int_equal(count(), 2);
	assert_int_equal(access(below("knit-keep-live"), F_OK), 0);
	assert_int_equal(access(below("other"), F_OK), 0);
	close(held);
	rmdir(below("knit-keep-live"));
	rmdir(below("other"));
}

static void
a_directory_of_the_callers_is_not_swept_nor_removed(void **state)
{
	struct kn_keep *k;

	(void)state;
	assert_int_equal(mkdir(below("knit-keep-dead"), 0700), 0);
	assert_int_equal(kn_keep_open(below("mine"), &k, &err), 0);
	kn_keep_close(k);
	assert_int_equal(count(), 2);
	rmdir(below("mine"));
	rmdir(below("knit-keep-dead"));
}

/* As a container's first process has the number of the one before. */
static void
what_a_killed_one_of_the_same_number_left_is_in_nobodys_way(void **state)
{
	KN_OWN_FD int fd = kn_fd_sealed("kept", "data", 4, 0, &err), got = -1;
	char name[64];
	struct kn_keep *k;
	uint32_t mode;

	(void)state;
	assert_int_equal(kn_keep_open(below("mine"), &k, &err), 0);
	assert_int_equal(mkdir(below("mine/a"), 0700), 0);
	for (int i = 0; i < 40; i++) {
		snprintf(
		    name, sizeof name, "mine/a/.knit-%ld-%d.tmp", (long)getpid(), i);
		assert_int_equal(mknod(below(name), S_IFREG | 0600, 0), 0);
	}
	assert_int_equal(kn_keep_put(k, "a", "x", fd, 100, 0644, &err), 0);
	assert_int_equal(kn_keep_get(k, "a", "x", &got, &mode, &err), 0);
	kn_keep_close(k);
	for (int i = 0; i < 40; i++) {
		snprintf(
		    name, sizeof name, "mine/a/.knit-%ld-%d.tmp", (long)getpid(), i);
		assert_int_equal(unlink(below(name)), 0);
	}
	assert_int_equal(unlink(below("mine/a/x")), 0);
	assert_int_equal(rmdir(below("mine/a")), 0);
	assert_int_equal(rmdir(below("mine")), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_kept_is_gone_after_the_close),
		cmocka_unit_test(the_next_start_removes_what_a_killed_one_left),
		cmocka_unit_test(a_directory_of_the_callers_is_not_swept_nor_removed),
		cmocka_unit_test(
		    what_a_killed_one_of_the_same_number_left_is_in_nobodys_way),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
