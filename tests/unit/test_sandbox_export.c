/* tests/unit/test_sandbox_export.c: a policy told to programs that know no order of
 * rules: at most one rule matches a call, and what it answers is what we answer.
 */
#include "tests/unit/policy_test.h"

#include <jansson.h>

#include "sandbox/export.h"
#include "sandbox/filter_int.h"

/* ---- rules without order ---- */

enum { RULES_MAX = 8192 };
static struct kn_frule rules[RULES_MAX];
static size_t rule_n;

static int
keep(void *ctx, const struct kn_frule *r)
{
	(void)ctx;
	assert_true(rule_n < RULES_MAX);
	rules[rule_n] = *r;
	rules[rule_n++].name = NULL; /* its time is over */
	return 0;
}

static bool
matches(const struct kn_frule *r, const uint64_t args[6])
{
	for (int i = 0; i < 6; i++)
		if ((args[i] & r->arg[i].mask) != r->arg[i].value)
			return false;
	return true;
}

static uint64_t
next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* Values on and beside every edge that a condition of the call has. */
static uint64_t
pick(uint64_t *seed, const struct kn_fcall *c, unsigned index)
{
	uint64_t r = next_random(seed);
	const struct kn_fentry *f = &c->v[r % c->n];

	for (size_t a = 0; a < f->arg_n; a++)
		if (f->args[a].index == index && (r >> 8) % 8 > 1) {
			uint64_t v =
			    (r >> 16) % 2 ? f->args[a].value : f->args[a].value_two;
			v += (r >> 20) % 3 - 1;
			if ((r >> 24) % 4 == 0)
				v |= 1ull << (32 + (r >> 28) % 32);
			if ((r >> 24) % 4 == 1)
				v ^= 1ull << ((r >> 28) % 32);
			return v;
		}
	return (r >> 40) % 2 ? r : (r >> 41) % 64;
}

/* False: it cannot be told, and that is said. */
static bool
same_answers(const struct kn_policy *p)
{
	struct kn_err e = { 0 };
	struct kn_ftable t;
	uint32_t unlisted = 0;
	uint64_t seed = 88172645463325252ull;
	size_t at = 0;

	rule_n = 0;
	if (kn_filter_rules(p, &unlisted, keep, NULL, &e) < 0) {
		assert_non_null(strstr(e.msg, "too many cases"));
		return false;
	}
	assert_int_equal(kn_ftable_init(&t, p, false, &e), 0);
	for (int nr = 0; nr < KN_NR_MAX; nr++) {
		size_t from = at;

		while (at < rule_n && rules[at].nr == nr)
			at++;
		for (int round = 0; round < (t.calls[nr].n > 1 ? 3000 : 4); round++) {
			uint64_t args[6];
			uint32_t want, got = unlisted;
			unsigned hits = 0;

			for (unsigned i = 0; i < 6; i++)
				args[i] = pick(&seed, &t.calls[nr], i);
			want = kn_ftable_decide(&t, t.arch, (uint32_t)nr, args);
			for (size_t i = from; i < at; i++)
				if (matches(&rules[i], args)) {
					got = rules[i].ret;
					hits++;
				}
			if (got != want || hits > 1)
				fail_msg("call %d (%llx %llx %llx): %x, want %x; %u "
					 "rules match",
				    nr, (unsigned long long)args[0],
				    (unsigned long long)args[1],
				    (unsigned long long)args[2], got, want, hits);
		}
	}
	assert_int_equal(at, rule_n);
	kn_ftable_fini(&t);
	return true;
}

static void
rules_without_order_answer_as_ours_do(void **state)
{
	(void)state;
	for (const char *const *name = kn_policy_presets(); *name; name++) {
		/* (what is executed is not told) */
		struct kn_policy *p = LOAD(NAMED(*name), SET("/permissions/run=null"));

		assert_true(same_answers(p));
		kn_policy_free(p);
	}
}

