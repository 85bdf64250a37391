/* tests/unit/test_ipc_job.c: a job decodes without allocation and in bounds; a result
 * from a liar is refused by the name of its field. */
#include "tests/unit/ipc_test.h"

#include "ipc/job.h"

static const char *const argv3[] = { "prog", "", "a b\n\xff" };
static const char *const env2[] = { "A=1", "EMPTY=" };
static const char *const keep2[] = { "main", "out/x" };
static const char *const globs1[] = { "out/*.png" };
static const struct kn_job_file files3[] = {
	{ "main.c", 0644, "int x;\0y", 8, -1 },
	{ "d/empty", 0, NULL, 0, -1 },
	{ "by-fd", 0777, NULL, 0, 5 },
};

static struct kn_job
sample(void)
{
	struct kn_job j = {
		.flags = KN_JOB_PTY,
		.argv = argv3,
		.argv_n = 3,
		.env = env2,
		.env_n = 2,
		.cwd = "/task/sub",
		.files = files3,
		.file_n = 3,
		.keep = keep2,
		.keep_n = 2,
		.collect = globs1,
		.collect_n = 1,
		.rows = 24,
		.cols = 65535,
		.limits = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, UINT32_MAX },
	};
	return j;
}

static _Alignas(16) uint8_t room[1 << 16];

static size_t
encode(const struct kn_job *j, uint8_t *buf, size_t cap)
{
	size_t n = kn_job_encode(j, NULL, 0);

	assert_true(n <= cap);
	assert_int_equal(kn_job_encode(j, buf, cap), n);
	return n;
}

static void
a_job_arrives_as_it_was_sent(void **state)
{
	struct kn_job a = sample(), b;
	uint8_t buf[2048];
	size_t n = encode(&a, buf, sizeof buf);

	(void)state;
	assert_int_equal(kn_job_decode(buf, n, &b, room, KN_JOB_ROOM(n)), 0);
	assert_int_equal(b.flags, a.flags);
	assert_int_equal(b.argv_n, 3);
	assert_int_equal(b.env_n, 2);
	for (int i = 0; i < 3; i++)
		assert_string_equal(b.argv[i], argv3[i]);
	for (int i = 0; i < 2; i++)
		assert_string_equal(b.env[i], env2[i]);
	assert_null(b.argv[3]); /* as execve wants them */
	assert_null(b.env[2]);
	assert_string_equal(b.cwd, "/task/sub");
	assert_int_equal(b.file_n, 3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(b.files[i].path, files3[i].path);
		assert_int_equal(b.files[i].mode, files3[i].mode);
		assert_int_equal(b.files[i].byte_n, files3[i].byte_n);
		assert_int_equal(b.files[i].fd_index, files3[i].fd_index);
	}
	assert_memory_equal(b.files[0].bytes, "int x;\0y", 8);
	assert_int_equal(b.keep_n, 2);
	assert_string_equal(b.keep[1], "out/x");
	assert_int_equal(b.collect_n, 1);
	assert_string_equal(b.collect[0], "out/*.png");
	assert_int_equal(b.rows, 24);
	assert_int_equal(b.cols, 65535);
	assert_memory_equal(&a.limits, &b.limits,
	    offsetof(struct kn_job_limits, grace_ms) + sizeof a.limits.grace_ms);
}

static void
a_job_without_a_directory_starts_in_task(void **state)
{
	struct kn_job a = { .argv = argv3, .argv_n = 1 }, b;
	uint8_t buf[512];
	size_t n = encode(&a, buf, sizeof buf);

	(void)state;
	assert_int_equal(kn_job_decode(buf, n, &b, room, KN_JOB_ROOM(n)), 0);
	assert_string_equal(b.cwd, "/task");
	assert_int_equal(b.env_n + b.file_n + b.keep_n + b.collect_n, 0);
	assert_null(b.env[0]);
}

static void
a_job_cut_anywhere_is_refused(void **state)
{
	struct kn_job a = sample(), b;
	uint8_t buf[2048];
	size_t n = encode(&a, buf, sizeof buf);

	(void)state;
	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *p = malloc(cut ? cut : 1);

		memcpy(p, buf, cut);
		assert_int_equal(kn_job_decode(p, cut, &b, room, sizeof room), -1);
		free(p);
	}
	assert_int_equal(kn_job_decode(buf, n + 1, &b, room, sizeof room), -1);
}

