/* tests/unit/test_ipc_payload.c: two live payloads never share a byte, whatever the
 * consumer writes into the freed word. */
#include "tests/unit/ipc_test.h"

#include "ipc/payload.h"
#include "ipc/shm.h"

static struct kn_payload p;
static uint32_t freed;

static int
start(void **state)
{
	(void)state;
	freed = 0;
	kn_payload_init(&p, 1 << 20);
	return 0;
}

static void
areas_are_rounded_to_lines_and_lowest_first(void **state)
{
	uint64_t off[3];
	int a, b, c;

	(void)state;
	a = kn_payload_alloc(&p, &freed, 1, &off[0]);
	b = kn_payload_alloc(&p, &freed, 65, &off[1]);
	c = kn_payload_alloc(&p, &freed, 64, &off[2]);
	assert_int_equal(off[0], 0);
	assert_int_equal(off[1], 64);
	assert_int_equal(off[2], 64 + 128);
	assert_true(a != b && b != c && a != c);
	kn_payload_free(&freed, b);
	b = kn_payload_alloc(&p, &freed, 128, &off[1]);
	assert_int_equal(off[1], 64); /* the gap, warm, and not the end */
	kn_payload_undo(&p, b);
	b = kn_payload_alloc(&p, &freed, 129, &off[1]);
	assert_int_equal(off[1], 64 + 128 + 64); /* too large for the gap */
	kn_payload_undo(&p, a);
	a = kn_payload_alloc(&p, &freed, 1, &off[0]);
	assert_int_equal(off[0], 0);
}

static void
it_is_full_at_32_areas_or_at_its_bytes(void **state)
{
	uint64_t off = 77;
	int area[KN_AREAS];

	(void)state;
	for (int i = 0; i < KN_AREAS; i++)
		assert_true((area[i] = kn_payload_alloc(&p, &freed, 64, &off)) >= 0);
	off = 77;
	assert_int_equal(kn_payload_alloc(&p, &freed, 64, &off), -1);
	assert_int_equal(off, 77);
	kn_payload_free(&freed, area[9]);
	assert_int_equal(kn_payload_alloc(&p, &freed, 64, &off), area[9]);

	kn_payload_init(&p, 1 << 20);
	assert_true(kn_payload_alloc(&p, &freed, 1 << 20, &off) >= 0);
	assert_int_equal(kn_payload_alloc(&p, &freed, 1, &off), -1);
	kn_payload_init(&p, 1 << 20);
	assert_int_equal(kn_payload_alloc(&p, &freed, (1 << 20) + 1, &off), -1);
	assert_int_equal(kn_payload_alloc(&p, &freed, UINT64_MAX, &off), -1);
	assert_int_equal(kn_payload_alloc(&p, &freed, 0, &off), -1);
	kn_payload_init(&p, 0);
	assert_int_equal(kn_payload_alloc(&p, &freed, 1, &off), -1);
}

static void
freeing_does_not_disturb_what_others_freed(void **state)
{
	uint64_t off;
	int a, b;

	(void)state;
	a = kn_payload_alloc(&p, &freed, 64, &off);
	b = kn_payload_alloc(&p, &freed, 64, &off);
	kn_payload_free(&freed, a);
	kn_payload_free(&freed, b);
	assert_int_equal(freed, 1u << a | 1u << b);
	assert_true(kn_payload_alloc(&p, &freed, 1 << 20, &off) >= 0);
	kn_payload_free(&freed, -1);
	kn_payload_free(&freed, KN_AREAS);
	assert_int_equal(freed, 1u << a | 1u << b);
	kn_payload_undo(&p, -1);
	kn_payload_undo(&p, KN_AREAS);
}

static void
a_lie_about_areas_that_are_not_live_frees_nothing(void **state)
{
	uint64_t off;
	int a = kn_payload_alloc(&p, &freed, 1 << 19, &off);

	(void)state;
	assert_int_equal(a, 0);
	freed ^= 0xfffffffe; /* all but ours */
	assert_true(kn_payload_alloc(&p, &freed, 1 << 19, &off) >= 0);
	assert_int_equal(off, 1 << 19);
	assert_int_equal(kn_payload_alloc(&p, &freed, 64, &off), -1);
	freed ^= 0xfffffffc;
	assert_int_equal(kn_payload_alloc(&p, &freed, 64, &off), -1);
}