static void
every_comparison_is_told_exactly(void **state)
{
	static const char *const ops[] = { "NE", "LT", "LE", "EQ", "GE", "GT" };
	static const char *const values[] = { "0", "5", "4294967295", "4294967296",
		"-1" };
	char rule[600];
	unsigned told = 0;
	(void)state;
	for (size_t o = 0; o < 6; o++)
		for (size_t v = 0; v < 5; v++) {
			/* read(2) has its length in 64 bits, its descriptor in 32. */
			snprintf(rule, sizeof rule,
			    "/seccomp/rules=[{\"names\":[\"read\"],\"action\":"
			    "\"SCMP_ACT_ERRNO\",\"args\":[{\"index\":2,\"op\":"
			    "\"SCMP_CMP_%s\",\"value\":%s},{\"index\":0,\"op\":"
			    "\"SCMP_CMP_%s\",\"value\":%s}]},{\"names\":[\"read\"],"
			    "\"action\":\"SCMP_ACT_KILL_PROCESS\",\"args\":[{\"index\":"
			    "2,\"op\":\"SCMP_CMP_MASKED_EQ\",\"value\":%s,\"valueTwo\":"
			    "4}]}]",
			    ops[o], values[v], ops[5 - o], values[(v + 1) % 5],
			    values[v]);
			struct kn_policy *p = LOAD(SET(rule));
			told += same_answers(p);
			kn_policy_free(p);
		}
	print_message("%u of 30 told\n", told);
	assert_true(told >= 20);
}

/* ---- what a back end lacks ---- */

static char *
exported(const struct kn_policy *p, enum kn_export_format f, struct kn_err *e)
{
	struct kn_export x;
	char *text = NULL;

	kn_err_clear(e);
	if (kn_export_make(p, f, "name", &x, e) == 0) {
		text = x.text;
		x.text = NULL;
		for (size_t i = 0; i < x.note_n; i++)
			assert_null(strchr(x.notes[i], '\n'));
		kn_export_fini(&x);
	}
	return text;
}

static void
what_a_back_end_lacks_is_an_error_unless_it_may_be_weaker(void **state)
{
	static const struct {
		enum kn_export_format f;
		const char *set, *layer;
	} rows[] = {
		{ KN_EXPORT_OCI, "/landlock=on", "landlock" },
		{ KN_EXPORT_DOCKER, "/landlock=on", "landlock" },
		{ KN_EXPORT_DOCKER, "/require=[\"uid\"]", "uid" },
		{ KN_EXPORT_K8S, "/require=[\"cgroup.pids\"]", "cgroup.pids" },
		{ KN_EXPORT_SYSTEMD, "/landlock=on", "landlock" },
		{ KN_EXPORT_SYSTEMD, "/require=[\"cgroup.cpu\"]", "cgroup.cpu" },
	};
	struct kn_err e;
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct kn_policy *p =
		    LOAD(SET(rows[i].set), SET("/limits/task/cpu_ms=9"));
		char *text = exported(p, rows[i].f, &e);

		assert_null(text);
		assert_int_equal(e.kind, KN_EK_CONFIG);
		assert_non_null(strstr(e.msg, rows[i].layer));
		assert_non_null(strstr(e.hint, rows[i].layer));
		kn_policy_free(p);
		p = LOAD(SET("/allow_degraded=[\"uid\",\"landlock\"]"));
		text = exported(p, rows[i].f, &e);
		assert_non_null(text);
		free(text);
		kn_policy_free(p);
	}
}

