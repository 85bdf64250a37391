/* tests/unit/policy_test.h: loading policies in tests: from text in a folder of this
 * run, from flags, and what a refusal must say.
 */
#ifndef KN_POLICY_TEST_H
#define KN_POLICY_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/err.h"
#include "sandbox/policy_int.h"

static char dir[64]; /* of this run, below /tmp */

static int
make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/knit-policy-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int
remove_dir(void **state)
{
	char cmd[2][80];
	(void)state;
	/* Flat: only files that this program wrote. */
	static const char *const names[] = { "a.json", "b.json", "c.json", "big.json",
		"fifo", "sub/d.json", "sub" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(cmd[0], sizeof cmd[0], "%s/%s", dir, names[i]);
		if (unlink(cmd[0]) < 0)
			rmdir(cmd[0]);
	}
	return rmdir(dir);
}

/* Write dir/name; the path in a static buffer. */
static const char *
file_of(const char *name, const char *text, size_t n)
{
	static char path[2][128];
	static int turn;
	char *p = path[turn ^= 1];
	snprintf(p, sizeof path[0], "%s/%s", dir, name);
	FILE *f = fopen(p, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	return p;
}

__attribute__((unused)) static const char *
file(const char *name, const char *text)
{
	return file_of(name, text, strlen(text));
}

#define NAMED(t) \
	{ \
		.type = KN_SRC_NAMED, .text = (t), .label = "--policy" \
	}
#define SET(t) \
	{ \
		.type = KN_SRC_SET, .text = (t), .label = "--set" \
	}
#define VALUE(p, t) \
	{ \
		.type = KN_SRC_VALUE, .pointer = (p), .text = (t), .label = "--flag" \
	}

__attribute__((unused)) static struct kn_policy *
load_n(const struct kn_policy_src *src, size_t n)
{
	struct kn_policy *p = NULL;
	struct kn_err e;
	kn_err_clear(&e);
	if (kn_policy_load(src, n, &p, &e) < 0)
		fail_msg("%s", e.msg);
	return p;
}
#define LOAD(...) \
	load_n((const struct kn_policy_src[]){ __VA_ARGS__ }, \
	    sizeof((const struct kn_policy_src[]){ __VA_ARGS__ }) / \
		sizeof(struct kn_policy_src))

/* Loading must fail with all the given pieces in the message. */
static void
refused_n(const struct kn_policy_src *src, size_t n, const char *const *pieces)
{
	struct kn_policy *p = NULL;
	struct kn_err e;
	kn_err_clear(&e);
	if (kn_policy_load(src, n, &p, &e) == 0)
		fail_msg("accepted: %s", src[n - 1].text);
	assert_null(p);
	assert_true(e.kind == KN_EK_CONFIG || e.kind == KN_EK_USAGE);
	assert_null(strchr(e.msg, '\n'));
	for (; *pieces; pieces++)
		if (!strstr(e.msg, *pieces))
			fail_msg("\"%s\" has no \"%s\"", e.msg, *pieces);
}
#define PIECES(...) \
	(const char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}
__attribute__((unused)) static void
refused(const char *text, const char *const *pieces)
{
	const struct kn_policy_src src = NAMED(file("a.json", text));
	refused_n(&src, 1, pieces);
}
__attribute__((unused)) static void
refused_set(const char *text, const char *const *pieces)
{
	const struct kn_policy_src src = SET(text);
	refused_n(&src, 1, pieces);
}

__attribute__((unused)) static const struct kn_mount *
mount_at(const struct kn_policy *p, const char *at)
{
	for (size_t i = 0; i < p->fs.mount_n; i++)
		if (strcmp(p->fs.mounts[i].at, at) == 0)
			return &p->fs.mounts[i];
	return NULL;
}

#endif
