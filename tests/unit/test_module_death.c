/* tests/unit/test_module_death.c: knit-worker-module without a sandbox: modules that
 * cannot be loaded say why, and one that ends or crashes leaves in its lane which call
 * it was at, with those before it answered and those after it not begun. */
#include "tests/unit/module_resident.h"

static struct resident R;

static void
warm_up(void)
{
	for (int i = 0; i < 100; i++) {
		struct kn_slot_head h =
		    resident_call(&R, 1, i ? NULL : "nothing", KN_TYPE_NULL, NULL, 0);

		assert_int_equal(h.type, KN_TYPE_NULL);
	}
	while (!__atomic_load_n(&R.slice.control->parked, __ATOMIC_ACQUIRE))
		poll(NULL, 0, 1);
}

/* ---- the start ---- */

static void
refused(const struct resident_opts *o, const char *name, const char *text)
{
	struct kn_slot_head h;
	struct kn_call_error e;

	resident_start(&R, o);
	for (int i = 0; i < 2; i++) {
		h = resident_ping(&R);
		assert_int_equal(h.kind, KN_REQ_PING);
		e = resident_error(&R, &h);
		assert_string_equal(e.link[0].name, name);
		if (!strstr(e.link[0].message, text))
			fail_msg(
			    "\"%s\" says nothing of \"%s\"", e.link[0].message, text);
	}
	/* Whoever calls it all the same is told the same. */
	h = resident_call(&R, 0, "nothing", KN_TYPE_NULL, NULL, 0);
	e = resident_error(&R, &h);
	assert_string_equal(e.link[0].name, name);
	assert_int_equal(resident_stop(&R), 0);
	resident_close(&R);
}

static void
write_file(const char *path, const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
}

static void
a_module_that_cannot_be_loaded_says_why(void **state)
{
	char dir[] = "/tmp/knit-module-XXXXXX", path[64], elf[8192];
	struct resident_opts o = { .module = path };
	FILE *f = fopen(module_path("basic.so"), "re");

	(void)state;
	assert_non_null(f);
	assert_int_equal(fread(elf, 1, sizeof elf, f), sizeof elf);
	fclose(f);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/m.so", dir);
	refused(&o, "LoadError", "No such file");
	write_file(path, "no module\n", 10);
	refused(&o, "LoadError", "file too short");
	write_file(path, path, sizeof path);
	refused(&o, "LoadError", "invalid ELF header");
	elf[18] = (char)0xb7; /* e_machine: another architecture (or this one's twin) */
	elf[19] = 0x7e;
	write_file(path, elf, sizeof elf);
	refused(&o, "LoadError", "m.so");
	unlink(path);
	rmdir(dir);
	o.module = module_path("needs.so");
	refused(&o, "LoadError", "undefined symbol: knit_from_a_later_version");
}

static void
an_init_hook_that_fails_says_why(void **state)
{
	struct resident_opts o = { .init = "refuse" };

	(void)state;
	refused(&o, "InitError", "worker 0 may not start");
	o.init = "refuse-silently";
	refused(&o, "InitError", "knit_worker_init returned 3");
}

static void
a_module_that_crashes_at_its_start_answers_no_ping(void **state)
{
	struct resident_opts o = { .init = "crash" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		resident_start(&R, &o);
		assert_int_equal(resident_ping(&R).kind, 0);
		assert_int_equal(resident_status(&R), SIGSEGV);
		resident_close(&R);
		o.module = module_path("crash_early.so");
	}
}

static void
a_record_that_makes_no_sense_ends_the_process_with_a_word(void **state)
{
	struct resident_opts o = { .payload_max = 1000 };
	char said[256] = "";

	(void)state;
	resident_start(&R, &o);
	/* Not the pool that its record speaks of. */
	((struct kn_arena_head *)R.arena.map.p)->pool_id[0] ^= 1;
	if (resident_ping(&R).kind == 0) {
		assert_int_equal(WEXITSTATUS(resident_status(&R)), 70);
		assert_true(read(R.err, said, sizeof said - 1) > 0);
		assert_non_null(strstr(said, "knit-worker-module: "));
		assert_non_null(strstr(said, "header is not"));
	}
	resident_close(&R);
}

/* ---- the end ---- */

