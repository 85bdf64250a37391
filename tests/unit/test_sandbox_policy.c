/* tests/unit/test_sandbox_policy.c: a policy is what its documents say and nothing
 * else: every key of the table has an effect, every mistake has one clear sentence with
 * its place, later sources win, and what nobody can enforce is never just accepted.
 *
 *   test_sandbox_policy --schema    prints policies/schemas/policy.schema.json
 */
#include "tests/unit/policy_test.h"

#include "sandbox/filter_int.h"

/* ---- the default ---- */

static void
no_sources_mean_the_default_of_the_manual(void **state)
{
	struct kn_policy *p = load_n(NULL, 0);
	(void)state;
	assert_int_equal(p->task.memory, 2ull << 30);
	assert_int_equal(p->task.pids, 256);
	assert_int_equal(p->task.cpu_ms, 0);
	assert_int_equal(p->task.core, 0);
	assert_int_equal(p->task.stdout_bytes, 1 << 20);
	assert_int_equal(p->task.stderr_bytes, 1 << 20);
	assert_int_equal(p->timeouts.hard_ms, 60000);
	assert_int_equal(p->timeouts.grace_ms, 100);
	assert_int_equal(p->timeouts.stop_ack_ms, 50);
	assert_int_equal(p->timeouts.hard_slack_ms, 40);
	assert_int_equal(p->timeouts.teardown_ms, 10000);
	assert_int_equal(p->timeouts.claim_ms, 1000);
	assert_int_equal(p->fs.tmp_bytes, 64 << 20);
	assert_int_equal(p->fs.shm_bytes, 64 << 20);
	assert_int_equal(p->payload_max, 8 << 20);
	assert_int_equal(p->payload_area, 64 << 20);
	assert_int_equal(p->network, KN_NET_NONE);
	assert_int_equal(p->pool.workers, 0);
	assert_int_equal(p->pool.ipc, KN_IPC_TASK);
	assert_int_equal(p->seccomp.unlisted, KN_SC_ERRNO);
	assert_int_equal(p->seccomp.unlisted_errno, ENOSYS);
	assert_false(p->output_kill);
	assert_int_equal(p->require >> KN_LAYER_CG_MEMORY & 1, 0);
	assert_int_equal(p->allow_degraded >> KN_LAYER_CG_MEMORY & 1, 1);
	assert_int_equal(p->require >> KN_LAYER_SECCOMP & 1, 1);
	assert_int_equal(strlen(kn_policy_hash(p)), 7 + 64);
	kn_policy_free(p);
}

static void
the_system_root_tells_nothing_about_the_machine(void **state)
{
	static const char *const absent[] = { "/etc", "/etc/shadow", "/etc/gshadow",
		"/root", "/home", "/var", "/run", "/sys", "/opt", "/etc/ssh",
		"/etc/ssl/private", "/etc/machine-id", "/etc/hostname" };
	struct kn_policy *p = load_n(NULL, 0);
	(void)state;
	assert_int_equal(mount_at(p, "/usr")->type, KN_MOUNT_BIND);
	assert_false(mount_at(p, "/usr")->writable);
	for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
		assert_null(mount_at(p, absent[i]));
	const struct kn_mount *m = mount_at(p, "/etc/passwd");
	assert_non_null(m);
	assert_int_equal(m->type, KN_MOUNT_DATA);
	assert_non_null(strstr(m->data, "task:x:1000:1000:"));
	for (size_t i = 0; i < p->fs.mount_n; i++) {
		m = &p->fs.mounts[i];
		assert_false(m->writable);
		assert_false(m->user);
		assert_int_equal(m->at[0], '/');
		if (m->type == KN_MOUNT_BIND)
			assert_int_equal(m->source[0], '/');
	}
	kn_policy_free(p);

	p = LOAD(SET("/filesystem/root=empty"));
	assert_int_equal(p->fs.mount_n, 0);
	kn_policy_free(p);
}

static void
nothing_of_the_environment_is_inherited_unless_named(void **state)
{
	struct kn_policy *p = LOAD(SET("/environment/inherit=[\"LANG\",\"LANG\"]"),
	    VALUE("/environment/set/A~1B", "1"), SET("/environment/set/USER=null"));
	bool home = false, slash = false, user = false;
	(void)state;
	assert_int_equal(p->env.inherit_n, 2); /* TERM of the preset, LANG once */
	assert_string_equal(p->env.inherit[1], "LANG");
	for (size_t i = 0; i < p->env.set_n; i++) {
		home = home || strcmp(p->env.set[i], "HOME=/task") == 0;
		slash = slash || strcmp(p->env.set[i], "A/B=1") == 0;
		user = user || strncmp(p->env.set[i], "USER=", 5) == 0;
	}
	assert_true(home);
	assert_true(slash);
	assert_false(user);
	kn_policy_free(p);
}

