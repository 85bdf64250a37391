/* tests/unit/test_ipc_control.c: boot record, messages, stop and begun words: what is
 * malformed is refused whole. */
#include "tests/unit/ipc_test.h"

#include "ipc/control.h"
#include "ipc/shm.h"

enum { BINDS = 3, BPF_N = 5 };

static const uint64_t bpf[2][BPF_N] = { { 1, 2, 3, 4, 5 }, { 6, 7, 8, 9, 10 } };
static struct kn_boot_bind binds[BINDS] = {
	{ "/usr", 1, 2, false, true, 7, 8, true, false, false, false },
	{ "/work dir", UINT64_MAX, 4, true, true, 7, 8, true, false, false, true },
	{ .at = "/", .mask = true },
};

static struct kn_boot
sample(void)
{
	struct kn_boot b;

	memset(&b, 0, sizeof b);
	b.worker = 3;
	b.incarnation = 4;
	memcpy(b.pool_id, pool_id, sizeof b.pool_id);
	assert_int_equal(kn_layout_of(8, 65536, 4096, &b.layout), 0);
	b.flags = KN_BOOT_LANDLOCK | KN_BOOT_NEED_MSEAL;
	b.has = 1u << KN_BOOT_FD_MEM_LIMIT | 1u << KN_BOOT_FD_PIDS_PEAK;
	b.worker_n = 5;
	b.pids_overhead = 3;
	b.mem_overhead = 1 << 20;
	b.worker_mem = 1 << 30;
	b.tmp_bytes = 11;
	b.tmp_inodes = 12;
	b.shm_bytes = 13;
	b.shm_inodes = 18;
	b.task_bytes = 14;
	b.task_inodes = 15;
	b.landlock_abi = 6;
	b.collect_file_max = 16;
	b.collect_total_max = 17;
	b.collect_count_max = 18;
	b.binds = binds;
	b.bind_n = BINDS;
	b.worker_bpf = bpf[0];
	b.worker_bpf_n = BPF_N;
	b.cell_bpf = bpf[1];
	b.cell_bpf_n = BPF_N - 1;
	return b;
}

