/* tests/unit/test_ipc_fd.c: descriptors, memory files and processes are owned by
 * exactly one, on every way out. The kernel is the witness. */
#include "tests/unit/ipc_test.h"

#include <poll.h>
#include <sys/resource.h>

#include "ipc/fd.h"

static void
closing_leaves_minus_one_and_errno(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), moved;

	(void)state;
	moved = kn_fd_take(&fd);
	assert_int_equal(fd, -1);
	assert_true(fcntl(moved, F_GETFD) >= 0);
	fd = moved;
	errno = EXDEV;
	kn_fd_close(&moved);
	assert_int_equal(moved, -1);
	kn_fd_close(&moved);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static int
start_without_streams(void *arg)
{
	unsigned closed = 99;
	char c;

	(void)arg;
	close(0);
	close(2);
	if (kn_fd_reserve_stdio(&closed, NULL) < 0 || closed != 5)
		return 1;
	if (read(0, &c, 1) != 0 || write(2, "x", 1) != 1)
		return 2;
	if (fcntl(0, F_GETFD) != 0)
		return 3; /* a program that we start must find it open */
	if (kn_fd_reserve_stdio(&closed, NULL) < 0 || closed != 0)
		return 4;
	return open("/dev/null", O_RDONLY) > 2 ? 0 : 5;
}

static void
a_closed_standard_stream_is_filled(void **state)
{
	(void)state;
	assert_int_equal(in_child(start_without_streams, NULL), 0);
}

static void
read_all_is_bounded(void **state)
{
	struct kn_err e;
	char *text;
	size_t n = 7;
	int fd, dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char big[20000];

	(void)state;
	memset(big, 'b', sizeof big);
	fd = kn_fd_sealed("big", big, sizeof big, 0, &e);
	assert_true(fd >= 0);
	assert_int_equal(kn_fd_read_all(fd, sizeof big, &text, &n, &e), 0);
	assert_int_equal(n, sizeof big);
	assert_memory_equal(text, big, n);
	assert_int_equal(text[n], '\0');
	free(text);
	text = big;
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(kn_fd_read_all(fd, sizeof big - 1, &text, &n, &e), -1);
	assert_int_equal(e.kind, KN_EK_CONFIG);
	assert_ptr_equal(text, big); /* untouched */
	close(fd);
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC); /* has no end */
	assert_int_equal(kn_fd_read_all(fd, 100000, &text, &n, &e), -1);
	close(fd);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(kn_fd_read_all(fd, 0, &text, &n, &e), 0);
	assert_int_equal(n, 0);
	assert_string_equal(text, "");
	free(text);
	close(fd);
	assert_int_equal(kn_fd_read_all(dir, 100, &text, &n, &e), -1);
	assert_int_equal(e.sys, EISDIR);
	close(dir);
}

/* ---- memory files ---- */

static const int all_seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

