/* tests/unit/test_sandbox_bwrap.c: the default policy as bwrap's arguments, word by
 * word; long vectors as a file; the bound.
 */
#include "sandbox_test.h"

#include "sandbox/bwrap.h"

/* A small root in place of this machine's, all else as the preset has it. */
static const struct kn_mount mounts[] = {
	{ .type = KN_MOUNT_BIND, .source = "/usr", .at = "/usr" },
	{ .type = KN_MOUNT_SYMLINK, .source = "usr/bin", .at = "/bin" },
	{ .type = KN_MOUNT_DATA, .data = "x\n", .data_n = 2, .at = "/etc/hosts" },
	{ .type = KN_MOUNT_BIND, .source = "/gone", .at = "/gone", .optional = true },
	{ .type = KN_MOUNT_DIR, .at = "/empty", .user = true },
	{ .type = KN_MOUNT_BIND,
	    .source = "/w",
	    .at = "/w",
	    .writable = true,
	    .user = true },
};
enum { MOUNTS = sizeof(mounts) / sizeof(mounts[0]) };
static const char *const sources[MOUNTS] = { "/usr", NULL, "7", NULL, NULL, "/real/w" };

static const char golden[] =
    "/usr/bin/bwrap --unshare-user --unshare-ipc --unshare-pid --unshare-uts "
    "--unshare-cgroup --as-pid-1 --die-with-parent --cap-add CAP_SYS_ADMIN "
    "--cap-add CAP_SETPCAP --disable-userns --unshare-net --uid 1000 --gid 1000 "
    "--hostname sandbox --dev /dev --proc /proc --ro-bind /usr /usr "
    "--symlink usr/bin /bin --perms 0444 --file 7 /etc/hosts "
    "--dir /tmp --dir /dev/shm --dir /task --dir /empty --bind /real/w /w "
    "--remount-ro /dev --remount-ro / --chdir / -- /proc/self/fd/4";

static struct kn_policy *loaded;

static int
load(void **state)
{
	struct kn_err e = { 0 };

	(void)state;
	return kn_policy_load(NULL, 0, &loaded, &e);
}

static int
unload(void **state)
{
	(void)state;
	kn_policy_free(loaded);
	return 0;
}

static struct kn_policy
with_mounts(const struct kn_mount *m, size_t n)
{
	struct kn_policy p = *loaded;

	p.fs.mounts = m;
	p.fs.mount_n = n;
	return p;
}

static void
joined(const struct kn_argv *a, char *out, size_t n)
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < a->n; i++)
		at += (size_t)snprintf(out + at, n - at, "%s%s", i ? " " : "", a->v[i]);
	assert_null(a->v[a->n]);
}

static void
default_policy_word_by_word(void **state)
{
	struct kn_policy p = with_mounts(mounts, MOUNTS);
	struct kn_bwrap_req r = { "/usr/bin/bwrap", &p, sources, "/proc/self/fd/4" };
	struct kn_argv a = { 0 };
	struct kn_err e = { 0 };
	char text[4096];

	(void)state;
	OK(kn_bwrap_argv(&r, &a, &e), e);
	joined(&a, text, sizeof(text));
	assert_string_equal(text, golden);
	kn_argv_fini(&a);
	p.network = KN_NET_HOST;
	OK(kn_bwrap_argv(&r, &a, &e), e);
	joined(&a, text, sizeof(text));
	assert_null(strstr(text, "--unshare-net"));
	kn_argv_fini(&a);
}

static void
short_vector_is_passed_as_it_is(void **state)
{
	struct kn_policy p = with_mounts(mounts, MOUNTS);
	struct kn_bwrap_req r = { "/usr/bin/bwrap", &p, sources, "/proc/self/fd/4" };
	struct kn_argv a = { 0 }, b = { 0 };
	struct kn_err e = { 0 };
	char *blob = NULL, text[4096];
	size_t n = 0;

	(void)state;
	OK(kn_bwrap_argv(&r, &a, &e), e);
	OK(kn_bwrap_pack(&a, 5, &b, &blob, &n, &e), e);
	assert_null(blob);
	joined(&b, text, sizeof(text));
	assert_string_equal(text, golden);
	kn_argv_fini(&a);
	kn_argv_fini(&b);
}

/* n binds whose paths are long. */
static void
many(size_t n, struct kn_mount **out_m, const char ***out_s)
{
	struct kn_mount *m = calloc(n, sizeof(*m));
	const char **s = calloc(n, sizeof(*s));

	for (size_t i = 0; i < n; i++) {
		char *at;

		assert_true(asprintf(&at, "/many/%0200zu", i) > 0);
		m[i] = user_bind("/etc/hostname", at, false);
		s[i] = "/etc/hostname";
	}
	*out_m = m;
	*out_s = s;
}

static void
many_free(struct kn_mount *m, const char **s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free((void *)(uintptr_t)m[i].at);
	free(m);
	free(s);
}

static void
long_vector_goes_through_a_file(void **state)
{
	struct kn_mount *m;
	const char **s;
	struct kn_argv a = { 0 }, b = { 0 };
	struct kn_err e = { 0 };
	char *blob = NULL;
	size_t n = 0, words = 0;

	(void)state;
	many(1000, &m, &s);
	struct kn_policy p = with_mounts(m, 1000);
	struct kn_bwrap_req r = { "/usr/bin/bwrap", &p, s, "/proc/self/fd/4" };

	OK(kn_bwrap_argv(&r, &a, &e), e);
	OK(kn_bwrap_pack(&a, 5, &b, &blob, &n, &e), e);
	assert_non_null(blob);
	assert_int_equal(b.n, 5);
	assert_string_equal(b.v[1], "--args");
	assert_string_equal(b.v[2], "5");
	assert_string_equal(b.v[3], "--");
	assert_string_equal(b.v[4], "/proc/self/fd/4");
	assert_string_equal(blob, "--unshare-user");
	assert_int_equal(blob[n - 1], '\0');
	for (size_t i = 0; i < n; i++)
		words += blob[i] == '\0';
	/* All but argv[0], "--" and the stub. */
	assert_int_equal(words, a.n - 3);
	free(blob);
	kn_argv_fini(&a);
	kn_argv_fini(&b);
	many_free(m, s, 1000);
}

static void
more_than_bwrap_takes_is_refused_with_the_number(void **state)
{
	struct kn_mount *m;
	const char **s;
	struct kn_argv a = { 0 };
	struct kn_err e = { 0 };

	(void)state;
	many(3000, &m, &s);
	struct kn_policy p = with_mounts(m, 3000);
	struct kn_bwrap_req r = { "/usr/bin/bwrap", &p, s, "/proc/self/fd/4" };

	assert_int_equal(kn_bwrap_argv(&r, &a, &e), -1);
	assert_int_equal(e.kind, KN_EK_CONFIG);
	assert_non_null(strstr(e.msg, "9000"));
	assert_null(a.v);
	many_free(m, s, 3000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(default_policy_word_by_word),
		cmocka_unit_test(short_vector_is_passed_as_it_is),
		cmocka_unit_test(long_vector_goes_through_a_file),
		cmocka_unit_test(more_than_bwrap_takes_is_refused_with_the_number),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