/* The encoded record, as the stub reads it. */
static size_t
encode(const struct kn_boot *b, uint8_t **out)
{
	struct kn_err e = { 0 };
	char *bytes;
	size_t n;
	int fd = -1;

	if (kn_boot_seal(b, &fd, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(
	    fcntl(fd, F_GET_SEALS) & (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW),
	    F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
	assert_int_equal(kn_fd_read_all(fd, 1 << 20, &bytes, &n, &e), 0);
	close(fd);
	*out = (uint8_t *)bytes;
	return n;
}

static void
a_boot_record_arrives_as_it_was_sent(void **state)
{
	struct kn_boot a = sample(), b;
	struct kn_boot_bind room[BINDS];
	uint8_t *rec, *again;
	size_t n = encode(&a, &rec);

	(void)state;
	memset(&b, 0xff, sizeof b);
	assert_int_equal(kn_boot_decode(rec, n, &b, room, BINDS), 0);
	assert_ptr_equal(b.binds, room);
	for (int i = 0; i < BINDS; i++) {
		assert_string_equal(room[i].at, binds[i].at);
		assert_true(room[i].dev == binds[i].dev && room[i].ino == binds[i].ino);
		assert_int_equal(room[i].writable, binds[i].writable);
		assert_int_equal(room[i].check, binds[i].check);
		assert_int_equal(room[i].overlay_bytes, binds[i].overlay_bytes);
		assert_int_equal(room[i].overlay_inodes, binds[i].overlay_inodes);
		assert_int_equal(room[i].white, binds[i].white);
		assert_int_equal(room[i].link, binds[i].link);
		assert_int_equal(room[i].mask, binds[i].mask);
		assert_int_equal(room[i].out, binds[i].out);
	}
	assert_int_equal(b.worker_bpf_n, BPF_N);
	assert_memory_equal(b.worker_bpf, bpf[0], sizeof bpf[0]);
	assert_int_equal(b.cell_bpf_n, BPF_N - 1);
	assert_memory_equal(b.cell_bpf, bpf[1], sizeof bpf[1] - 8);
	/* All the rest at once: what was decoded encodes to the same record. */
	assert_int_equal(encode(&b, &again), n);
	assert_memory_equal(rec, again, n);
	assert_int_equal(b.layout.slice_bytes, a.layout.slice_bytes);
	free(again);
	free(rec);
}

static void
a_boot_record_cut_anywhere_is_refused(void **state)
{
	struct kn_boot a = sample(), b;
	struct kn_boot_bind room[BINDS];
	uint8_t *rec;
	size_t n = encode(&a, &rec);

	(void)state;
	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *p = malloc(cut ? cut : 1);

		memcpy(p, rec, cut);
		assert_int_equal(kn_boot_decode(p, cut, &b, room, BINDS), -1);
		free(p);
	}
	rec = realloc(rec, n + 1);
	rec[n] = 0;
	assert_int_equal(kn_boot_decode(rec, n + 1, &b, room, BINDS), -1);
	free(rec);
}

static void
refused(const struct kn_boot *a)
{
	struct kn_boot b, before;
	struct kn_boot_bind room[BINDS];
	uint8_t *rec;
	size_t n = encode(a, &rec);

	memset(&b, 0x11, sizeof b);
	memcpy(&before, &b, sizeof b);
	assert_int_equal(kn_boot_decode(rec, n, &b, room, BINDS), -1);
	assert_memory_equal(&b, &before, sizeof b);
	free(rec);
}

static void
a_boot_record_out_of_range_is_refused(void **state)
{
	static struct kn_boot_bind four[BINDS + 1] = { { .at = "/" }, { .at = "/" },
		{ .at = "/" }, { .at = "/" } };
	static struct kn_boot_bind relative = { .at = "usr" };
	static uint64_t long_bpf[4097];
	struct kn_boot b;

	(void)state;
	b = sample();
	b.worker = 8;
	refused(&b);
	b = sample();
	b.flags = 1u << 31;
	refused(&b);
	b = sample();
	b.has = 1u << KN_BOOT_FD_N;
	refused(&b);
	b = sample();
	b.layout.worker_n = 0;
	refused(&b);
	b = sample();
	b.layout.submit_area_bytes = UINT64_MAX;
	refused(&b);
	b = sample();
	b.binds = four;
	b.bind_n = BINDS + 1;
	refused(&b);
	b = sample();
	b.binds = &relative;
	b.bind_n = 1;
	refused(&b);
	b = sample();
	b.worker_bpf = long_bpf;
	b.worker_bpf_n = 4097;
	refused(&b);
}

static void
no_damage_to_a_boot_record_leads_outside_of_it(void **state)
{
	struct kn_boot a = sample(), b;
	struct kn_boot_bind room[BINDS];
	uint8_t *rec;
	size_t n = encode(&a, &rec);
	uint32_t seed = 12345;
	size_t good = 0, sum = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint8_t *p = malloc(n);

		memcpy(p, rec, n);
		for (int k = i % 3; k >= 0; k--) {
			seed = seed * 1664525 + 1013904223;
			p[(seed >> 8) % n] = (uint8_t)(seed >> 24);
		}
		if (kn_boot_decode(p, n, &b, room, BINDS) == 0) {
			good++;
			for (uint32_t k = 0; k < b.bind_n; k++)
				sum += strlen(b.binds[k].at);
			for (uint32_t k = 0; k < b.worker_bpf_n * 8; k++)
				sum += ((const uint8_t *)b.worker_bpf)[k];
			assert_true(b.worker < b.layout.worker_n);
		}
		free(p);
	}
	assert_true(good > 0 && sum > 0);
	free(rec);
}

/* ---- messages ---- */

static void
a_message_is_taken_only_whole_known_and_allowed(void **state)
{
	struct {
		struct kn_msg m;
		uint8_t body[8];
	} d = { { KN_MSG_TASK, 1, 2, 3, 4, 8 }, "12345678" };
	const uint32_t task = 1u << KN_MSG_TASK, all = (1u << KN_MSG_N) - 2;
	struct kn_msg out;

	(void)state;
	memset(&out, 0x33, sizeof out);
	assert_null(kn_msg_check(&d, sizeof d - 1, task, &out));
	assert_null(kn_msg_check(&d, sizeof d.m, task, &out));
	assert_null(kn_msg_check(&d, sizeof d.m - 1, task, &out));
	assert_null(kn_msg_check(&d, 0, task, &out));
	assert_null(kn_msg_check(&d, sizeof d, all & ~task, &out));
	assert_int_equal(out.type, 0x33333333);
	assert_ptr_equal(kn_msg_check(&d, sizeof d, task, &out), d.body);
	assert_memory_equal(&out, &d.m, sizeof out);
	d.m.bytes = 7;
	assert_null(kn_msg_check(&d, sizeof d, task, &out));
	d.m.bytes = UINT32_MAX;
	assert_null(kn_msg_check(&d, sizeof d, task, &out));
	d.m.bytes = 0;
	assert_ptr_equal(kn_msg_check(&d, sizeof d.m, task, &out), d.body);
	for (uint32_t t = 0; t < 200; t++) {
		d.m.type = t;
		assert_int_equal(kn_msg_check(&d, sizeof d.m, all, &out) != NULL,
		    t >= KN_MSG_BOOT && t < KN_MSG_N);
	}
	d.m.type = 0x80000000u + KN_MSG_TASK;
	assert_null(kn_msg_check(&d, sizeof d.m, UINT32_MAX, &out));
}

static void
a_body_over_the_cap_is_refused(void **state)
{
	size_t n = sizeof(struct kn_msg) + KN_MSG_BODY_MAX + 1;
	uint8_t *p = calloc(1, n);
	struct kn_msg m = { KN_MSG_FILES, 0, 0, 0, 0, KN_MSG_BODY_MAX }, out;

	(void)state;
	memcpy(p, &m, sizeof m);
	assert_non_null(kn_msg_check(p, n - 1, 1u << KN_MSG_FILES, &out));
	m.bytes++;
	memcpy(p, &m, sizeof m);
	assert_null(kn_msg_check(p, n, 1u << KN_MSG_FILES, &out));
	free(p);
}

/* ---- words ---- */

static void
stop_is_requested_and_acknowledged_each_in_its_own_word(void **state)
{
	struct kn_control *c = shared_notes(KN_PAGE);

	(void)state;
	assert_false(kn_control_stopping(c));
	kn_control_stop(c);
	assert_true(kn_control_stopping(c));
	assert_false(kn_control_stop_acked(c));
	kn_control_ack_stop(c);
	assert_true(kn_control_stop_acked(c));
	c->stop_ack = 2; /* no acknowledgement of ours */
	assert_false(kn_control_stop_acked(c));
	munmap(c, KN_PAGE);
}

static void
the_over_word_names_one_attempt(void **state)
{
	struct kn_control *c = shared_notes(KN_PAGE);

	(void)state;
	assert_false(kn_control_is_over(c, 0, 0)); /* a gen is never 0 */
	assert_false(kn_control_is_over(c, 5, 6));
	kn_control_over(c, 5, 6);
	assert_true(kn_control_is_over(c, 5, 6));
	assert_false(kn_control_is_over(c, 5, 7));
	assert_false(kn_control_is_over(c, 4, 6));
	kn_control_begin(c, 5, 7, 1); /* the next attempt is not over */
	assert_false(kn_control_is_over(c, 5, 7));
	munmap(c, KN_PAGE);
}

static void
an_idle_worker_has_begun_nothing(void **state)
{
	struct kn_control *c = shared_notes(KN_PAGE);
	uint32_t task = 7, gen = 7;
	uint64_t ns = 7;

	(void)state;
	assert_false(kn_control_begun(c, &task, &gen, &ns));
	kn_control_begin(c, 5, 6, 1234);
	assert_true(kn_control_begun(c, &task, &gen, &ns));
	assert_int_equal(task, 5);
	assert_int_equal(gen, 6);
	assert_int_equal(ns, 1234);
	kn_control_end(c);
	task = gen = 7;
	assert_false(kn_control_begun(c, &task, &gen, &ns));
	assert_int_equal(task, 7);
	c->begun = 9ull << 32; /* a gen of 0 names no task */
	assert_false(kn_control_begun(c, &task, &gen, &ns));
	munmap(c, KN_PAGE);
}

static int
begin_and_end(void *arg)
{
	struct kn_control *c = arg;

	pin(1);
	for (uint32_t gen = 1; kn_shm_load32_acquire(&c->stop) == KN_STOP_RUN; gen++) {
		if (gen == 0)
			continue;
		kn_control_begin(c, gen ^ 0xa5a5a5a5, gen, (uint64_t)gen * 3);
		kn_control_end(c);
	}
	return 0;
}

static void
the_time_read_is_that_of_the_task_read(void **state)
{
	struct kn_control *c = shared_notes(KN_PAGE);
	pid_t pid = start_child(begin_and_end, c);
	unsigned looks = 0;
	int status;

	(void)state;
	pin(0);
	/* A fixed number of true answers: with one CPU the child must first run. */
	while (looks < 300000) {
		uint32_t task, gen;
		uint64_t ns;

		if (!kn_control_begun(c, &task, &gen, &ns)) {
			assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
			continue;
		}
		looks++;
		assert_int_equal(task, gen ^ 0xa5a5a5a5);
		assert_int_equal(ns, (uint64_t)gen * 3);
	}
	pin(-1);
	kn_control_stop(c);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	munmap(c, KN_PAGE);
}

static void
every_boot_step_has_a_name(void **state)
{
	(void)state;
	for (int s = KN_BSTEP_RECV; s < KN_BSTEP_N; s++)
		assert_string_not_equal(
		    kn_boot_step_name((enum kn_boot_step)s), "unknown step");
	assert_string_equal(kn_boot_step_name((enum kn_boot_step)0), "unknown step");
	assert_string_equal(kn_boot_step_name((enum kn_boot_step) - 1), "unknown step");
	assert_string_equal(kn_boot_step_name(KN_BSTEP_N), "unknown step");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_boot_record_arrives_as_it_was_sent),
		cmocka_unit_test(a_boot_record_cut_anywhere_is_refused),
		cmocka_unit_test(a_boot_record_out_of_range_is_refused),
		cmocka_unit_test(no_damage_to_a_boot_record_leads_outside_of_it),
		cmocka_unit_test(a_message_is_taken_only_whole_known_and_allowed),
		cmocka_unit_test(a_body_over_the_cap_is_refused),
		cmocka_unit_test(
		    stop_is_requested_and_acknowledged_each_in_its_own_word),
		cmocka_unit_test(the_over_word_names_one_attempt),
		cmocka_unit_test(an_idle_worker_has_begun_nothing),
		cmocka_unit_test(the_time_read_is_that_of_the_task_read),
		cmocka_unit_test(every_boot_step_has_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
