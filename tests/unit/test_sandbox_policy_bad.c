/* tests/unit/test_sandbox_policy_bad.c: every mistake in a policy is one sentence that
 * names the file, the line and column, the JSON pointer and what was meant.
 */
#include "tests/unit/policy_test.h"

/* ---- mistakes in a file ---- */

static void
a_mistake_is_one_sentence_with_its_place(void **state)
{
	static const struct {
		const char *text, *pieces[3];
	} bad[] = {
		{ "", { "a.json:1:1" } },
		{ "[]", { "a.json:1:1", "object" } },
		{ "{\"version\":1,}", { "a.json:1:" } },
		{ "{\"version\":1 /* c */}", { "a.json:1:" } },
		{ "{'version':1}", { "a.json:1:" } },
		{ "{\"version\":NaN}", { "NaN" } },
		{ "{\"version\":1e999}", { "overflow" } },
		{ "{\"version\":99999999999999999999}", { "big" } },
		{ "{\"version\":007}", { "a.json:1:" } },
		{ "{\"version\":1} x", { "a.json:1:", "end of file" } },
		{ "{\"version\":1,\"extends\":\"a\001b\"}", { "control character" } },
		{ "{\"version\":1,\"extends\":\"\\ud800\"}", { "Unicode" } },
		{ "{\"version\":1,\"extends\":\"a\\u0000b\"}", { "u0000" } },
		{ "{\"version\":1,\"extends\":\"\xff\"}", { "a.json:1:" } },
		{ "\xef\xbb\xbf{\"version\":1}", { "byte order mark" } },
		{ "{}", { "version" } },
		{ "{\"version\":null}", { "version" } },
		{ "{\"version\":2}", { "a.json:1:12", "/version" } },
		{ "{\"version\":1,\n\"pool\":{},\n  \"pool\":{}}",
		    { "a.json:3:", "pool" } },
		{ "{\"version\":1,\n \"limits\":{\"task\":\n   {\"memroy\":\"1G\"}}}",
		    { "a.json:3:5", "/limits/task/memroy", "\"memory\"" } },
		{ "{\"version\":1,\"a/b~\":1}", { "a.json:1:14", "/a~1b~0: unknown" } },
		{ "{\"version\":1,\"limits\":{\"task\":{\"pids\":\"many\"}}}",
		    { "a.json:1:39", "/limits/task/pids", "string" } },
		{ "{\"version\":1,\"limits\":{\"memory\":\"1G\"}}",
		    { "/limits/memory: unknown", "here are: ", "task" } },
		{ "{\"version\":1,\"quite_another_thing\":1}",
		    { "/quite_another_thing: unknown key" } },
		{ "{\"version\":1,\"timeouts\":{\"hard_ms\":\"2s\"}}",
		    { "a.json:1:36", "/timeouts/hard_ms", "milliseconds" } },
		{ "{\"version\":1,\"landlock\":\"atuo\"}",
		    { "a.json:1:25", "/landlock", "\"auto\"" } },
		{ "{\"version\":1,\"pool\":[]}", { "a.json:1:21", "object" } },
		{ "{\"version\":1,\"require\":[\"seccomp\",null]}",
		    { "a.json:1:35", "/require/1" } },
		{ "{\"version\":1,\"limits\":{\"task\":{\"memory\":\"12Q\"}}}",
		    { "/limits/task/memory", "12Q", "size" } },
		{ "{\"version\":1,\"identity\":{\"hostname\":\"a b\"}}",
		    { "/identity/hostname" } },
		{ "{\"version\":1,\"environment\":{\"set\":{\"A=B\":\"x\"}}}",
		    { "/environment/set/A=B" } },
		{ "{\"version\":1,\"environment\":{\"inherit\":[\"\"]}}",
		    { "/environment/inherit/0" } },
		{ "{\"version\":1,\"seccomp\":{\"groups\":{\"add\":[\"@thread\"]}}}",
		    { "/seccomp/groups/add/0", "\"@threads\"" } },
	};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		refused(bad[i].text,
		    (const char *const[]){ "a.json", bad[i].pieces[0],
			bad[i].pieces[1] ? bad[i].pieces[1] : "a.json",
			bad[i].pieces[2] ? bad[i].pieces[2] : "a.json", NULL });
}

static void
a_mistake_in_a_flag_is_said_in_its_own_words(void **state)
{
	static const char *const times[] = { "1d", "5parsecs", "1.5", "" };
	(void)state;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		refused_n(
		    &(const struct kn_policy_src)VALUE("/timeouts/hard_ms", times[i]),
		    1, PIECES("--flag: \"", "is not a duration", "500ms"));
	refused_n(&(const struct kn_policy_src)VALUE("/timeouts/hard_ms", "-1"), 1,
	    PIECES("--flag", "out of range"));
	refused_set("/filesystem/mounts/0={\"bind\":\"/usr\"}",
	    PIECES("/filesystem/mounts/0", "/filesystem/mounts=[...]", "appends"));
	refused_set(
	    "/seccomp/rules/0/action=\"SCMP_ACT_LOG\"", PIECES("/seccomp/rules=[...]"));
}