static void
check_disjoint(void)
{
	for (int i = 0; i < KN_AREAS; i++) {
		if (!(p.live >> i & 1))
			continue;
		assert_true(p.off[i] % KN_LINE == 0);
		assert_true(p.off[i] + p.len[i] <= p.area_bytes);
		for (int k = 0; k < i; k++)
			if (p.live >> k & 1)
				assert_true(p.off[k] + p.len[k] <= p.off[i] ||
					    p.off[i] + p.len[i] <= p.off[k]);
	}
}

static uint32_t
rnd(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

static void
live_areas_stay_disjoint_under_any_freed_word(void **state)
{
	uint32_t seed = 2463534242u;
	uint64_t off;
	unsigned got = 0;

	(void)state;
	kn_payload_init(&p, 100 * KN_LINE);
	for (int i = 0; i < 200000; i++) {
		uint32_t r = rnd(&seed);
		int area = kn_payload_alloc(&p, &freed, r % 2000, &off);

		if (area >= 0) {
			got++;
			assert_int_equal(p.off[area], off);
			assert_true(off + r % 2000 <= p.area_bytes);
		}
		check_disjoint();
		if (r >> 30 == 0)
			freed = rnd(&seed); /* scribbled */
		else if (r >> 30 == 1)
			kn_payload_undo(&p, (int)(r >> 8 & 31));
		else if (p.live)
			kn_payload_free(&freed, __builtin_ctz(p.live));
	}
	assert_true(got > 10000);
}

/* ---- two processes ---- */

struct crossing {
	uint32_t full;	/* area + 1 of a filled one, 0: none */
	uint32_t freed; /* the word under test */
	uint64_t off, n;
	uint8_t bytes[1 << 16];
};
enum { ROUNDS = 20000 };

static int
consume(void *arg)
{
	struct crossing *x = arg;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t area;

		while ((area = kn_shm_load32_acquire(&x->full)) == 0)
			sched_yield();
		for (uint64_t k = 0; k < x->n; k++)
			if (x->bytes[x->off + k] != (uint8_t)i)
				return 1;
		kn_shm_store32_release(&x->full, 0);
		kn_payload_free(&x->freed, (int)area - 1);
	}
	return 0;
}

static void
a_payload_is_not_reused_before_its_consumer_freed_it(void **state)
{
	struct crossing *x = shared_notes(sizeof *x);
	pid_t pid = start_child(consume, x);
	uint32_t seed = 88172645;
	int status;

	(void)state;
	kn_payload_init(&p, sizeof x->bytes);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint64_t n = rnd(&seed) % 3000 + 1, off;
		int area;

		while ((area = kn_payload_alloc(&p, &x->freed, n, &off)) < 0)
			sched_yield();
		memset(x->bytes + off, (int)(uint8_t)i, n);
		while (kn_shm_load32_acquire(&x->full)) {
			if (waitpid(pid, &status, WNOHANG) == pid)
				fail_msg("the consumer ended: %d", status);
			sched_yield();
		}
		x->off = off;
		x->n = n;
		kn_shm_store32_release(&x->full, (uint32_t)area + 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	munmap(x, sizeof *x);
}

static void
an_idle_area_tells_how_much_of_it_was_used(void **state)
{
	uint64_t off;
	int a, b;

	(void)state;
	assert_int_equal(kn_payload_idle(&p, &freed), 0);
	a = kn_payload_alloc(&p, &freed, 1000, &off);
	b = kn_payload_alloc(&p, &freed, 1000, &off);
	kn_payload_free(&freed, b);
	assert_int_equal(kn_payload_idle(&p, &freed), 0); /* the first one lives */
	kn_payload_free(&freed, a);
	assert_int_equal(kn_payload_idle(&p, &freed), 2048);
	assert_int_equal(kn_payload_idle(&p, &freed), 0);
	a = kn_payload_alloc(&p, &freed, 64, &off);
	kn_payload_undo(&p, a);
	assert_int_equal(kn_payload_idle(&p, &freed), 64);
}

int
main(void)
{
#define FRESH(t) cmocka_unit_test_setup(t, start)
	const struct CMUnitTest tests[] = {
		FRESH(areas_are_rounded_to_lines_and_lowest_first),
		FRESH(it_is_full_at_32_areas_or_at_its_bytes),
		FRESH(freeing_does_not_disturb_what_others_freed),
		FRESH(a_lie_about_areas_that_are_not_live_frees_nothing),
		FRESH(live_areas_stay_disjoint_under_any_freed_word),
		FRESH(an_idle_area_tells_how_much_of_it_was_used),
		FRESH(a_payload_is_not_reused_before_its_consumer_freed_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
