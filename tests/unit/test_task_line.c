/* tests/unit/test_task_line.c: what a line of a batch may say, and what is answered to
 * one that says anything else: an error that names the JSON pointer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ipc/err.h"
#include "sandbox/policy.h"
#include "supervisor/base64.h"
#include "supervisor/task.h"
#include "supervisor/task_line.h"

static const struct kn_policy policy = {
	.task = { .memory = 1 << 30,
	    .pids = 64,
	    .nofile = 256,
	    .stdout_bytes = 1 << 20,
	    .stderr_bytes = 1 << 20 },
	.console = true,
	.timeouts = { .hard_ms = 10000, .grace_ms = 100 },
};
static const char *const base_env[] = { "PATH=/usr/bin:/bin", "LANG=C" };
static const struct kn_line_rules rules = {
	.policy = &policy,
	.env = base_env,
	.env_n = 2,
	.retries = 3,
};

static int
parse_n(const char *text, size_t n, struct kn_line *out, struct kn_err *e)
{
	*e = (struct kn_err){ 0 };
	return kn_line_parse(&rules, text, n, 7, out, e);
}

static void
accept(const char *text, struct kn_line *out)
{
	struct kn_err e;

	if (parse_n(text, strlen(text), out, &e) < 0)
		fail_msg("%s\nrefused: %s", text, e.msg);
}

static void
refuse_n(const char *text, size_t n, const char *part)
{
	struct kn_line l;
	struct kn_err e;

	if (parse_n(text, n, &l, &e) == 0)
		fail_msg("%.200s\nwas accepted", text);
	assert_int_equal(e.kind, KN_EK_TASK);
	if (!strstr(e.msg, part))
		fail_msg("%.200s\nsays: %s\nwithout: %s", text, e.msg, part);
	assert_null(l.task);
	kn_line_fini(&l);
}

static void
refuse(const char *text, const char *part)
{
	refuse_n(text, strlen(text), part);
}

static void
smallest_task_has_the_policy_limits(void **state)
{
	struct kn_line l;

	(void)state;
	accept(" {\"argv\":[\"true\"]} \r\n", &l);
	assert_int_equal(l.kind, KN_LINE_TASK);
	assert_null(l.id);
	assert_int_equal(l.task->line, 7);
	assert_int_equal(l.task->argv_n, 1);
	assert_string_equal(l.task->argv[0], "true");
	assert_null(l.task->argv[1]);
	assert_int_equal(l.task->limits.memory, 1 << 30);
	assert_int_equal(l.task->timeouts.hard_ms, 10000);
	assert_int_equal(l.task->retries, 3);
	assert_int_equal(l.task->stdio, KN_STDIO_CAPTURE);
	assert_int_equal(l.task->env_n, 2);
	assert_string_equal(l.task->env[0], "PATH=/usr/bin:/bin");
	assert_null(l.task->env[2]);
	kn_line_fini(&l);
}

static void
every_field_arrives(void **state)
{
	struct kn_line l;

	(void)state;
	accept("{\"id\":\"t1\",\"after\":[\"c1\",\"d/e\"],\"argv\":[\"./main\",\"\"],"
	       "\"files\":{\"main\":{\"from\":\"c1/bin/main\",\"mode\":\"755\"},"
	       "\"d/x\":{\"content\":\"a\\u0000b\"},\"y\":{\"content_b64\":\"AP8=\"},"
	       "\"z\":{\"path\":\"/data/z\"},\"w\":{\"from\":\"d/e/w\"}},"
	       "\"stdin\":\"3 4\\n\",\"collect\":[\"out/*.png\"],\"keep\":[\"k\"],"
	       "\"env\":{\"LANG\":\"x=y\",\"NEW\":\"\"},"
	       "\"limits\":{\"task\":{\"cpu_ms\":1000,\"memory\":\"256M\","
	       "\"stdout\":\"64K\",\"core\":0}},"
	       "\"timeouts\":{\"hard_ms\":2000,\"queue_ms\":5,\"grace_ms\":0}}",
	    &l);
	assert_string_equal(l.id, "t1");
	assert_int_equal(l.after_n, 2);
	assert_string_equal(l.after[1], "d/e");
	assert_string_equal(l.task->argv[1], "");
	assert_int_equal(l.task->file_n, 5);
	assert_int_equal(l.task->files[0].mode, 0755);
	assert_int_equal(l.task->files[0].fd, -1);
	assert_int_equal(l.task->files[1].byte_n, 3);
	assert_memory_equal(l.task->files[1].bytes, "a\0b", 3);
	assert_int_equal(l.task->files[1].mode, 0644);
	assert_memory_equal(l.task->files[2].bytes, "\0\xff", 2);
	assert_int_equal(l.source_n, 3);
	assert_string_equal(l.sources[0].from, "c1");
	assert_string_equal(l.sources[0].name, "bin/main");
	assert_true(l.sources[0].mode_given);
	assert_string_equal(l.sources[1].path, "/data/z");
	assert_false(l.sources[1].mode_given);
	assert_string_equal(l.sources[2].from, "d/e");
	assert_string_equal(l.sources[2].name, "w");
	assert_memory_equal(l.task->stdin_bytes, "3 4\n", 4);
	assert_int_equal(l.task->stdin_n, 4);
	assert_string_equal(l.task->collect[0], "out/*.png");
	assert_string_equal(l.task->keep[0], "k");
	assert_int_equal(l.task->env_n, 3);
	assert_string_equal(l.task->env[1], "LANG=x=y");
	assert_string_equal(l.task->env[2], "NEW=");
	assert_int_equal(l.task->limits.cpu_ms, 1000);
	assert_int_equal(l.task->limits.memory, 256 << 20);
	assert_int_equal(l.task->limits.stdout_bytes, 64 << 10);
	assert_int_equal(l.task->timeouts.hard_ms, 2000);
	assert_int_equal(l.task->timeouts.queue_ms, 5);
	assert_int_equal(l.task->timeouts.grace_ms, 0); /* tighter than the policy's */
	kn_line_fini(&l);
}

