/* tests/unit/test_ipc_claim_map.c: what a claimant's process can reach of a shared
 * bank: it reads all of it, and writes its own words. Asked of the kernel, by touching.
 */
#include "tests/unit/ipc_test.h"

#include "ipc/claim.h"
#include "ipc/offer.h"

enum { N = 40, ME = 25 }; /* two banks of 20: claimant 5 of bank 1 */

static struct kn_arena arena;
static int ro = -1;

static int
start(void **state)
{
	struct kn_layout l;
	struct kn_err e = { 0 };

	(void)state;
	assert_int_equal(kn_layout_of(N, 4096, 4096, &l), 0);
	assert_int_equal(kn_layout_share(&l, N, 8192), 0);
	if (kn_arena_open(&arena, &l, pool_id, &e) < 0 ||
	    kn_arena_readonly(&arena, &ro, &e) < 0)
		fail_msg("%s", e.msg);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	kn_fd_close(&ro);
	kn_arena_close(&arena);
	return 0;
}

static bool cas_mask;

static int
map_it(struct kn_bank *out, struct kn_map *m)
{
	struct kn_err e = { 0 };
	int sealed;

	if (kn_arena_map_bank(
		arena.fd, ro, &arena.layout, pool_id, ME, cas_mask, m, &sealed, &e) < 0)
		return -1;
	kn_bank_at(m->p, &arena.layout, 1, out);
	close(arena.fd);
	close(ro);
	return 0;
}

/* In a child: write at the place that arg names. */
enum place { HEAD, OWNERS, SLOTS, PEER, AREA, OWN, PLACES };
static uint8_t *
at(const struct kn_bank *b, enum place p)
{
	switch (p) {
	case HEAD:
		return (void *)b->head;
	case OWNERS:
		return (void *)b->owners;
	case SLOTS:
		return (void *)b->slots;
	case PEER:
		return (void *)kn_bank_own(b, 6);
	case AREA:
		return b->area;
	case PLACES:
	case OWN:
		break;
	}
	return (void *)kn_bank_own(b, 5);
}

static int
write_at(void *arg)
{
	struct kn_bank b;
	struct kn_map m;

	if (map_it(&b, &m) < 0)
		return 1;
	*(volatile uint8_t *)at(&b, *(enum place *)arg) = 1;
	return 0;
}

static int
read_all(void *arg)
{
	struct kn_bank b;
	struct kn_map m;
	unsigned sum = 0;

	(void)arg;
	if (map_it(&b, &m) < 0)
		return 1;
	for (enum place p = HEAD; p < PLACES; p++)
		sum += *(volatile uint8_t *)at(&b, p);
	return (int)sum;
}

static int
make_writable(void *arg)
{
	struct kn_bank b;
	struct kn_map m;
	uint8_t *p;

	if (map_it(&b, &m) < 0)
		return 1;
	p = at(&b, *(enum place *)arg);
	if (mprotect(p - (uintptr_t)p % KN_PAGE, KN_PAGE, PROT_READ | PROT_WRITE) == 0)
		return 2;
	return 0;
}

static void
a_claimant_writes_its_own_words_only(void **state)
{
	(void)state;
	for (int c = 0; c < 2; c++) {
		cas_mask = c;
		for (enum place p = HEAD; p < PLACES; p++) {
			int status = in_child(write_at, &p);

			if (p == OWN || (p == OWNERS && cas_mask)) {
				assert_true(WIFEXITED(status));
				assert_int_equal(WEXITSTATUS(status), 0);
			} else {
				assert_true(WIFSIGNALED(status));
				assert_int_equal(WTERMSIG(status), SIGSEGV);
			}
		}
	}
	/* and it was its own page in the supervisor's view too */
	struct kn_bank b;
	kn_arena_bank(&arena, 1, &b);
	assert_int_equal(b.claimant_n, 20);
	assert_int_equal(kn_bank_own(&b, 5)->word & 0xff, 1);
	for (uint32_t c = 0; c < 20; c++)
		if (c != 5)
			assert_int_equal(kn_bank_own(&b, c)->word, 0);
}