static int
decodes(const struct kn_job *j)
{
	struct kn_job b;
	uint8_t buf[2048];
	size_t n = encode(j, buf, sizeof buf);

	return kn_job_decode(buf, n, &b, room, KN_JOB_ROOM(n));
}

static void
paths_that_lead_out_of_task_are_refused(void **state)
{
	static const struct {
		const char *path;
		int ok;
	} rows[] = {
		{ "a", 0 },
		{ "a/b.c", 0 },
		{ ".hidden", 0 },
		{ "..x/y..", 0 },
		{ "...", 0 },
		{ "", -1 },
		{ "/", -1 },
		{ "/etc/passwd", -1 },
		{ "..", -1 },
		{ "../x", -1 },
		{ "a/../../x", -1 },
		{ "a/..", -1 },
		{ ".", -1 },
		{ "a/./b", -1 },
		{ "a//b", -1 },
		{ "a/", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct kn_job_file f = { rows[i].path, 0644, "", 0, -1 };
		struct kn_job a = { .argv = argv3, .argv_n = 1 }, b = a, c = a;

		a.files = &f;
		a.file_n = 1;
		assert_int_equal(decodes(&a), rows[i].ok);
		b.keep = &rows[i].path;
		b.keep_n = 1;
		assert_int_equal(decodes(&b), rows[i].ok);
		c.collect = &rows[i].path;
		c.collect_n = 1;
		assert_int_equal(decodes(&c), rows[i].ok);
	}
}

static void
a_job_out_of_range_is_refused(void **state)
{
	struct kn_job_file f = { "x", 0644, "", 0, -1 };
	struct kn_job j;

	(void)state;
	j = sample();
	j.argv_n = 0;
	assert_int_equal(decodes(&j), -1);
	j = sample();
	j.cwd = "task";
	assert_int_equal(decodes(&j), -1);
	j = sample();
	j.cwd = "";
	assert_int_equal(decodes(&j), -1);
	j = sample();
	j.flags = 4;
	assert_int_equal(decodes(&j), -1);
	j = sample();
	j.files = &f;
	j.file_n = 1;
	assert_int_equal(decodes(&j), 0);
	f.mode = 01777; /* no setuid, setgid, sticky */
	assert_int_equal(decodes(&j), -1);
	f.mode = 0644;
	f.fd_index = KN_JOB_FILES_BY_FD_MAX - 1;
	assert_int_equal(decodes(&j), 0);
	f.fd_index++;
	assert_int_equal(decodes(&j), -1);
}

static void
a_room_too_small_is_a_failure_and_the_promised_room_is_enough(void **state)
{
	enum { MANY = 500 };
	static const char *empty[MANY];
	static struct kn_job_file tiny[MANY];
	static uint8_t buf[32768];
	struct kn_job a = { .argv = empty, .argv_n = MANY }, b;
	size_t n;

	(void)state;
	/* The most elements for the fewest bytes. */
	for (int i = 0; i < MANY; i++) {
		empty[i] = "";
		tiny[i] = (struct kn_job_file){ "a", 0, NULL, 0, -1 };
	}
	n = encode(&a, buf, sizeof buf);
	assert_int_equal(kn_job_decode(buf, n, &b, room, KN_JOB_ROOM(n)), 0);
	a.env = empty;
	a.env_n = MANY;
	a.argv_n = 1;
	a.files = tiny;
	a.file_n = MANY;
	n = encode(&a, buf, sizeof buf);
	assert_true(KN_JOB_ROOM(n) <= sizeof room);
	assert_int_equal(kn_job_decode(buf, n, &b, room, KN_JOB_ROOM(n)), 0);
	for (size_t small = 0; small < MANY * sizeof(char *); small += 8) {
		uint8_t *p = aligned_alloc(16, (small + 15) / 16 * 16 + 16);

		assert_int_equal(kn_job_decode(buf, n, &b, p, small), -1);
		free(p);
	}
}

static void
no_damage_to_a_job_leads_outside_of_it(void **state)
{
	struct kn_job a = sample(), b;
	uint8_t buf[2048];
	size_t n = encode(&a, buf, sizeof buf), sum = 0;
	uint32_t seed = 99;
	unsigned good = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint8_t *p = malloc(n);

		memcpy(p, buf, n);
		for (int k = i % 3; k >= 0; k--) {
			seed = seed * 1664525 + 1013904223;
			p[(seed >> 8) % n] = (uint8_t)(seed >> 24);
		}
		if (kn_job_decode(p, n, &b, room, KN_JOB_ROOM(n)) == 0) {
			good++;
			for (uint32_t k = 0; k < b.argv_n; k++)
				sum += strlen(b.argv[k]);
			for (uint32_t k = 0; k < b.file_n; k++) {
				sum += strlen(b.files[k].path);
				for (size_t m = 0; m < b.files[k].byte_n; m++)
					sum += ((const uint8_t *)b.files[k].bytes)[m];
			}
		}
		free(p);
	}
	assert_true(good > 0 && sum > 0);
}