/* ---- every key has an effect ---- */

/* A value other than `now` that the key accepts. */
static void
other_value(const struct kn_key *k, uint64_t now, char *out, size_t cap)
{
	if (k->type == KN_KEY_WORD) {
		snprintf(out, cap, "%s", k->words[now == 0 && k->words[1] ? 1 : 0]);
		return;
	}
	if (k->type == KN_KEY_BOOL) {
		snprintf(out, cap, "%s", now ? "false" : "true");
		return;
	}
	int64_t v = k->min + (k->min < k->max ? 1 : 0);
	if (k->type == KN_KEY_NUMBER)
		v = k->max / 1000;
	/* An eighth of the area is asked for as the most of the payload. */
	if (strcmp(k->path, "/payload/area") == 0)
		v = 1 << 30;
	/* A worker's limit has to be above the task's. */
	if (strncmp(k->path, "/limits/worker/", 15) == 0)
		v = k->max;
	if ((uint64_t)v == now)
		v++;
	snprintf(out, cap, "%lld", (long long)v);
}

static void
every_key_of_the_table_changes_the_policy(void **state)
{
	struct kn_policy *base = load_n(NULL, 0);
	size_t seen = 0;
	(void)state;
	for (size_t i = 0; i < kn_policy_key_n; i++) {
		const struct kn_key *k = &kn_policy_keys[i];
		char value[64], set[160];
		uint64_t was = 0, is = 0;
		if (!k->width || (k->type == KN_KEY_WORD && !k->words[1]))
			continue; /* the one word there is */
		memcpy(&was, (const char *)base + k->off, k->width);
		other_value(k, was, value, sizeof value);
		snprintf(set, sizeof set, "%s=%s", k->path, value);
		const char *with =
		    strcmp(k->path, "/pool/kind") == 0		? "/pool/module=/m.so"
		    : strcmp(k->path, "/launcher/runtime") == 0 ? "/launcher/type=oci"
								: "/version=1";
		struct kn_policy *p = LOAD(SET(set), SET(with));
		memcpy(&is, (const char *)p + k->off, k->width);
		if (is == was)
			fail_msg("%s has no effect", set);
		if (k->type == KN_KEY_NUMBER)
			is /= 1000;
		if (k->type != KN_KEY_WORD && k->type != KN_KEY_BOOL)
			assert_int_equal(is, strtoull(value, NULL, 10));
		assert_string_not_equal(kn_policy_hash(p), kn_policy_hash(base));
		assert_string_equal(kn_policy_origin(p, k->path), "--set");
		assert_true(kn_policy_named(p, k->path));
		assert_false(kn_policy_named(base, k->path));
		kn_policy_free(p);
		seen++;
	}
	assert_true(seen > 30);
	kn_policy_free(base);
}

/* A single value that the table does not store is stored by code, and tested apart. */
static void
no_single_value_is_forgotten(void **state)
{
	static const char *const elsewhere[] = { "/$schema", "/description", "/version",
		"/extends", "/identity/user", "/identity/hostname", "/pool/module",
		"/pool/init", "/permissions/project", "/launcher/image",
		"/launcher/rootfs" };
	(void)state;
	for (size_t i = 0; i < kn_policy_key_n; i++) {
		const struct kn_key *k = &kn_policy_keys[i];
		bool single = k->type == KN_KEY_WORD || k->type == KN_KEY_TEXT ||
			      k->type == KN_KEY_INT || k->type == KN_KEY_SIZE ||
			      k->type == KN_KEY_NUMBER || k->type == KN_KEY_BOOL;
		bool known = !single || k->width || strchr(k->path, '*');
		for (size_t j = 0; j < sizeof elsewhere / sizeof *elsewhere; j++)
			known = known || strcmp(k->path, elsewhere[j]) == 0;
		if (!known)
			fail_msg("%s goes nowhere", k->path);
	}
}

static void
ranges_end_where_the_table_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < kn_policy_key_n; i++) {
		const struct kn_key *k = &kn_policy_keys[i];
		char set[160];
		if (!k->width || (k->type != KN_KEY_INT && k->type != KN_KEY_SIZE))
			continue;
		snprintf(set, sizeof set, "%s=%lld", k->path, (long long)k->max + 1);
		refused_set(set, PIECES(k->path, "out of range"));
		snprintf(set, sizeof set, "%s=%lld", k->path, (long long)k->min - 1);
		if (!(k->none && k->min == 1))
			refused_set(set, PIECES(k->path, "out of range"));
		snprintf(set, sizeof set, "%s=[]", k->path);
		refused_set(set, PIECES(k->path, "expected"));
		snprintf(set, sizeof set, "%s=1.5", k->path);
		refused_set(set, PIECES(k->path, "fraction"));
	}
}