static void
cancel_and_blank_lines(void **state)
{
	struct kn_line l;

	(void)state;
	accept("{\"cancel\":\"t1\"}", &l);
	assert_int_equal(l.kind, KN_LINE_CANCEL);
	assert_string_equal(l.id, "t1");
	kn_line_fini(&l);
	accept("  \t\r\n", &l);
	assert_int_equal(l.kind, KN_LINE_NOTHING);
	kn_line_fini(&l);
	refuse("{\"cancel\":5}", "/cancel");
	refuse("{\"cancel\":\"a\",\"argv\":[\"x\"]}", "/argv");
}

static void
what_is_not_json_is_refused(void **state)
{
	(void)state;
	refuse("{\"argv\":[\"x\"]", "not JSON");
	refuse("{\"argv\":[\"x\"],}", "not JSON");
	refuse("{\"argv\":[\"x\"]} x", "not JSON");
	refuse("{\"argv\":[\"\xff\"]}", "not JSON");
	refuse("{'argv':['x']}", "not JSON");
	refuse("{\"argv\":[\"x\"],\"argv\":[\"y\"]}", "duplicate");
	refuse("[\"x\"]", "one JSON object");
	refuse("\"x\"", "not JSON");
	refuse_n("\0", 1, "not JSON");
}

static void
hostile_nesting_is_refused(void **state)
{
	size_t n = 100000;
	char *deep = malloc(n);

	(void)state;
	assert_non_null(deep);
	memset(deep, '[', n);
	refuse_n(deep, n, "not JSON");
	free(deep);
}