static void
it_cannot_make_the_rest_writable(void **state)
{
	(void)state;
	cas_mask = false;
	for (enum place p = HEAD; p <= AREA; p++)
		assert_int_equal(in_child(make_writable, &p), 0);
	assert_int_equal(in_child(read_all, NULL), 0);
}

static int
map_from_a_writable_one(void *arg)
{
	struct kn_err e = { 0 };
	struct kn_map m;
	int sealed;

	(void)arg;
	if (kn_arena_map_bank(arena.fd, arena.fd, &arena.layout, pool_id, 0, false, &m,
		&sealed, &e) == 0)
		return 1;
	return e.kind == KN_EK_PROTOCOL ? 0 : 2;
}

static void
a_descriptor_that_can_write_is_refused(void **state)
{
	struct kn_err e = { 0 };
	struct kn_map m;
	int sealed;

	(void)state;
	assert_int_equal(in_child(map_from_a_writable_one, NULL), 0);
	assert_int_equal(kn_arena_map_bank(arena.fd, ro, &arena.layout, pool_id, N,
			     false, &m, &sealed, &e),
	    -1);
	assert_int_equal(kn_arena_back_bank(&arena, 2, 0, 1, &e), -1);
	assert_int_equal(kn_arena_back_bank(&arena, 1, 8192, 1, &e), -1);
	assert_int_equal(kn_arena_back_bank(&arena, 1, 8191, 1, &e), 0);
}

static int
fork_and_look(void *arg)
{
	struct kn_bank b;
	struct kn_map m;
	pid_t pid;
	int status;

	(void)arg;
	if (map_it(&b, &m) < 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		child_defaults();
		_exit(*(volatile uint8_t *)b.slots);
	}
	if (waitpid(pid, &status, 0) != pid)
		return 2;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? 0 : 3;
}

static void
its_children_do_not_have_it(void **state)
{
	(void)state;
	assert_int_equal(in_child(fork_and_look, NULL), 0);
}

/* The whole way: a process claims through its own mapping, and answers by exit code. */
static int
claim_one(void *arg)
{
	static struct kn_claimed got[KN_SLOTS];
	static struct kn_claimant k;
	struct kn_bank b;
	struct kn_map m;

	(void)arg;
	if (map_it(&b, &m) < 0 ||
	    kn_claimant_init(
		&k, &b, 5, cas_mask ? KN_CLAIM_CAS_MASK : KN_CLAIM_DEKKER, 1) < 0 ||
	    kn_claim(&k, got, KN_SLOTS) != 1)
		return 1;
	return got[0].head.payload_len == 5 &&
		       memcmp(got[0].inline_bytes, "hello", 5) == 0
		   ? 0
		   : 2;
}

static void
a_process_claims_through_its_own_mapping(void **state)
{
	static struct kn_offer o;
	struct kn_slot_head h = { .kind = KN_REQ_CALL,
		.task = 7,
		.gen = 1,
		.area = KN_AREA_INLINE,
		.payload_len = 5 };
	struct kn_taken taken[KN_SLOTS];
	struct kn_bank b;

	(void)state;
	kn_arena_bank(&arena, 1, &b);
	for (int c = 0; c < 2; c++) {
		cas_mask = c;
		memset(b.head, 0, sizeof *b.head);
		memset(kn_bank_own(&b, 5), 0, sizeof(struct kn_own));
		memset(b.owners, 0, sizeof *b.owners);
		assert_int_equal(
		    kn_offer_init(&o, &b, c ? KN_CLAIM_CAS_MASK : KN_CLAIM_DEKKER, 1),
		    0);
		kn_offer_join(&o, 5);
		kn_offer_put(&o, kn_offer_slot(&o), &h, "hello");
		kn_offer_publish(&o);
		assert_int_equal(in_child(claim_one, NULL), 0);
		assert_int_equal(kn_offer_poll(&o, taken), 1);
		assert_int_equal(taken[0].claimant, 5);
		assert_int_equal(taken[0].task, 7);
	}
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, start, stop)
	const struct CMUnitTest tests[] = {
		T(a_claimant_writes_its_own_words_only),
		T(it_cannot_make_the_rest_writable),
		T(a_descriptor_that_can_write_is_refused),
		T(its_children_do_not_have_it),
		T(a_process_claims_through_its_own_mapping),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
