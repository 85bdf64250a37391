/* tests/unit/test_ipc_arena.c: the arena's size cannot change, a worker gets its slice
 * and nothing else, and lack of memory is an error. The kernel is the witness. */
#include "tests/unit/ipc_test.h"

#include <sys/resource.h>
#include <sys/stat.h>

static const int size_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

static uint64_t
blocks_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void
nobody_can_shrink_grow_or_unseal_it(void **state)
{
	struct kn_arena a;
	char path[64];
	int again;

	(void)state;
	open_arena(&a, 2, 1 << 16);
	assert_int_equal(fcntl(a.fd, F_GET_SEALS) & size_seals, size_seals);
	assert_int_equal(fcntl(a.fd, F_GETFD), FD_CLOEXEC);
	snprintf(path, sizeof path, "/proc/self/fd/%d", a.fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(ftruncate(again, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(again, (off_t)a.layout.arena_bytes * 2), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(fcntl(again, F_ADD_SEALS, F_SEAL_WRITE), -1);
	close(again);
	kn_arena_close(&a);
	assert_int_equal(a.fd, -1);
	kn_arena_close(&a);
}

static int
open_on_an_old_kernel(void *arg)
{
	struct kn_layout l;
	struct kn_arena a;

	(void)arg;
	if (forget_memfd_flags(8u) < 0 || kn_layout_of(1, 4096, 4096, &l) < 0)
		return 1;
	if (kn_arena_open(&a, &l, pool_id, NULL) < 0)
		return 2;
	return (fcntl(a.fd, F_GET_SEALS) & size_seals) == size_seals ? 0 : 3;
}

static int
open_where_sealing_is_refused(void *arg)
{
	struct kn_err e = { 0 };
	struct kn_layout l;
	struct kn_arena a;

	(void)arg;
	if (forget_memfd_flags(MFD_ALLOW_SEALING) < 0 ||
	    kn_layout_of(1, 4096, 4096, &l) < 0)
		return 1;
	if (kn_arena_open(&a, &l, pool_id, &e) == 0)
		return 2;
	return e.kind == KN_EK_HOST ? 0 : 3;
}

static void
an_older_kernel_never_costs_the_seals(void **state)
{
	(void)state;
	assert_int_equal(in_child(open_on_an_old_kernel, NULL), 0);
	assert_int_equal(in_child(open_where_sealing_is_refused, NULL), 0);
}

static void
it_is_sparse_but_the_lanes_are_backed(void **state)
{
	struct kn_arena a;
	uint64_t hot;

	(void)state;
	open_arena(&a, 8, 64ull << 20);
	hot = KN_PAGE + 8 * a.layout.submit_area_off;
	assert_true(blocks_of(a.fd) >= hot);
	assert_true(blocks_of(a.fd) < hot + (1 << 20));
	kn_arena_close(&a);
}

/* Open must fail with an error, and leave no descriptor and no mapping. */
static int
open_must_fail(uint64_t area_bytes, int sys)
{
	struct kn_err e = { 0 };
	struct kn_layout l;
	struct kn_arena a;
	int before = dup(0), after;

	close(before);
	if (kn_layout_of(4, area_bytes, area_bytes, &l) < 0)
		return 10;
	if (kn_arena_open(&a, &l, pool_id, &e) == 0)
		return 11;
	if (e.kind != KN_EK_HOST || e.sys != sys)
		return 12;
	after = dup(0);
	return before == after ? 0 : 13;
}

static int
open_with_little_address_space(void *arg)
{
	struct rlimit as = { 1 << 28, 1 << 28 };

	(void)arg;
	if (setrlimit(RLIMIT_AS, &as) < 0)
		return 1;
	return open_must_fail(1ull << 28, ENOMEM);
}

static int
open_with_a_small_file_limit(void *arg)
{
	struct rlimit fsize = { 1 << 16, 1 << 16 };

	(void)arg;
	ignore(SIGXFSZ);
	if (setrlimit(RLIMIT_FSIZE, &fsize) < 0)
		return 1;
	return open_must_fail(1 << 20, EFBIG);
}

static void
lack_of_memory_is_an_error_that_leaves_nothing(void **state)
{
	(void)state;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_int_equal(in_child(open_with_little_address_space, NULL), 0);
#else
	(void)open_with_little_address_space; /* a sanitizer needs the space */
#endif
	assert_int_equal(in_child(open_with_a_small_file_limit, NULL), 0);
}

/* ---- the worker's side ---- */

static int
map(struct kn_arena *a, uint32_t w, struct kn_map *out)
{
	struct kn_err e = { 0 };
	int sealed = -1;

	if (kn_arena_map_slice(a->fd, &a->layout, pool_id, w, out, &sealed, &e) < 0)
		return -1;
	return sealed;
}

static void
both_sides_see_the_same_slice_and_no_other(void **state)
{
	struct kn_arena a;
	struct kn_slice mine, theirs, other;
	struct kn_map m;

	(void)state;
	open_arena(&a, 3, 8192);
	kn_arena_slice(&a, 1, &mine);
	kn_arena_slice(&a, 2, &other);
	assert_true(map(&a, 1, &m) >= 0);
	kn_slice_at(m.p, &a.layout, &theirs);
	assert_int_equal(m.n, a.layout.slice_bytes);
	memset(m.p, 0xab, m.n);
	assert_int_equal(mine.control->stop, 0xabababab);
	assert_int_equal(mine.submit_slots[31].head.gen, 0xabababab);
	assert_int_equal(mine.return_slots[31].head.begun_ns >> 56, 0xab);
	assert_int_equal(mine.submit_area[8191], 0xab);
	assert_int_equal(mine.return_area[8191], 0xab);
	assert_int_equal(other.control->stop, 0);
	kn_arena_slice(&a, 0, &other);
	assert_int_equal(other.return_area[8191], 0);
	mine.return_area[0] = 7;
	assert_int_equal(theirs.return_area[0], 7);
	kn_arena_close(&a);
}

static int
move_a_mapping_about(void *arg)
{
	struct kn_arena *a = arg;
	struct kn_map m;
	int sealed = map(a, 0, &m);

	if (sealed < 0)
		return 1;
	if (sealed == 0)
		return syscall(462, 0, 0, 0) < 0 && errno == ENOSYS ? 77 : 2;
	if (mremap(m.p, m.n, m.n * 2, MREMAP_MAYMOVE) != MAP_FAILED || errno != EPERM)
		return 3;
	if (mremap(m.p, 0, m.n, MREMAP_MAYMOVE) != MAP_FAILED)
		return 4;
	if (syscall(SYS_remap_file_pages, m.p, m.n, 0, a->layout.slice_bytes / KN_PAGE,
		0) == 0)
		return 5;
	if (munmap(m.p, m.n) == 0 || mprotect(m.p, m.n, PROT_READ) == 0)
		return 6;
	if (mmap(m.p, m.n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	    MAP_FAILED)
		return 7;
	return 0;
}

static void
a_mapped_slice_cannot_be_moved_onto_the_neighbour(void **state)
{
	struct kn_arena a;
	int status;

	(void)state;
	open_arena(&a, 2, 8192);
	status = in_child(move_a_mapping_about, &a);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		print_message("this kernel has no mseal\n");
	else
		assert_int_equal(status, 0);
	kn_arena_close(&a);
}

static int
touch(void *p)
{
	return *(volatile uint8_t *)p;
}

static int
touch_in_a_grandchild(void *arg)
{
	struct kn_map m;
	int status;
	pid_t pid;

	if (map(arg, 0, &m) < 0)
		return 1;
	*(volatile uint8_t *)m.p = 1;
	pid = fork();
	if (pid == 0)
		_exit(touch(m.p));
	if (waitpid(pid, &status, 0) != pid)
		return 2;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? 0 : 3;
}

static void
children_of_a_worker_have_no_slice(void **state)
{
	struct kn_arena a;
	int status;

	(void)state;
	open_arena(&a, 1, 8192);
	assert_int_equal(in_child(touch_in_a_grandchild, &a), 0);
	status = in_child(touch, a.map.p); /* nor those of the supervisor an arena */
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	kn_arena_close(&a);
}

static void
a_worker_refuses_an_arena_that_is_not_its_boot_records(void **state)
{
	struct kn_arena a;
	struct kn_layout other;
	struct kn_err e = { 0 };
	struct kn_map m = { NULL, 0 };
	uint8_t wrong_id[16] = "some-other-pool";
	int sealed = 9, fake;

	(void)state;
	open_arena(&a, 2, 8192);
	assert_int_equal(
	    kn_arena_map_slice(a.fd, &a.layout, wrong_id, 0, &m, &sealed, &e), -1);
	assert_int_equal(e.kind, KN_EK_PROTOCOL);
	assert_int_equal(
	    kn_arena_map_slice(a.fd, &a.layout, pool_id, 2, &m, &sealed, &e), -1);
	assert_int_equal(kn_layout_of(3, 8192, 8192, &other), 0);
	assert_int_equal(
	    kn_arena_map_slice(a.fd, &other, pool_id, 0, &m, &sealed, &e), -1);
	/* the same size, carved differently */
	assert_int_equal(kn_layout_of(2, 4096, 12288, &other), 0);
	assert_int_equal(other.arena_bytes, a.layout.arena_bytes);
	assert_int_equal(
	    kn_arena_map_slice(a.fd, &other, pool_id, 0, &m, &sealed, &e), -1);
	/* the right bytes, without the seals */
	fake = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fake, (off_t)a.layout.arena_bytes), 0);
	assert_int_equal(pwrite(fake, a.map.p, KN_PAGE, 0), KN_PAGE);
	assert_int_equal(
	    kn_arena_map_slice(fake, &a.layout, pool_id, 0, &m, &sealed, &e), -1);
	assert_int_equal(fcntl(fake, F_ADD_SEALS, size_seals), 0);
	assert_null(m.p);
	assert_int_equal(sealed, 9);
	assert_int_equal(
	    kn_arena_map_slice(fake, &a.layout, pool_id, 0, &m, &sealed, &e), 0);
	close(fake);
	kn_arena_close(&a);
}

static void
a_reset_slice_holds_nothing_of_the_worker_before(void **state)
{
	struct kn_arena a;
	struct kn_slice s;
	struct kn_err e = { 0 };
	uint64_t before;
	const uint8_t *p;

	(void)state;
	open_arena(&a, 2, 1 << 20);
	kn_arena_slice(&a, 1, &s);
	before = blocks_of(a.fd);
	memset(s.control, 0x77, a.layout.slice_bytes);
	assert_true(blocks_of(a.fd) >= before + (2 << 20));
	((uint8_t *)a.map.p)[KN_PAGE] = 0x55; /* slice 0 */
	assert_int_equal(kn_arena_reset_slice(&a, 1, &e), 0);
	assert_true(blocks_of(a.fd) <= before);
	p = (const uint8_t *)s.control;
	for (uint64_t i = 0; i < a.layout.slice_bytes; i++)
		if (p[i])
			fail_msg("byte %llu left", (unsigned long long)i);
	assert_int_equal(((uint8_t *)a.map.p)[KN_PAGE], 0x55);
	assert_int_equal(kn_arena_reset_slice(&a, 2, &e), -1);
	kn_arena_close(&a);
}

static void
a_payloads_pages_are_backed_before_they_are_written(void **state)
{
	struct kn_arena a;
	struct kn_err e = { 0 };
	uint64_t before;

	(void)state;
	open_arena(&a, 2, 1 << 20);
	before = blocks_of(a.fd);
	assert_int_equal(kn_arena_back_submit(&a, 1, 4096, 1 << 19, &e), 0);
	assert_true(blocks_of(a.fd) >= before + (1 << 19));
	assert_int_equal(kn_arena_back_submit(&a, 1, 0, (1 << 20) + 1, &e), -1);
	assert_int_equal(kn_arena_back_submit(&a, 1, UINT64_MAX, 2, &e), -1);
	assert_int_equal(kn_arena_back_submit(&a, 1, 1 << 20, 1, &e), -1);
	assert_int_equal(kn_arena_back_submit(&a, 2, 0, 1, &e), -1);
	kn_arena_close(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_can_shrink_grow_or_unseal_it),
		cmocka_unit_test(an_older_kernel_never_costs_the_seals),
		cmocka_unit_test(it_is_sparse_but_the_lanes_are_backed),
		cmocka_unit_test(lack_of_memory_is_an_error_that_leaves_nothing),
		cmocka_unit_test(both_sides_see_the_same_slice_and_no_other),
		cmocka_unit_test(a_mapped_slice_cannot_be_moved_onto_the_neighbour),
		cmocka_unit_test(children_of_a_worker_have_no_slice),
		cmocka_unit_test(
		    a_worker_refuses_an_arena_that_is_not_its_boot_records),
		cmocka_unit_test(a_reset_slice_holds_nothing_of_the_worker_before),
		cmocka_unit_test(a_payloads_pages_are_backed_before_they_are_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