static void
wrong_fields_name_their_pointer(void **state)
{
	(void)state;
	refuse("{}", "/argv: missing");
	refuse("{\"argv\":[]}", "/argv: must name a command");
	refuse("{\"argv\":[\"\"]}", "/argv: must name a command");
	refuse("{\"argv\":\"x\"}", "/argv: must be an array");
	refuse("{\"argv\":[\"x\",1]}", "/argv/1: must be a string");
	refuse("{\"argv\":[\"x\",\"a\\u0000b\"]}", "/argv/1: a NUL");
	refuse("{\"argv\":[\"x\"],\"agv\":1}",
	    "/agv: unknown key; did you mean \"argv\"?");
	refuse("{\"cmd\":[\"x\"]}", "/cmd: unknown key; knit-tasks(5) lists them");
	refuse("{\"argv\":[\"x\"],\"limits\":{\"memory\":1}}",
	    "/limits/memory: unknown key; here are: task");
	refuse("{\"argv\":", "; a task is one whole line");
	refuse("[{\"argv\":[\"x\"]}]", "not a list: each task is a line");
	refuse("{\"argv\":[\"x\"],\"files\":{\"a\":\"text\"}}",
	    "/files/a: must be an object, as {\"content\":\"text\"}");
	refuse("{\"argv\":[\"x\"],\"a/b~\":1}", "/a~1b~0: unknown key");
	refuse("{\"argv\":[\"x\"],\"\\u001b[2J\":1}", "/\\x1b[2J: unknown key");
	refuse("{\"id\":\"\",\"argv\":[\"x\"]}", "/id");
	refuse("{\"id\":7,\"argv\":[\"x\"]}", "/id: must be a string");
	refuse("{\"argv\":[\"x\"],\"after\":[3]}", "/after/0");
	refuse("{\"argv\":[\"x\"],\"stdin\":1}", "/stdin: must be a string");
	refuse("{\"argv\":[\"x\"],\"stdin\":\"\",\"stdin_b64\":\"\"}", "/stdin");
	refuse("{\"argv\":[\"x\"],\"stdin_b64\":\"A\"}", "/stdin_b64: not base64");
	refuse("{\"argv\":[\"x\"],\"env\":{\"A=B\":\"\"}}", "/env/A=B");
	refuse("{\"argv\":[\"x\"],\"env\":{\"A\":null}}", "/env/A: must be a string");
	refuse("{\"argv\":[\"x\"],\"keep\":[\"../x\"]}", "/keep/0");
	refuse("{\"argv\":[\"x\"],\"keep\":[\"/x\"]}", "/keep/0");
	refuse("{\"argv\":[\"x\"],\"collect\":[\"a//b\"]}", "/collect/0");
	refuse(
	    "{\"id\":\"m1\",\"call\":\"hash\",\"value\":\"t\"}", "there is no module");
}

static void
wrong_files_name_their_pointer(void **state)
{
	(void)state;
#define FILES(f) "{\"argv\":[\"x\"],\"after\":[\"c1\"],\"files\":" f "}"
	refuse(FILES("[]"), "/files: must be an object");
	refuse(
	    FILES("{\"../x\":{\"content\":\"\"}}"), "/files/..~1x: must be relative");
	refuse(FILES("{\"/x\":{\"content\":\"\"}}"), "/files/~1x: must be relative");
	refuse(FILES("{\"a\":{\"content\":\"\"},\"a/b\":{\"content\":\"\"}}"),
	    "/files/a~1b: lies below");
	refuse(FILES("{\"a\":{}}"), "/files/a: needs exactly one");
	refuse(FILES("{\"a\":{\"content\":\"\",\"path\":\"/x\"}}"), "exactly one");
	refuse(FILES("{\"a\":{\"contents\":\"\"}}"), "did you mean \"content\"?");
	refuse(FILES("{\"a\":{\"content\":\"\",\"mode\":755}}"), "/files/a/mode");
	refuse(FILES("{\"a\":{\"content\":\"\",\"mode\":\"4755\"}}"), "out of range");
	refuse(FILES("{\"a\":{\"content\":\"\",\"mode\":\"789\"}}"), "/files/a/mode");
	refuse(FILES("{\"a\":{\"from\":\"c2/main\"}}"), "/files/a/from");
	refuse(FILES("{\"a\":{\"from\":\"c1\"}}"), "/files/a/from");
	refuse(FILES("{\"a\":{\"from\":\"c1/../x\"}}"), "/files/a/from");
	refuse(FILES("{\"a\":{\"path\":\"\"}}"), "/files/a/path");
}

