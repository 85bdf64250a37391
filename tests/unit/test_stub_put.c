/* A task's files are put where they belong: modes, folders, descriptors, and a clear
 * end where that is not possible. */
#include "tests/unit/ipc_test.h"

#include <sys/stat.h>

#include "ipc/clock.h"
#include "sandbox/stub/files.c"

static char place[] = "/tmp/knit-test-put-XXXXXX";
static int root;

static int
make_place(void **state)
{
	(void)state;
	memcpy(place + sizeof place - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(place));
	root = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return root < 0;
}

static int
remove_place(void **state)
{
	pid_t k = fork();

	(void)state;
	if (k == 0) {
		execlp("rm", "rm", "-rf", place, (char *)NULL);
		_exit(127);
	}
	waitpid(k, NULL, 0);
	kn_fd_close(&root);
	return 0;
}

static int
put(const struct kn_job_file *f, uint32_t n, const int *fds, uint32_t fd_n,
    uint64_t deadline_ns, const char **out_path)
{
	const struct kn_job j = { .files = f, .file_n = n };
	int before = open_fds(), r;

	r = kn_files_put(root, &j, fds, fd_n, deadline_ns, out_path);
	assert_int_equal(open_fds(), before);
	return r;
}

static void
assert_holds(const char *path, const char *text, unsigned mode)
{
	char buf[64] = "";
	struct stat st;
	int fd;

	assert_int_equal(fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(fchmodat(root, path, 0600, 0), 0);
	fd = openat(root, path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, buf, sizeof buf - 1) >= 0);
	close(fd);
	assert_string_equal(buf, text);
}

static void
content_mode_and_folders_are_as_asked(void **state)
{
	const struct kn_job_file f[] = {
		{ "a.txt", 0644, "hello", 5, -1 },
		{ "x/y/run.sh", 0755, "#!", 2, -1 },
		{ "x/secret", 0, "s", 1, -1 },
		{ "empty", 0600, NULL, 0, -1 },
	};
	const char *path = NULL;

	(void)state;
	assert_int_equal(put(f, 4, NULL, 0, 0, &path), 0);
	assert_holds("a.txt", "hello", 0644);
	assert_holds("x/y/run.sh", "#!", 0755);
	assert_holds("x/secret", "s", 0);
	assert_holds("empty", "", 0600);
}

static void
a_descriptor_is_read_from_its_start(void **state)
{
	const struct kn_job_file f[] = { { "d", 0600, NULL, 0, 0 },
		{ "e", 0600, NULL, 0, 0 } };
	const char *path = NULL;
	char tmp[] = "/tmp/knit-test-put-src-XXXXXX";
	int fd = mkstemp(tmp);

	(void)state;
	assert_true(fd >= 0);
	unlink(tmp);
	assert_int_equal(write(fd, "content", 7), 7);
	assert_int_equal(put(f, 2, &fd, 1, 0, &path), 0);
	close(fd);
	assert_holds("d", "content", 0600);
	assert_holds("e", "content", 0600);
}

static void
what_cannot_be_put_is_named(void **state)
{
	const struct kn_job_file twice[] = { { "a", 0644, "1", 1, -1 },
		{ "a", 0644, "2", 1, -1 } };
	const struct kn_job_file below_a_file[] = { { "a/b", 0644, "1", 1, -1 } };
	const struct kn_job_file through_a_link[] = { { "l/b", 0644, "1", 1, -1 } };
	const struct kn_job_file no_descriptor[] = { { "n", 0644, NULL, 0, 3 } };
	const char *path = NULL;

	(void)state;
	assert_int_equal(put(twice, 2, NULL, 0, 0, &path), -EEXIST);
	assert_string_equal(path, "a");
	assert_int_equal(put(below_a_file, 1, NULL, 0, 0, &path), -ENOTDIR);
	assert_string_equal(path, "a/b");
	assert_int_equal(symlinkat("/tmp", root, "l"), 0);
	assert_int_equal(put(through_a_link, 1, NULL, 0, 0, &path), -ELOOP);
	assert_int_equal(put(no_descriptor, 1, NULL, 0, 0, &path), -EBADF);
	assert_string_equal(path, "n");
}

static void
the_deadline_ends_a_long_copy(void **state)
{
	const struct kn_job_file f[] = { { "zero", 0600, NULL, 0, 0 } };
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	const char *path = NULL;

	(void)state;
	assert_int_equal(
	    put(f, 1, &fd, 1, kn_clock_now() + 50 * KN_MS_NS, &path), -ETIMEDOUT);
	close(fd);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)
	const struct CMUnitTest tests[] = {
		T(content_mode_and_folders_are_as_asked),
		T(a_descriptor_is_read_from_its_start),
		T(what_cannot_be_put_is_named),
		T(the_deadline_ends_a_long_copy),
	};

	return cmocka_run_group_tests_name("stub/files", tests, NULL, NULL);
}
