/* tests/unit/sandbox_test.h: what the tests of sandbox/ share: skips that count,
 * scratch directories, a policy made by hand.
 */
#ifndef KN_TESTS_SANDBOX_TEST_H
#define KN_TESTS_SANDBOX_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/err.h"
#include "sandbox/policy.h"

static const uint8_t test_pool_id[16] = { 0xab, 0xcd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
	12, 13, 14 };

/* A test that this machine or user cannot run; a failure where all must run. */
#define SKIP_UNLESS(cond, why) \
	do { \
		if (!(cond)) { \
			if (getenv("KNIT_MUST_RUN") != NULL) \
				fail_msg( \
				    "skipped, but KNIT_MUST_RUN is set: %s", why); \
			print_message("  skip: %s\n", why); \
			skip(); \
		} \
	} while (0)

#define OK(call, e) \
	do { \
		if ((call) < 0) \
			fail_msg("%s: %s", #call, (e).msg); \
	} while (0)

/* A fresh directory, removed by scratch_remove(). */
__attribute__((unused)) static void
scratch_make(char path[64])
{
	snprintf(path, 64, "/var/tmp/knit-test-XXXXXX");
	assert_non_null(mkdtemp(path));
}

__attribute__((unused)) static void
scratch_remove(const char *path)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execl("/bin/rm", "rm", "-rf", "--", path, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

__attribute__((unused)) static void
write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* "a/b" in one of a few rotating buffers. */
__attribute__((unused)) static const char *
join(const char *a, const char *b)
{
	static char buf[8][256];
	static unsigned at;
	char *p = buf[at++ % 8];

	snprintf(p, sizeof(buf[0]), "%s/%s", a, b);
	return p;
}

/* As root, a /run of our own: what is in the machine's is of others too, who come and
 * go. Where that is refused, the machine's it is. */
__attribute__((unused)) static void
have_own_run(void)
{
	if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
		(void)!mount("tmpfs", "/run", "tmpfs", 0, "mode=0755");
}

/* A bind of the caller. */
__attribute__((unused)) static struct kn_mount
user_bind(const char *source, const char *at, bool writable)
{
	return (struct kn_mount){ .type = KN_MOUNT_BIND,
		.source = source,
		.at = at,
		.writable = writable,
		.user = true,
		.origin = writable ? "--bind" : "--ro-bind" };
}

#endif