static void
limits_only_tighten(void **state)
{
	(void)state;
#define LIMITS(f) "{\"argv\":[\"x\"],\"limits\":{\"task\":{" f "}}}"
	refuse(LIMITS("\"memory\":\"2G\""), "/limits/task/memory");
	refuse(LIMITS("\"memory\":0"), "/limits/task/memory: out of range");
	refuse(LIMITS("\"memory\":-1"), "/limits/task/memory: out of range");
	refuse(LIMITS("\"memory\":1.5"), "/limits/task/memory");
	refuse(LIMITS("\"memory\":\"64Q\""), "/limits/task/memory: not a size");
	refuse(LIMITS("\"memory\":null"), "/limits/task/memory");
	refuse(LIMITS("\"pids\":\"3\""), "/limits/task/pids: must be a whole number");
	refuse(LIMITS("\"pids\":65"), "/limits/task/pids");
	refuse(LIMITS("\"memry\":1"), "did you mean \"memory\"?");
	refuse(LIMITS("\"nofile\":99999999999999999999"), "not JSON");
	refuse("{\"argv\":[\"x\"],\"limits\":{\"worker\":{}}}", "/limits/worker");
	refuse(
	    "{\"argv\":[\"x\"],\"timeouts\":{\"hard_ms\":10001}}", "/timeouts/hard_ms");
	refuse("{\"argv\":[\"x\"],\"timeouts\":{\"hard_ms\":0}}", "out of range");
	refuse(
	    "{\"argv\":[\"x\"],\"timeouts\":{\"claim_ms\":1}}", "/timeouts/claim_ms");
}

static void
a_refused_line_still_tells_its_id(void **state)
{
	static const char text[] = "{\"argv\":3,\"id\":\"t9\"}";
	struct kn_line l;
	struct kn_err e;

	(void)state;
	assert_int_equal(parse_n(text, strlen(text), &l, &e), -1);
	assert_string_equal(l.id, "t9");
	kn_line_fini(&l);
}

static void
base64_is_strict_and_exact(void **state)
{
	static const char *const bad[] = { "A", "AA", "AAA",
		"A===", "====", "AB==", "AAB=", "AA=A", "AAAA\n", "AA A", "A-_A" };
	uint8_t in[256], out[256];
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (uint8_t)(i * 7);
	for (size_t len = 0; len <= sizeof in; len++) {
		char *text = kn_base64_encode(in, len);

		assert_int_equal(kn_base64_decode(text, strlen(text), out, &n), 0);
		assert_int_equal(n, len);
		assert_memory_equal(in, out, len);
		free(text);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (kn_base64_decode(bad[i], strlen(bad[i]), out, &n) == 0)
			fail_msg("\"%s\" was accepted", bad[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(smallest_task_has_the_policy_limits),
		cmocka_unit_test(every_field_arrives),
		cmocka_unit_test(cancel_and_blank_lines),
		cmocka_unit_test(what_is_not_json_is_refused),
		cmocka_unit_test(hostile_nesting_is_refused),
		cmocka_unit_test(wrong_fields_name_their_pointer),
		cmocka_unit_test(wrong_files_name_their_pointer),
		cmocka_unit_test(limits_only_tighten),
		cmocka_unit_test(a_refused_line_still_tells_its_id),
		cmocka_unit_test(base64_is_strict_and_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