/* A mask that was told as a bind would show what it hides. */
static void
what_is_denied_is_never_told_as_a_bind(void **state)
{
	static const char *const sets[] = { "/filesystem/deny=[\"/usr/share\"]",
		"/filesystem/mounts=[{\"overlay\":\"/usr/share\",\"at\":\"/o\"}]",
		"/permissions/console=false" };
	struct kn_err e;
	(void)state;
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
		struct kn_policy *p =
		    LOAD(SET(sets[i]), SET("/allow_degraded=[\"uid\",\"landlock\"]"));
		for (int f = KN_EXPORT_OCI; f < KN_EXPORT_N; f++) {
			assert_null(exported(p, (enum kn_export_format)f, &e));
			assert_int_equal(e.kind, KN_EK_CONFIG);
		}
		kn_policy_free(p);
	}
}

static void
what_a_policy_says_stands_in_each_format(void **state)
{
	static const struct {
		enum kn_export_format f;
		const char *pieces[10];
	} rows[] = {
		{ KN_EXPORT_OCI,
		    { "\"limit\": 134217728", "\"limit\": 33", "RLIMIT_NOFILE",
			"\"/in\"", "\"hostname\": \"box\"", "\"A=it's\"",
			"size=1048576", "\"noNewPrivileges\": true", "\"network\"",
			"\"quota\": 150000" } },
		{ KN_EXPORT_DOCKER,
		    { "--memory 134217728", "--pids-limit 33", "nofile=99",
			"target=/in", "--hostname box", "'A=it'\\''s'", "size=1048576",
			"no-new-privileges", "--network none", "--cpus 1.5" } },
		{ KN_EXPORT_K8S,
		    { "memory: 134217728", "activeDeadlineSeconds: 3", "ulimit -n 99",
			"mountPath: \"/in\", readOnly: true", "hostname: \"box\"",
			"value: \"it's\"", "sizeLimit: 1048576",
			"allowPrivilegeEscalation: false", "hostNetwork: false",
			"cpu: 1500m" } },
		{ KN_EXPORT_SYSTEMD,
		    { "MemoryMax=134217728", "TasksMax=33", "LimitNOFILE=99",
			"BindReadOnlyPaths=\"/usr/lib\":\"/in\"",
			"RuntimeMaxSec=2500ms", "Environment=\"A=it's\"",
			"size=1048576", "NoNewPrivileges=yes", "PrivateNetwork=yes",
			"CPUQuota=150%" } },
	};
	struct kn_policy *p = LOAD(SET("/limits/task/memory=128M"),
	    SET("/allow_degraded=[\"cgroup.memory\"]"), SET("/limits/task/pids=33"),
	    SET("/limits/task/cpus=1.5"), SET("/limits/task/nofile=99"),
	    SET("/identity/hostname=box"), SET("/environment/set={\"A\":\"it's\"}"),
	    SET("/timeouts/hard_ms=2500"),
	    SET("/filesystem/mounts=[{\"tmpfs\":\"/tmp\",\"size\":\"1M\"},"
		"{\"bind\":\"/usr/lib\",\"at\":\"/in\"}]"));
	struct kn_err e;
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *text = exported(p, rows[i].f, &e);

		assert_non_null(text);
		for (size_t j = 0; j < 10; j++)
			if (!strstr(text, rows[i].pieces[j]))
				fail_msg("format %u has no %s", rows[i].f,
				    rows[i].pieces[j]);
		free(text);
	}
	kn_policy_free(p);
}

/* ---- around the program itself ---- */

static char *
around(const struct kn_policy *p, enum kn_export_format f, uint32_t workers,
    struct kn_err *e)
{
	struct kn_export x;
	char *text = NULL;

	kn_err_clear(e);
	if (kn_export_make_around(p, f, "name", true, workers, &x, e) == 0) {
		text = x.text;
		x.text = NULL;
		kn_export_fini(&x);
	}
	return text;
}

/* What an entry of the profile does with a call, "" if none names it. */
static const char *
answer_to(const json_t *profile, const char *call)
{
	size_t i, j;
	json_t *entry, *name;

	json_array_foreach(json_object_get(profile, "syscalls"), i, entry)
	    json_array_foreach(json_object_get(entry, "names"), j,
		name) if (strcmp(json_string_value(name), call) ==
			  0) return json_string_value(json_object_get(entry, "action"));
	return "";
}