static void
mounts_and_rules_are_whole_or_refused(void **state)
{
	static const struct {
		const char *member, *pieces[2];
	} bad[] = {
		{ "\"filesystem\":{\"mounts\":[{}]}", { "/mounts/0", "needs one" } },
		{ "\"filesystem\":{\"mounts\":[{\"bind\":\"\"}]}",
		    { "/bind", "empty" } },
		{ "\"filesystem\":{\"mounts\":[{\"bind\":\"/x\",\"at\":\"y\"}]}",
		    { "/mounts/0/at", "absolute" } },
		{ "\"filesystem\":{\"mounts\":[{\"bind\":\"/x\",\"at\":\"/a/../..\"}]}",
		    { "/mounts/0/at", ".." } },
		{ "\"filesystem\":{\"mounts\":[{\"bind\":\"/x\",\"at\":\"//\"}]}",
		    { "/mounts/0/at", "root" } },
		{ "\"filesystem\":{\"mounts\":[{\"bind\":\"/x\",\"at\":\"/tmp\"}]}",
		    { "/mounts/0/at", "its own" } },
		{ "\"filesystem\":{\"mounts\":[{\"bind\":\"/x\",\"at\":\"/proc/x\"}]}",
		    { "/mounts/0/at", "/proc" } },
		{ "\"filesystem\":{\"mounts\":[{\"bind\":\"/dev/null\"}]}",
		    { "/dev" } },
		{ "\"filesystem\":{\"mounts\":[{\"bind\":\"/x\",\"dir\":\"/y\"}]}",
		    { "\"bind\"", "\"dir\"" } },
		{ "\"filesystem\":{\"mounts\":[{\"dir\":\"/x\",\"mode\":\"rw\"}]}",
		    { "/mounts/0/mode", "\"dir\"" } },
		{ "\"filesystem\":{\"mounts\":[{\"tmpfs\":\"/scratch\"}]}",
		    { "/mounts/0/tmpfs", "/scratch" } },
		{ "\"filesystem\":{\"mounts\":[{\"symlink\":\"a\"}]}", { "\"at\"" } },
		{ "\"seccomp\":{\"rules\":[{\"action\":\"SCMP_ACT_ALLOW\"}]}",
		    { "/rules/0", "names" } },
		{ "\"seccomp\":{\"rules\":[{\"names\":[\"read\"]}]}",
		    { "/rules/0", "action" } },
		{ "\"seccomp\":{\"rules\":[{\"names\":[\"raed\"],\"action\":"
		  "\"SCMP_ACT_ALLOW\"}]}",
		    { "/rules/0/names/0", "did you mean \"read\"" } },
		{ "\"seccomp\":{\"rules\":[{\"names\":[\"read\"],\"action\":"
		  "\"SCMP_ACT_ALLOW\",\"errnoRet\":1}]}",
		    { "errnoRet", "SCMP_ACT_ERRNO" } },
		{ "\"seccomp\":{\"rules\":[{\"names\":[\"read\"],\"action\":"
		  "\"SCMP_ACT_ERRNO\",\"errnoRet\":0}]}",
		    { "errnoRet", "range" } },
		{ "\"seccomp\":{\"rules\":[{\"names\":[\"read\"],\"action\":"
		  "\"SCMP_ACT_ERRNO\",\"errnoRet\":4096}]}",
		    { "errnoRet", "range" } },
		{ "\"seccomp\":{\"rules\":[{\"names\":[\"read\"],\"action\":"
		  "\"SCMP_ACT_TRACE\"}]}",
		    { "/action", "debugger" } },
		{ "\"seccomp\":{\"rules\":[{\"names\":[\"read\"],\"action\":"
		  "\"SCMP_ACT_NOTIFY\"}]}",
		    { "/action", "program of yours" } },
		{ "\"seccomp\":{\"rules\":[{\"names\":[\"read\"],\"action\":"
		  "\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":6,\"value\":0,\"op\":"
		  "\"SCMP_CMP_EQ\"}]}]}",
		    { "/args/0/index", "range" } },
		{ "\"seccomp\":{\"rules\":[{\"names\":[\"read\"],\"action\":"
		  "\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":0,\"op\":"
		  "\"SCMP_CMP_EQ\"}]}]}",
		    { "/args/0", "value" } },
		{ "\"seccomp\":{\"rules\":[{\"names\":[\"read\"],\"action\":"
		  "\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":0,\"value\":1,\"op\":"
		  "\"SCMP_CMP_MASKED_EQ\"}]}]}",
		    { "/args/0", "valueTwo" } },
		{ "\"payload\":{\"max\":\"8M\",\"area\":\"32M\"}",
		    { "/payload/max", "eighth" } },
		{ "\"limits\":{\"worker\":{\"memory\":\"1G\"}}",
		    { "/limits/worker/memory", "/limits/task/memory" } },
		{ "\"version\":null", { "duplicate" } },
		{ "\"allow_degraded\":[\"seccomp\"]",
		    { "/allow_degraded/0", "\"seccomp\"" } },
		{ "\"require\":[\"mseal\"],\"allow_degraded\":[\"mseal\"]",
		    { "/allow_degraded", "mseal" } },
	};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char text[512];
		snprintf(text, sizeof text, "{\"version\":1,%s}", bad[i].member);
		refused(
		    text, (const char *const[]){ "a.json", bad[i].pieces[0],
			      bad[i].pieces[1] ? bad[i].pieces[1] : "a.json", NULL });
	}
}