/* ---- result ---- */

static void
set_detail(struct kn_job_result *r, const char *s)
{
	memset(r->detail, 0, sizeof r->detail);
	memcpy(r->detail, s, strlen(s));
}

static struct kn_job_result
ended(void)
{
	struct kn_job_result r;

	memset(&r, 0, sizeof r);
	r.cause = KN_CAUSE_CPU;
	r.step = KN_EXEC_STARTED;
	r.wait_status = SIGKILL;
	r.begun_ns = 100;
	r.ended_ns = 100;
	r.user_us = 1;
	r.system_us = 2;
	r.max_rss = 3;
	r.memory_peak = 4;
	r.pids_peak = 5;
	r.oom_kills = 6;
	r.oom_outside = 1;
	r.file_n = 7;
	set_detail(&r, "main.c");
	return r;
}

static void
a_result_arrives_as_it_was_sent_and_always_fits_inline(void **state)
{
	struct kn_job_result a = ended(), b;
	uint8_t buf[KN_JOB_RESULT_MAX], again[KN_JOB_RESULT_MAX];
	const char *field = "none";
	size_t n;

	(void)state;
	n = kn_job_result_encode(&a, buf, sizeof buf);
	assert_true(n <= sizeof buf);
	memset(&b, 0xff, sizeof b);
	assert_int_equal(kn_job_result_decode(buf, n, &b, &field), 0);
	assert_string_equal(field, "none");
	/* All at once: what was decoded encodes to the same bytes. */
	assert_int_equal(kn_job_result_encode(&b, again, sizeof again), n);
	assert_memory_equal(buf, again, n);
	assert_int_equal(b.wait_status, SIGKILL);
	assert_int_equal(b.file_n, 7);
	memset(a.detail, 'x', sizeof a.detail); /* longest, and not terminated */
	n = kn_job_result_encode(&a, buf, sizeof buf);
	assert_true(n <= sizeof buf);
	assert_int_equal(kn_job_result_decode(buf, n, &b, &field), 0);
	assert_int_equal(strlen(b.detail), sizeof b.detail - 1);
}

static void
an_honest_result_about_a_hostile_name_is_no_lie(void **state)
{
	struct kn_job_result a = ended(), b;
	uint8_t buf[KN_JOB_RESULT_MAX];
	const char *field;
	size_t n;

	(void)state;
	set_detail(&a, "\x1b[2J\xff name");
	n = kn_job_result_encode(&a, buf, sizeof buf);
	assert_int_equal(kn_job_result_decode(buf, n, &b, &field), 0);
	assert_string_equal(b.detail, "\\x1b[2J\\xff name");
	memset(a.detail, 0x01, sizeof a.detail);
	n = kn_job_result_encode(&a, buf, sizeof buf);
	assert_true(n <= sizeof buf);
	assert_int_equal(kn_job_result_decode(buf, n, &b, &field), 0);
}

static void
refused(const struct kn_job_result *r, const char *want)
{
	struct kn_job_result b, before;
	uint8_t buf[KN_JOB_RESULT_MAX];
	const char *field = NULL;
	size_t n = kn_job_result_encode(r, buf, sizeof buf);

	memset(&b, 0x22, sizeof b);
	memcpy(&before, &b, sizeof b);
	assert_int_equal(kn_job_result_decode(buf, n, &b, &field), -1);
	assert_string_equal(field, want);
	assert_memory_equal(&b, &before, sizeof b);
}