static void
numbers_may_have_a_fraction(void **state)
{
	const char *const at = "/limits/task/cpus";
	struct kn_policy *p = LOAD(SET("/limits/task/cpus=1.5"));

	(void)state;
	assert_int_equal(p->task_cpus, 1500);
	assert_true(p->require >> KN_LAYER_CG_CPU & 1);
	kn_policy_free(p);
	p = LOAD(SET("/limits/task/cpus=1.1"));
	assert_int_equal(p->task_cpus, 1100);
	char *told = kn_policy_value(p, at);
	assert_string_equal(told, "1.1");
	free(told);
	kn_policy_free(p);
	p = LOAD(SET("/limits/task/cpus=2"), SET("/allow_degraded=[\"cgroup.cpu\"]"));
	assert_int_equal(p->task_cpus, 2000);
	assert_false(p->require >> KN_LAYER_CG_CPU & 1);
	kn_policy_free(p);
	p = LOAD(SET("/limits/task/cpus=0"));
	assert_int_equal(p->task_cpus, 0);
	assert_false(p->require >> KN_LAYER_CG_CPU & 1);
	kn_policy_free(p);
	refused_set("/limits/task/cpus=0.09", PIECES(at, "out of range (0, or 0.1"));
	refused_set("/limits/task/cpus=8193", PIECES(at, "out of range"));
	refused_set("/limits/task/cpus=\"1\"", PIECES(at, "expected a number"));
}

static void
keys_of_a_later_version_are_refused_by_name(void **state)
{
	size_t seen = 0;
	(void)state;
	for (size_t i = 0; i < kn_policy_key_n; i++) {
		const struct kn_key *k = &kn_policy_keys[i];
		char set[160];
		for (size_t w = 0; k->later && k->later[w]; w++) {
			if (strchr(k->path, '*'))
				continue;
			snprintf(set, sizeof set, "%s=%s", k->path, k->later[w]);
			const char *why = kn_profile_no_action(k->later[w]);
			refused_set(set,
			    PIECES(k->path, k->later[w], why ? why : "not supported"));
			seen++;
		}
		if (k->type != KN_KEY_LATER)
			continue;
		snprintf(set, sizeof set, "%s=[\"x\"]", k->path);
		refused_set(set, PIECES(k->path, "not supported by this version"));
		snprintf(set, sizeof set, "%s=1", k->path);
		refused_set(set, PIECES(k->path, "not supported by this version"));
		/* Asking for nothing is answered with nothing. */
		snprintf(set, sizeof set, "%s=[]", k->path);
		kn_policy_free(LOAD(SET(set)));
		seen++;
	}
	assert_true(seen > 1);
}

/* ---- flags ---- */

static void
flags_are_sources_like_any_other(void **state)
{
	struct kn_policy *p = LOAD(VALUE("/timeouts/hard_ms", "1.5s"),
	    VALUE("/timeouts/task_ms", "250"), VALUE("/identity/hostname", "123"),
	    SET("/environment/set/A=1"), SET("/environment/set/B=\"x\\ty\""),
	    SET("/environment/set/C=a=b"), VALUE("/environment/set/D", "\"q\""));
	size_t seen = 0;
	(void)state;
	assert_int_equal(p->timeouts.hard_ms, 1500);
	assert_int_equal(p->timeouts.task_ms, 250);
	assert_string_equal(p->identity.hostname, "123");
	for (size_t i = 0; i < p->env.set_n; i++) {
		static const char *const want[] = { "A=1", "B=x\ty", "C=a=b",
			"D=\"q\"" };
		for (size_t j = 0; j < 4; j++)
			seen += strcmp(p->env.set[i], want[j]) == 0;
	}
	assert_int_equal(seen, 4);
	kn_policy_free(p);
	refused_set("nonsense", PIECES("--set", "pointer"));
	refused_set("a/b=1", PIECES("--set", "pointer"));
	refused_set("/extends=strict", PIECES("/extends", "--policy"));
	refused_set("/no/such/key=1", PIECES("--set", "/no"));
	refused_set("/timeouts/hard_ms=\"2s\"", PIECES("/timeouts/hard_ms"));
	refused_set("/seccomp/rules/0=1", PIECES("/seccomp/rules"));
	refused_set(
	    "/limits/task/memory={\"a\":1,\"a\":2}", PIECES("/limits/task/memory"));
	refused_n(&(const struct kn_policy_src)VALUE("/limits/task/memory", "x"), 1,
	    PIECES("--flag", "/limits/task/memory"));
}