static void
deep_long_and_strange_files_are_refused_quickly(void **state)
{
	char path[128];
	size_t n = 3 << 20;
	char *big = malloc(n);
	(void)state;
	assert_non_null(big);
	memset(big, '[', n);
	refused_n(&(const struct kn_policy_src)NAMED(file_of("a.json", big, 100000)), 1,
	    PIECES("a.json:1:33", "too deep"));
	for (size_t i = 0; i + 5 < n; i += 5)
		memcpy(big + i, "{\"a\":", 5);
	refused_n(&(const struct kn_policy_src)NAMED(file_of("a.json", big, 500000)), 1,
	    PIECES("a.json:1:", "too deep"));
	memset(big, ' ', n);
	refused_n(&(const struct kn_policy_src)NAMED(file_of("big.json", big, n)), 1,
	    PIECES("big.json", "1 MiB"));
	free(big);
	snprintf(path, sizeof path, "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	refused_n(&(const struct kn_policy_src)NAMED(path), 1, PIECES("FIFO"));
	refused_n(
	    &(const struct kn_policy_src)NAMED("/dev/zero"), 1, PIECES("/dev/zero"));
	refused_n(&(const struct kn_policy_src)NAMED("/tmp/"), 1, PIECES("directory"));
	refused_n(&(const struct kn_policy_src)NAMED("./nosuch.json"), 1,
	    PIECES("nosuch.json", "No such file"));
	refused_n(&(const struct kn_policy_src)NAMED("judeg"), 1,
	    PIECES("judeg", "\"judge\""));
}

static void
a_place_is_found_among_escapes_and_strings(void **state)
{
	static const char text[] = "{ \"a\" : \"}\\\"]\", \"b~/\\u0041\":\n"
				   "\t[ 1, {\"c\":[]} , \"\xc3\xa9\", {\"d\" : 5}]}";
	unsigned line = 0, col = 0;
	(void)state;
	assert_true(kn_policy_locate(text, strlen(text), "/a", false, &line, &col));
	assert_int_equal(line * 100 + col, 109);
	assert_true(kn_policy_locate(text, strlen(text), "/b~0~1A", true, &line, &col));
	assert_int_equal(line * 100 + col, 117);
	assert_true(
	    kn_policy_locate(text, strlen(text), "/b~0~1A/3/d", false, &line, &col));
	assert_int_equal(line * 100 + col, 230);
	assert_false(
	    kn_policy_locate(text, strlen(text), "/b~0~1A/4", false, &line, &col));
	assert_false(kn_policy_locate(text, strlen(text), "/x", false, &line, &col));
	/* Never past the end, whatever the text. */
	for (size_t n = 0; n < strlen(text); n++) {
		char *copy = malloc(n ? n : 1);
		memcpy(copy, text, n);
		kn_policy_locate(copy, n, "/b~0~1A/3/d", true, &line, &col);
		free(copy);
	}
}

static void
a_cycle_names_both_ends(void **state)
{
	char path[128];
	(void)state;
	file("a.json", "{\"version\":1,\"extends\":\"b.json\"}");
	const char *b = file("b.json", "{\"version\":1,\n\"extends\":\"./a.json\"}");
	refused_n(&(const struct kn_policy_src)NAMED(b), 1,
	    PIECES("a.json:1:", "/extends", "cycle", "b.json"));
	snprintf(path, sizeof path, "%s/sub", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	file("sub/d.json", "{\"version\":1,\"extends\":\"../c.json\"}");
	file("c.json", "{\"version\":1,\"extends\":\"sub/d.json\"}");
	snprintf(path, sizeof path, "%s/sub/d.json", dir);
	refused_n(&(const struct kn_policy_src)NAMED(path), 1, PIECES("cycle"));
	refused("{\"version\":1,\"extends\":\"./nosuch.json\"}",
	    PIECES("a.json", "/extends", "nosuch.json"));
}

static void
a_bind_without_a_place_needs_a_possible_one(void **state)
{
	const struct kn_policy_src src = {
		.type = KN_SRC_MOUNT, .text = "/proc/self", .label = "--bind"
	};
	(void)state;
	refused_n(&src, 1, PIECES("--bind", "/proc"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mistake_is_one_sentence_with_its_place),
		cmocka_unit_test(a_mistake_in_a_flag_is_said_in_its_own_words),
		cmocka_unit_test(mounts_and_rules_are_whole_or_refused),
		cmocka_unit_test(deep_long_and_strange_files_are_refused_quickly),
		cmocka_unit_test(a_place_is_found_among_escapes_and_strings),
		cmocka_unit_test(a_cycle_names_both_ends),
		cmocka_unit_test(a_bind_without_a_place_needs_a_possible_one),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