static void
a_result_out_of_range_is_refused_by_field(void **state)
{
	struct kn_job_result r;

	(void)state;
	r = ended();
	r.cause = KN_CAUSE_N;
	refused(&r, "cause");
	r = ended();
	r.cause = (enum kn_cause) - 1;
	refused(&r, "cause");
	r = ended();
	r.step = KN_EXEC_STEP_N;
	refused(&r, "step");
	r = ended();
	r.oom_outside = 2;
	refused(&r, "oom_outside");
	r = ended();
	r.oom_kills = 0;
	refused(&r, "oom_outside");
	r = ended();
	r.sys = 4096;
	refused(&r, "sys");
	r = ended();
	r.begun_ns = 101;
	refused(&r, "ended_ns");
	r = ended();
	r.user_us = (1ull << 53) + 1;
	refused(&r, "user_us");
	r = ended();
	r.system_us = UINT64_MAX;
	refused(&r, "system_us");
	r = ended();
	r.max_rss = UINT64_MAX;
	refused(&r, "max_rss");
	r = ended();
	r.memory_peak = UINT64_MAX;
	refused(&r, "memory_peak");
	r = ended();
	r.pids_peak = UINT64_MAX;
	refused(&r, "pids_peak");
}

static void
only_forms_that_the_kernel_makes_are_a_wait_status(void **state)
{
	static const int good[] = { 0, 0x100, 0xff00, SIGKILL, SIGSEGV | 0x80, 64 };
	static const int bad[] = { 0x7f, 0x137f, 0xffff, 0x80, 65, 0x0109, 0x10000,
		0x100ff00, -1, (int)0x80000000 };

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		struct kn_job_result r = ended(), b;
		uint8_t buf[KN_JOB_RESULT_MAX];
		const char *field;
		size_t n;

		r.wait_status = good[i];
		n = kn_job_result_encode(&r, buf, sizeof buf);
		assert_int_equal(kn_job_result_decode(buf, n, &b, &field), 0);
		assert_true(WIFEXITED(b.wait_status) || WIFSIGNALED(b.wait_status));
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct kn_job_result r = ended();

		r.wait_status = bad[i];
		refused(&r, "wait_status");
	}
}

static void
a_forged_detail_is_refused(void **state)
{
	struct kn_job_result a = ended(), b;
	uint8_t buf[KN_JOB_RESULT_MAX], *at;
	const char *field = NULL;
	size_t n = kn_job_result_encode(&a, buf, sizeof buf);

	(void)state;
	at = memmem(buf, n, "main.c", 7);
	assert_non_null(at);
	at[0] = 0x1b;
	assert_int_equal(kn_job_result_decode(buf, n, &b, &field), -1);
	assert_string_equal(field, "detail");
	at[0] = 'm';
	at[6] = 'x'; /* not terminated */
	assert_int_equal(kn_job_result_decode(buf, n, &b, &field), -1);
	at[6] = 0;
	at[2] = 0; /* NUL inside */
	assert_int_equal(kn_job_result_decode(buf, n, &b, &field), -1);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(kn_job_result_decode(buf, cut, &b, &field), -1);
	buf[0] ^= 1; /* another version */
	at[2] = 'i';
	assert_int_equal(kn_job_result_decode(buf, n, &b, &field), -1);
	assert_string_equal(field, "version");
}

static void
every_step_has_a_name(void **state)
{
	(void)state;
	for (int s = 0; s < KN_EXEC_STEP_N; s++)
		assert_string_not_equal(
		    kn_exec_step_name((enum kn_exec_step)s), "unknown step");
	assert_string_equal(kn_exec_step_name(KN_EXEC_STEP_N), "unknown step");
	assert_string_equal(kn_exec_step_name((enum kn_exec_step) - 1), "unknown step");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_arrives_as_it_was_sent),
		cmocka_unit_test(a_job_without_a_directory_starts_in_task),
		cmocka_unit_test(a_job_cut_anywhere_is_refused),
		cmocka_unit_test(paths_that_lead_out_of_task_are_refused),
		cmocka_unit_test(a_job_out_of_range_is_refused),
		cmocka_unit_test(
		    a_room_too_small_is_a_failure_and_the_promised_room_is_enough),
		cmocka_unit_test(no_damage_to_a_job_leads_outside_of_it),
		cmocka_unit_test(
		    a_result_arrives_as_it_was_sent_and_always_fits_inline),
		cmocka_unit_test(an_honest_result_about_a_hostile_name_is_no_lie),
		cmocka_unit_test(a_result_out_of_range_is_refused_by_field),
		cmocka_unit_test(only_forms_that_the_kernel_makes_are_a_wait_status),
		cmocka_unit_test(a_forged_detail_is_refused),
		cmocka_unit_test(every_step_has_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