static void
sizes_and_durations(void **state)
{
	static const char *const bad_sizes[] = { "", "M", "-1", "1.5G", "1MB", " 1",
		"1 ", "0x10", "99999999999999999999", "9999999999G", "1T" };
	static const char *const bad_times[] = { "", "5", "s", "-1s", "1.s", "1.2345s",
		"1.5ms", "2 s", "2sec", "99999999999999999999s", "1e3s" };
	uint64_t v;
	(void)state;
	assert_int_equal(kn_policy_size("64M", &v, NULL), 0);
	assert_int_equal(v, 64 << 20);
	assert_int_equal(kn_policy_size("3k", &v, NULL), 0);
	assert_int_equal(v, 3072);
	assert_int_equal(kn_policy_size("0", &v, NULL), 0);
	assert_int_equal(v, 0);
	for (size_t i = 0; i < sizeof bad_sizes / sizeof *bad_sizes; i++)
		assert_int_equal(kn_policy_size(bad_sizes[i], &v, NULL), -1);
	assert_int_equal(kn_policy_duration_ms("500ms", &v, NULL), 0);
	assert_int_equal(v, 500);
	assert_int_equal(kn_policy_duration_ms("2m", &v, NULL), 0);
	assert_int_equal(v, 120000);
	assert_int_equal(kn_policy_duration_ms("0.25s", &v, NULL), 0);
	assert_int_equal(v, 250);
	assert_int_equal(kn_policy_duration_ms("0", &v, NULL), 0);
	assert_int_equal(v, 0);
	for (size_t i = 0; i < sizeof bad_times / sizeof *bad_times; i++)
		assert_int_equal(kn_policy_duration_ms(bad_times[i], &v, NULL), -1);
}

/* ---- a task's own limits ---- */

static void
a_task_tightens_and_never_loosens(void **state)
{
	struct kn_policy *p = LOAD(SET("/limits/task/cpu_ms=0"));
	struct kn_task_ask ask = {
		.has_memory = true, .has_hard_ms = true, .has_cpu_ms = true
	};
	struct kn_task_limits l;
	struct kn_timeouts t;
	struct kn_err e;
	(void)state;
	ask.limits.memory = 64 << 20;
	ask.limits.cpu_ms = 5;
	ask.timeouts.hard_ms = 60000;
	assert_int_equal(kn_policy_tighten(p, &ask, &l, &t, &e), 0);
	assert_int_equal(l.memory, 64 << 20);
	assert_int_equal(l.cpu_ms, 5); /* the policy has none: any is tighter */
	assert_int_equal(l.pids, 256);
	assert_int_equal(t.hard_ms, 60000);
	static const struct {
		const char *pointer;
		struct kn_task_ask ask;
	} loose[] = {
		{ "/limits/task/memory",
		    { .has_memory = true, .limits.memory = 3ull << 30 } },
		{ "/limits/task/memory", { .has_memory = true, .limits.memory = 0 } },
		{ "/limits/task/memory", { .has_memory = true, .limits.memory = 10 } },
		{ "/limits/task/pids", { .has_pids = true, .limits.pids = 257 } },
		{ "/limits/task/nofile",
		    { .has_nofile = true, .limits.nofile = 1025 } },
		{ "/limits/task/fsize", { .has_fsize = true, .limits.fsize = 0 } },
		{ "/limits/task/stack",
		    { .has_stack = true, .limits.stack = 9 << 20 } },
		{ "/limits/task/core", { .has_core = true, .limits.core = 1 } },
		{ "/limits/task/stdout",
		    { .has_stdout = true, .limits.stdout_bytes = 2 << 20 } },
		{ "/limits/task/stderr",
		    { .has_stderr = true, .limits.stderr_bytes = UINT64_MAX } },
		{ "/timeouts/hard_ms",
		    { .has_hard_ms = true, .timeouts.hard_ms = 60001 } },
		{ "/timeouts/hard_ms", { .has_hard_ms = true, .timeouts.hard_ms = 0 } },
		{ "/timeouts/grace_ms",
		    { .has_grace_ms = true, .timeouts.grace_ms = 101 } },
	};
	for (size_t i = 0; i < sizeof loose / sizeof *loose; i++) {
		kn_err_clear(&e);
		assert_int_equal(kn_policy_tighten(p, &loose[i].ask, &l, &t, &e), -1);
		assert_non_null(strstr(e.msg, loose[i].pointer));
	}
	kn_policy_free(p);
}

