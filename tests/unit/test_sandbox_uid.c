/* tests/unit/test_sandbox_uid.c: which uids workers get, on machines of all sorts; the
 * id map of a bind.
 */
#include "lib/lib.h"
#include "sandbox_test.h"

#include "sandbox/idmap.h"
#include "sandbox/uid.h"

#define FULL "         0          0 4294967295\n"

static struct kn_uid_range
choose(const char *umap, const char *gmap, pid_t pid)
{
	struct kn_uid_range r = { 0, 0 };
	struct kn_err e = { 0 };

	OK(kn_uid_choose(umap, gmap, pid, &r, &e), e);
	return r;
}

static void
initial_namespace_gives_each_supervisor_its_own_range(void **state)
{
	struct kn_uid_range a = choose(FULL, FULL, 1000), b = choose(FULL, FULL, 1001);

	(void)state;
	assert_int_equal(a.base, 0x40000000u + (1000u << 8));
	assert_int_equal(a.n, KN_UID_RANGE);
	assert_int_equal(b.base, a.base + KN_UID_RANGE);
	/* The largest pid that Linux can have. */
	assert_int_equal(choose(FULL, FULL, 1 << 22).base, 0x80000000u);
}

static void
container_with_16_bit_ids_gives_the_upper_half(void **state)
{
	const char *map = "0 100000 65536\n";
	struct kn_uid_range r = choose(map, map, 77);

	(void)state;
	assert_int_equal(r.n, KN_UID_RANGE);
	assert_true(r.base >= 0x8000);
	assert_true(r.base + r.n <= 65534);
	assert_int_not_equal(choose(map, map, 78).base, r.base);
}

static void
ids_must_be_in_both_maps(void **state)
{
	struct kn_uid_range r =
	    choose("0 1000 1\n1 100000 65536\n", "0 1000 1\n1 100000 5000\n", 9);

	(void)state;
	assert_true(r.base >= 1000);
	assert_true(r.base + r.n <= 5001);
}

static void
few_ids_are_all_taken_but_never_zero(void **state)
{
	struct kn_uid_range r = choose("0 1000 1\n1 100000 3\n", "0 5 10\n", 9);

	(void)state;
	assert_int_equal(r.base, 1);
	assert_int_equal(r.n, 3);
}

static void
only_uid_zero_is_refused(void **state)
{
	struct kn_uid_range r;
	struct kn_err e = { 0 };

	(void)state;
	assert_int_equal(kn_uid_choose("0 1000 1\n", "0 1000 1\n", 9, &r, &e), -1);
	assert_int_equal(e.kind, KN_EK_HOST);
	assert_int_equal(kn_uid_choose("0 0 1\n65534 65534 1\n", FULL, 9, &r, &e), -1);
	assert_int_equal(kn_uid_choose("", "", 9, &r, &e), -1);
	assert_int_equal(kn_uid_choose("garbage", "0 0", 9, &r, &e), -1);
}

static void
full_map_is_told_from_others(void **state)
{
	(void)state;
	assert_true(kn_uid_map_is_full(FULL));
	assert_false(kn_uid_map_is_full("0 0 65536\n"));
	assert_false(kn_uid_map_is_full("0 0 1\n1 1 4294967294\n"));
	assert_false(kn_uid_map_is_full(""));
}

static void
id_map_swaps_caller_and_worker_and_keeps_the_others(void **state)
{
	char buf[256];

	(void)state;
	kn_idmap_text(buf, sizeof(buf), 0, 5000, false);
	assert_string_equal(buf, "0 5000 1\n");
	kn_idmap_text(buf, sizeof(buf), 0, 5000, true);
	assert_string_equal(buf, "0 5000 1\n1 1 4999\n5001 5001 4294962294\n");
	kn_idmap_text(buf, sizeof(buf), 1000, 5000, true);
	assert_string_equal(
	    buf, "1000 5000 1\n0 0 1000\n1001 1001 3999\n5001 5001 4294962294\n");
}

/* With namespaces or without them (no CAP_SYS_ADMIN): where uids are what tells workers
 * apart, all that has one is ended with its worker. */
static void
two_pools_of_a_process_share_no_uid(void **state)
{
	(void)state;
	for (int root = 0; root < 2; root++) {
		struct kn_host h[2];
		struct kn_ids ids[2];
		struct knit_error e;

		for (int i = 0; i < 2; i++) {
			h[i] = (struct kn_host){ .ids = true,
				.root = root,
				.worker_uid_base = 5000,
				.worker_uid_n = KN_UID_RANGE };
			assert_int_equal(kn_ids_take(&h[i], 4, &ids[i], &e), 0);
			assert_int_equal(h[i].worker_uid_n, 4);
		}
		assert_true(h[0].worker_uid_base + 4 <= h[1].worker_uid_base);
		for (int i = 0; i < 2; i++)
			kn_ids_give_back(&ids[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(initial_namespace_gives_each_supervisor_its_own_range),
		cmocka_unit_test(container_with_16_bit_ids_gives_the_upper_half),
		cmocka_unit_test(ids_must_be_in_both_maps),
		cmocka_unit_test(few_ids_are_all_taken_but_never_zero),
		cmocka_unit_test(only_uid_zero_is_refused),
		cmocka_unit_test(full_map_is_told_from_others),
		cmocka_unit_test(id_map_swaps_caller_and_worker_and_keeps_the_others),
		cmocka_unit_test(two_pools_of_a_process_share_no_uid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