static void
around_it_passes_what_tasks_and_their_walls_need(void **state)
{
	static const char *const needed[] = { "mount", "unshare", "pivot_root",
		"clone3", "seccomp", "execve", "setresuid", "umount2", NULL };
	static const char *const refused[] = { "ptrace", "bpf", "keyctl", "setns",
		"io_uring_setup", "kexec_load", "perf_event_open", NULL };
	struct kn_policy *p = LOAD(SET("/seccomp/groups={\"add\":[\"@aio\"]}"));
	struct kn_err e;
	char *text = around(p, KN_EXPORT_SECCOMP, 2, &e);
	json_t *v = json_loads(text ? text : "", 0, NULL);

	(void)state;
	assert_non_null(v);
	for (size_t i = 0; needed[i]; i++)
		assert_string_equal(answer_to(v, needed[i]), "SCMP_ACT_ALLOW");
	for (size_t i = 0; refused[i]; i++)
		assert_string_equal(answer_to(v, refused[i]), "SCMP_ACT_ERRNO");
	/* The policy's own, which this program does not call. */
	assert_string_equal(answer_to(v, "io_setup"), "SCMP_ACT_ALLOW");
	json_decref(v);
	free(text);
	kn_policy_free(p);
	p = LOAD(SET("/pool/workers=2"));
	text = around(p, KN_EXPORT_SECCOMP, 2, &e);
	v = json_loads(text ? text : "", 0, NULL);
	assert_string_equal(answer_to(v, "io_setup"), "");
	json_decref(v);
	free(text);
	kn_policy_free(p);
}

static unsigned long
number_after(const char *text, const char *word)
{
	const char *at = text ? strstr(text, word) : NULL;

	return at ? strtoul(at + strlen(word), NULL, 10) : 0;
}

/* Else the container's limit ends the server with a task that keeps to its own. */
static void
around_it_is_memory_for_all_tasks_at_a_time(void **state)
{
	struct kn_policy *p = LOAD(SET("/limits/task/memory=100M"),
	    SET("/payload={\"max\":\"1M\",\"area\":\"8M\"}"));
	struct kn_err e;
	char *one = around(p, KN_EXPORT_DOCKER, 1, &e);
	char *nine = around(p, KN_EXPORT_DOCKER, 9, &e);
	/* 100 MiB, the preset's 64 + 64 + 256 of files, 8 to hand over. */
	unsigned long each =
	    (number_after(nine, "--memory ") - number_after(one, "--memory ")) / 8;

	(void)state;
	assert_in_range(each, 492, 493);
	assert_true(number_after(one, "--memory ") > each);
	free(one);
	free(nine);
	kn_policy_free(p);
	p = LOAD(SET("/limits/task/memory=0"));
	assert_null(around(p, KN_EXPORT_DOCKER, 1, &e));
	assert_non_null(strstr(e.msg, "/limits/task"));
	assert_null(around(p, KN_EXPORT_OCI, 1, &e));
	kn_policy_free(p);
	p = LOAD(SET("/launcher/type=direct"));
	assert_null(around(p, KN_EXPORT_SECCOMP, 1, &e));
	assert_non_null(strstr(e.msg, "/launcher/type"));
	kn_policy_free(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_without_order_answer_as_ours_do),
		cmocka_unit_test(every_comparison_is_told_exactly),
		cmocka_unit_test(
		    what_a_back_end_lacks_is_an_error_unless_it_may_be_weaker),
		cmocka_unit_test(what_is_denied_is_never_told_as_a_bind),
		cmocka_unit_test(what_a_policy_says_stands_in_each_format),
		cmocka_unit_test(around_it_passes_what_tasks_and_their_walls_need),
		cmocka_unit_test(around_it_is_memory_for_all_tasks_at_a_time),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