/* ---- text, hash, schema ---- */

static void
the_printed_policy_loads_to_the_same_hash(void **state)
{
	(void)state;
	for (const char *const *name = kn_policy_presets(); *name; name++) {
		struct kn_policy *p = LOAD(NAMED(*name));
		char *text = kn_policy_text(p);
		assert_non_null(text);
		struct kn_policy *q = LOAD(NAMED(file("a.json", text)));
		assert_string_equal(kn_policy_hash(p), kn_policy_hash(q));
		kn_policy_free(q);
		kn_policy_free(p);
		free(text);
	}
}

static void
every_rule_and_mount_of_a_preset_says_why(void **state)
{
	(void)state;
	for (const char *const *name = kn_policy_presets(); *name; name++) {
		struct kn_pdoc d = { 0 };
		struct kn_err e;
		static const char *const lists[] = { "/seccomp/rules",
			"/filesystem/mounts" };
		assert_int_equal(kn_pdoc_preset(&d, *name, &e), 0);
		for (int l = 0; l < 2; l++) {
			json_t *a = kn_pointer_get(d.root, lists[l]);
			for (size_t i = 0; i < json_array_size(a); i++) {
				const char *why = json_string_value(
				    json_object_get(json_array_get(a, i), "why"));
				if (!why || !*why)
					fail_msg("%s: %s/%zu", *name, lists[l], i);
			}
		}
		assert_non_null(json_object_get(d.root, "description"));
		kn_pdoc_fini(&d);
	}
}

static void
the_schema_that_ships_is_the_tables(void **state)
{
	FILE *f = fopen("policies/schemas/policy.schema.json", "r");
	static char ships[1 << 18];
	(void)state;
	if (!f)
		fail_msg("run from the top folder: %s", strerror(errno));
	size_t n = fread(ships, 1, sizeof ships - 1, f);
	fclose(f);
	ships[n] = 0;
	char *made = kn_policy_schema();
	assert_non_null(made);
	if (n == 0 || strncmp(ships, made, strlen(made)) != 0 ||
	    strcmp(ships + strlen(made), "\n") != 0)
		fail_msg(
		    "policies/schemas/policy.schema.json is not what the key table "
		    "says: make it with this program's --schema");
	free(made);
}

/* A key without a word in the manual is one that nobody finds. */
static void
the_manual_names_every_key_and_group(void **state)
{
	static char page[1 << 16];
	FILE *f = fopen("man/knit-policy.5", "r");
	(void)state;
	if (!f)
		fail_msg("run from the top folder: %s", strerror(errno));
	page[fread(page, 1, sizeof page - 1, f)] = 0;
	fclose(f);
	for (size_t i = 0; i < kn_policy_key_n; i++) {
		const char *name = strrchr(kn_policy_keys[i].path, '/');
		if (name && name[1] != '*' && kn_policy_keys[i].type != KN_KEY_LATER &&
		    !strstr(page, name + 1))
			fail_msg("%s is not in knit-policy(5)", kn_policy_keys[i].path);
	}
	for (size_t i = 0; i < kn_filter_group_n; i++)
		if (!strstr(page, kn_filter_groups[i].name))
			fail_msg("%s is not there", kn_filter_groups[i].name);
	for (const char *const *p = kn_policy_presets(); *p; p++)
		if (!strstr(page, *p))
			fail_msg("preset %s is not there", *p);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_sources_mean_the_default_of_the_manual),
		cmocka_unit_test(the_system_root_tells_nothing_about_the_machine),
		cmocka_unit_test(nothing_of_the_environment_is_inherited_unless_named),
		cmocka_unit_test(every_key_of_the_table_changes_the_policy),
		cmocka_unit_test(no_single_value_is_forgotten),
		cmocka_unit_test(ranges_end_where_the_table_says),
		cmocka_unit_test(numbers_may_have_a_fraction),
		cmocka_unit_test(keys_of_a_later_version_are_refused_by_name),
		cmocka_unit_test(flags_are_sources_like_any_other),
		cmocka_unit_test(sizes_and_durations),
		cmocka_unit_test(a_task_tightens_and_never_loosens),
		cmocka_unit_test(the_printed_policy_loads_to_the_same_hash),
		cmocka_unit_test(every_rule_and_mount_of_a_preset_says_why),
		cmocka_unit_test(the_schema_that_ships_is_the_tables),
		cmocka_unit_test(the_manual_names_every_key_and_group),
	};
	if (argc > 1 && strcmp(argv[1], "--schema") == 0) {
		char *text = kn_policy_schema();
		if (!text || puts(text) < 0)
			return 1;
		free(text);
		return 0;
	}
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