static void
a_sealed_file_cannot_be_changed_by_any_door(void **state)
{
	int before = open_fds();
	struct kn_err e;
	int fd = kn_fd_sealed("s", "bytes", 5, 0, &e), again;
	char path[64], got[8];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(open_fds(), before + 1);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & all_seals, all_seals);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	assert_true(again >= 0); /* the mode allows it, the seals do not */
	assert_int_equal(write(again, "x", 1), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(again, 0), -1);
	assert_int_equal(ftruncate(again, 100), -1);
	assert_ptr_equal(mmap(NULL, 5, PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
	assert_int_equal(pread(fd, got, sizeof got, 0), 5);
	assert_memory_equal(got, "bytes", 5);
	close(again);
	close(fd);
}

static int
run_image(int exec)
{
	char *const argv[] = { (char[]){ "true" }, NULL }, *const env[] = { NULL };
	int in = open("/bin/true", O_RDONLY | O_CLOEXEC), fd;
	char *image;
	size_t n;

	if (in < 0 || kn_fd_read_all(in, 1 << 24, &image, &n, NULL) < 0)
		return 90;
	fd = kn_fd_sealed("image", image, n, exec, NULL);
	if (fd < 0)
		return 91;
	fexecve(fd, argv, env);
	return errno;
}

static int
run_executable(void *arg)
{
	(void)arg;
	return run_image(1);
}

static int
run_plain(void *arg)
{
	(void)arg;
	return run_image(0);
}

static void
an_image_can_be_executed_and_data_cannot(void **state)
{
	int probe = memfd_create("probe", MFD_CLOEXEC | 8u), status;

	(void)state;
	assert_int_equal(in_child(run_executable, NULL), 0);
	status = in_child(run_plain, NULL);
	if (probe >= 0)
		assert_int_equal(WEXITSTATUS(status), EACCES);
	else
		print_message("this kernel can execute every memory file\n");
	close(probe);
}

static int
sealed_on_an_old_kernel(void *arg)
{
	int fd;

	(void)arg;
	if (forget_memfd_flags(8u | 16u) < 0)
		return 1;
	for (int exec = 0; exec <= 1; exec++) {
		fd = kn_fd_sealed("old", "x", 1, exec, NULL);
		if (fd < 0 || (fcntl(fd, F_GET_SEALS) & all_seals) != all_seals)
			return 2 + exec;
	}
	return run_image(1);
}

static int
sealed_where_sealing_is_refused(void *arg)
{
	struct kn_err e = { 0 };
	int before = dup(0), after;

	(void)arg;
	close(before);
	if (forget_memfd_flags(MFD_ALLOW_SEALING) < 0)
		return 1;
	if (kn_fd_sealed("none", "x", 1, 0, &e) >= 0 || e.kind != KN_EK_HOST)
		return 2;
	after = dup(0);
	return after == before ? 0 : 3;
}

static void
an_older_kernel_never_costs_the_seals(void **state)
{
	(void)state;
	assert_int_equal(in_child(sealed_on_an_old_kernel, NULL), 0);
	assert_int_equal(in_child(sealed_where_sealing_is_refused, NULL), 0);
}

static int
sealed_over_a_limit(void *arg)
{
	struct rlimit small = { 4096, 4096 };
	struct kn_err e = { 0 };
	static char big[100000];
	int before, after;

	(void)arg;
	ignore(SIGXFSZ);
	if (setrlimit(RLIMIT_FSIZE, &small) < 0)
		return 1;
	before = dup(0);
	close(before);
	if (kn_fd_sealed("big", big, sizeof big, 0, &e) >= 0 || e.sys != EFBIG)
		return 2;
	after = dup(0);
	return after == before ? 0 : 3;
}

static void
a_failed_memory_file_leaves_nothing_open(void **state)
{
	(void)state;
	assert_int_equal(in_child(sealed_over_a_limit, NULL), 0);
}

/* ---- processes ---- */

static int
wait_for_ever(void *arg)
{
	(void)arg;
	while (pause())
		;
	return 0;
}

static int
exit_with_7(void *arg)
{
	(void)arg;
	return 7;
}

static int
die_of_a_signal(void *arg)
{
	(void)arg;
	raise(SIGTERM);
	return 1;
}

static struct kn_proc
proc_of(int (*fn)(void *))
{
	struct kn_proc p;

	p.pid = start_child(fn, NULL);
	p.pidfd = (int)syscall(SYS_pidfd_open, p.pid, 0);
	assert_true(p.pidfd >= 0);
	return p;
}

static int
reap_within(struct kn_proc *p, int ms)
{
	struct pollfd pfd = { p->pidfd, POLLIN, 0 };
	int status = -1;

	assert_int_equal(poll(&pfd, 1, ms), 1);
	assert_int_equal(kn_proc_reap(p, &status), 1);
	assert_int_equal(p->pidfd, -1);
	return status;
}

static void
a_child_is_reaped_once_with_its_status(void **state)
{
	struct kn_proc p = proc_of(wait_for_ever);
	int status = 12345;

	(void)state;
	assert_int_equal(kn_proc_reap(&p, &status), 0);
	assert_int_equal(status, 12345);
	assert_int_equal(kn_proc_signal(&p, SIGTERM), 0);
	status = reap_within(&p, 10000);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	assert_int_equal(kn_proc_reap(&p, &status), -1);
	assert_int_equal(kn_proc_signal(&p, SIGKILL), -1);
	assert_int_equal(errno, ESRCH);

	p = proc_of(exit_with_7);
	status = reap_within(&p, 10000);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);

	p = proc_of(die_of_a_signal);
	status = reap_within(&p, 10000);
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void
closing_a_process_kills_and_reaps_it(void **state)
{
	struct kn_proc p = proc_of(wait_for_ever), none = { -1, 0 };
	KN_OWN_FD int same = fcntl(p.pidfd, F_DUPFD_CLOEXEC, 0);

	(void)state;
	kn_proc_close(&p);
	assert_int_equal(p.pidfd, -1);
	assert_int_equal(syscall(SYS_pidfd_send_signal, same, 0, NULL, 0), -1);
	assert_int_equal(errno, ESRCH); /* not even a zombie */
	kn_proc_close(&p);
	kn_proc_close(&none);
}

static void
unmapping_twice_is_harmless(void **state)
{
	struct kn_map m = {
		mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096
	};

	(void)state;
	kn_map_close(&m);
	assert_null(m.p);
	assert_int_equal(m.n, 0);
	kn_map_close(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_leaves_minus_one_and_errno),
		cmocka_unit_test(a_closed_standard_stream_is_filled),
		cmocka_unit_test(read_all_is_bounded),
		cmocka_unit_test(a_sealed_file_cannot_be_changed_by_any_door),
		cmocka_unit_test(an_image_can_be_executed_and_data_cannot),
		cmocka_unit_test(an_older_kernel_never_costs_the_seals),
		cmocka_unit_test(a_failed_memory_file_leaves_nothing_open),
		cmocka_unit_test(a_child_is_reaped_once_with_its_status),
		cmocka_unit_test(closing_a_process_kills_and_reaps_it),
		cmocka_unit_test(unmapping_twice_is_harmless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