/* 31 harmless calls and one that ends the process, at any place among them. */
static void
dies_among_others(const char *name, bool (*as_expected)(int status))
{
	const struct resident_opts o = { 0 };
	uint32_t first, guilty, task = 0, gen = 0, seen = 0, claimed;
	uint64_t begun_ns;
	bool violation = false;
	struct kn_slot_head h;
	int64_t v = 5;

	resident_start(&R, &o);
	assert_int_equal(resident_ping(&R).kind, KN_REQ_PING);
	warm_up();
	first = R.next;
	guilty = first + 11;
	for (uint32_t i = 0; i < KN_SLOTS; i++) {
		bool bad = R.next == guilty;

		h = (struct kn_slot_head){ .kind = KN_REQ_CALL,
			.task = R.next++,
			.fn = bad ? 2 : 1,
			.type = KN_TYPE_I64,
			.abort = KN_NO_ABORT };
		resident_publish(&R, h, bad ? name : NULL, &v, sizeof v);
	}
	resident_wake(&R);
	while (resident_answer(&R, &h)) {
		assert_int_not_equal(h.task, guilty);
		assert_int_equal(h.flags, 0);
		assert_false(seen >> (h.task - first) & 1);
		seen |= 1u << (h.task - first);
	}
	assert_true(as_expected(resident_status(&R)));
	/* Exactly one was being run, and it is the one. */
	assert_true(kn_control_begun(R.slice.control, &task, &gen, &begun_ns));
	assert_int_equal(task, guilty);
	assert_int_equal(gen, guilty + 1);
	claimed = kn_submit_claimed(&R.tx, &R.slice, &violation);
	assert_false(violation);
	/* All that was answered was claimed, and more: the others of its batch. */
	assert_true(__builtin_popcount(claimed) > __builtin_popcount(seen));
	print_message("%s: %d answered, %d claimed\n", name, __builtin_popcount(seen),
	    __builtin_popcount(claimed));
	resident_close(&R);
}

static bool
by_segv(int s)
{
	return WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV;
}

static bool
by_abort(int s)
{
	return WIFSIGNALED(s) && WTERMSIG(s) == SIGABRT;
}

static bool
with_5(int s)
{
	return WIFEXITED(s) && WEXITSTATUS(s) == 5;
}

static bool
with_9(int s)
{
	return WIFEXITED(s) && WEXITSTATUS(s) == 9;
}

static bool
with_0(int s)
{
	return s == 0;
}

static bool
with_70(int s)
{
	return WIFEXITED(s) && WEXITSTATUS(s) == 70;
}

static void
a_crash_among_31_others_names_its_call(void **state)
{
	(void)state;
	dies_among_others("segv", by_segv);
	dies_among_others("overflow", by_segv);
	dies_among_others("abort", by_abort);
}

static void
an_exit_among_31_others_names_its_call(void **state)
{
	(void)state;
	dies_among_others("exit", with_5);
	dies_among_others("exit_at_once", with_9);
	dies_among_others("exec", with_0); /* /bin/true's own end */
}

/* Results would be left unheard: the process ends instead, at that call. */
static void
a_task_that_closes_the_doorbell_ends_its_worker(void **state)
{
	const struct resident_opts o = { 0 };
	struct kn_slot_head h;
	char said[256] = "";

	(void)state;
	resident_start(&R, &o);
	assert_int_equal(resident_ping(&R).kind, KN_REQ_PING);
	/* Each result was published before the bell was missed, and that is noticed
	 * when it is needed: when we sleep. */
	h = resident_call(&R, 3, "close_all", KN_TYPE_NULL, NULL, 0);
	assert_int_equal(h.type, KN_TYPE_NULL);
	for (int i = 0; i < 1000 && h.kind; i++)
		h = resident_call(&R, 3, NULL, KN_TYPE_NULL, NULL, 0);
	assert_true(with_70(resident_status(&R)));
	assert_true(read(R.err, said, sizeof said - 1) > 0);
	assert_non_null(strstr(said, "the doorbell is gone"));
	resident_close(&R);
}

/* A long call is not claimed together with others, once it is known to be long. */
static void
behind_a_long_call_the_others_can_be_taken_back(void **state)
{
	const struct resident_opts o = { 0 };
	uint32_t first, task, gen;
	uint64_t begun_ns;
	int64_t ms = 20, more = 600000; /* until it is killed */
	int back = 0;

	(void)state;
	resident_start(&R, &o);
	assert_int_equal(resident_ping(&R).kind, KN_REQ_PING);
	for (int i = 0; i < 2; i++)
		resident_call(&R, 1, "sleep_ms", KN_TYPE_I64, &ms, sizeof ms);
	first = R.next;
	for (int i = 0; i < 8; i++) {
		struct kn_slot_head h = { .kind = KN_REQ_CALL,
			.task = R.next++,
			.fn = 1,
			.type = KN_TYPE_I64,
			.abort = KN_NO_ABORT };

		resident_publish(&R, h, NULL, &more, sizeof more);
	}
	resident_wake(&R);
	while (
	    !kn_control_begun(R.slice.control, &task, &gen, &begun_ns) || task < first)
		poll(NULL, 0, 1);
	for (int slot = 0; slot < KN_SLOTS; slot++)
		back += kn_submit_take_back(&R.tx, &R.slice, slot);
	assert_int_equal(back, 7);
	resident_close(&R);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_module_that_cannot_be_loaded_says_why),
		cmocka_unit_test(an_init_hook_that_fails_says_why),
		cmocka_unit_test(a_module_that_crashes_at_its_start_answers_no_ping),
		cmocka_unit_test(
		    a_record_that_makes_no_sense_ends_the_process_with_a_word),
		cmocka_unit_test(a_crash_among_31_others_names_its_call),
		cmocka_unit_test(an_exit_among_31_others_names_its_call),
		cmocka_unit_test(a_task_that_closes_the_doorbell_ends_its_worker),
		cmocka_unit_test(behind_a_long_call_the_others_can_be_taken_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
