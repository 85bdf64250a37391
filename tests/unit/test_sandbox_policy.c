/* tests/unit/test_sandbox_policy.c: a policy is what its documents say and nothing
 * else: every key of the table has an effect, every mistake has one clear sentence with
 * its place, later sources win, and what nobody can enforce is never just accepted.
 *
 *   test_sandbox_policy --schema    prints policies/schemas/policy.schema.json
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/err.h"
#include "sandbox/policy_int.h"
#include "sandbox/sha256.h"

static char dir[64]; /* of this run, below /tmp */

static int
make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/knit-policy-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int
remove_dir(void **state)
{
	char cmd[2][80];
	(void)state;
	/* Flat: only files that this program wrote. */
	static const char *const names[] = { "a.json", "b.json", "c.json", "big.json",
		"fifo", "sub/d.json", "sub" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(cmd[0], sizeof cmd[0], "%s/%s", dir, names[i]);
		if (unlink(cmd[0]) < 0)
			rmdir(cmd[0]);
	}
	return rmdir(dir);
}

/* Write dir/name; the path in a static buffer. */
static const char *
file_of(const char *name, const char *text, size_t n)
{
	static char path[2][128];
	static int turn;
	char *p = path[turn ^= 1];
	snprintf(p, sizeof path[0], "%s/%s", dir, name);
	FILE *f = fopen(p, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	return p;
}

static const char *
file(const char *name, const char *text)
{
	return file_of(name, text, strlen(text));
}

#define NAMED(t) \
	{ \
		.type = KN_SRC_NAMED, .text = (t), .label = "--policy" \
	}
#define SET(t) \
	{ \
		.type = KN_SRC_SET, .text = (t), .label = "--set" \
	}
#define VALUE(p, t) \
	{ \
		.type = KN_SRC_VALUE, .pointer = (p), .text = (t), .label = "--flag" \
	}

static struct kn_policy *
load_n(const struct kn_policy_src *src, size_t n)
{
	struct kn_policy *p = NULL;
	struct kn_err e;
	kn_err_clear(&e);
	if (kn_policy_load(src, n, &p, &e) < 0)
		fail_msg("%s", e.msg);
	return p;
}
#define LOAD(...) \
	load_n((const struct kn_policy_src[]){ __VA_ARGS__ }, \
	    sizeof((const struct kn_policy_src[]){ __VA_ARGS__ }) / \
		sizeof(struct kn_policy_src))

/* Loading must fail with all the given pieces in the message. */
static void
refused_n(const struct kn_policy_src *src, size_t n, const char *const *pieces)
{
	struct kn_policy *p = NULL;
	struct kn_err e;
	kn_err_clear(&e);
	if (kn_policy_load(src, n, &p, &e) == 0)
		fail_msg("accepted: %s", src[n - 1].text);
	assert_null(p);
	assert_true(e.kind == KN_EK_CONFIG || e.kind == KN_EK_USAGE);
	assert_null(strchr(e.msg, '\n'));
	for (; *pieces; pieces++)
		if (!strstr(e.msg, *pieces))
			fail_msg("\"%s\" has no \"%s\"", e.msg, *pieces);
}
#define PIECES(...) \
	(const char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}
static void
refused(const char *text, const char *const *pieces)
{
	const struct kn_policy_src src = NAMED(file("a.json", text));
	refused_n(&src, 1, pieces);
}
static void
refused_set(const char *text, const char *const *pieces)
{
	const struct kn_policy_src src = SET(text);
	refused_n(&src, 1, pieces);
}

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
	assert_int_equal(strlen(p->hash), 7 + 64);
	kn_policy_free(p);
}

static const struct kn_mount *
mount_at(const struct kn_policy *p, const char *at)
{
	for (size_t i = 0; i < p->fs.mount_n; i++)
		if (strcmp(p->fs.mounts[i].at, at) == 0)
			return &p->fs.mounts[i];
	return NULL;
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
	int64_t v = k->min + (k->min < k->max ? 1 : 0);
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
		struct kn_policy *p = LOAD(SET(set));
		memcpy(&is, (const char *)p + k->off, k->width);
		if (is == was)
			fail_msg("%s has no effect", set);
		if (k->type != KN_KEY_WORD)
			assert_int_equal(is, strtoull(value, NULL, 10));
		assert_string_not_equal(p->hash, base->hash);
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
		"/extends", "/identity/user", "/identity/hostname" };
	(void)state;
	for (size_t i = 0; i < kn_policy_key_n; i++) {
		const struct kn_key *k = &kn_policy_keys[i];
		bool single = k->type == KN_KEY_WORD || k->type == KN_KEY_TEXT ||
			      k->type == KN_KEY_INT || k->type == KN_KEY_SIZE;
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
			refused_set(set, PIECES(k->path, k->later[w], "not supported"));
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
	assert_true(seen > 20);
}

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
		{ "{\"version\":2}", { "a.json:1:12", "/version" } },
		{ "{\"version\":1,\n\"pool\":{},\n  \"pool\":{}}",
		    { "a.json:3:", "pool" } },
		{ "{\"version\":1,\n \"limits\":{\"task\":\n   {\"memroy\":\"1G\"}}}",
		    { "a.json:3:5", "/limits/task/memroy", "\"memory\"" } },
		{ "{\"version\":1,\"a/b~\":1}", { "a.json:1:14", "/a~1b~0: unknown" } },
		{ "{\"version\":1,\"limits\":{\"task\":{\"pids\":\"many\"}}}",
		    { "a.json:1:39", "/limits/task/pids", "string" } },
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
		  "\"SCMP_ACT_TRAP\"}]}",
		    { "/action", "not supported" } },
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

/* ---- merging ---- */

static void
objects_merge_arrays_append_null_removes_later_wins(void **state)
{
	char b[256];
	const char *a = file("a.json",
	    "{\"version\":1,\"limits\":{\"task\":{\"pids\":11,\"nofile\":100}},"
	    "\"filesystem\":{\"task_paths\":[\"x\",\"/y\"]},"
	    "\"environment\":{\"set\":{\"K\":\"a\"}}}");
	(void)state;
	snprintf(b, sizeof b,
	    "{\"version\":1,\"extends\":\"a.json\",\"limits\":{\"task\":{\"nofile\":"
	    "200,\"fsize\":null}},\"filesystem\":{\"task_paths\":[\"../z\"]}}");
	(void)a;
	struct kn_policy *p =
	    LOAD(NAMED(file("b.json", b)), SET("/limits/task/pids=12"));
	char want[3][96];
	snprintf(want[0], sizeof want[0], "%s/x", dir);
	assert_int_equal(p->task.pids, 12);
	assert_int_equal(p->task.nofile, 200);
	assert_int_equal(p->task.fsize, 0);
	assert_int_equal(p->task.memory, 2ull << 30); /* the default, below it all */
	assert_int_equal(p->fs.task_path_n, 3);
	assert_string_equal(p->fs.task_paths[0], want[0]);
	assert_string_equal(p->fs.task_paths[1], "/y");
	assert_string_equal(p->fs.task_paths[2], "/tmp/z");
	assert_string_equal(kn_policy_origin(p, "/limits/task/pids"), "--set");
	assert_non_null(strstr(kn_policy_origin(p, "/limits/task/nofile"), "b.json:/"));
	assert_string_equal(
	    kn_policy_origin(p, "/limits/task/memory"), "preset default");
	assert_null(kn_policy_origin(p, "/limits/task/fsize"));
	kn_policy_free(p);
}

static void
a_base_is_applied_once(void **state)
{
	/* The second document's base must not reset what the first one set. */
	const char *a = file("a.json",
	    "{\"version\":1,\"extends\":\"default\",\"timeouts\":{\"hard_ms\":7000}}");
	struct kn_policy *p = LOAD(NAMED("strict"), NAMED(a));
	(void)state;
	assert_int_equal(p->timeouts.hard_ms, 7000);
	assert_int_equal(p->task.memory, 512 << 20);
	assert_int_equal(p->task.stack, 8 << 20);
	kn_policy_free(p);
	/* Flags come after all documents, wherever they stand. */
	p = LOAD(SET("/timeouts/hard_ms=5"), NAMED(a));
	assert_int_equal(p->timeouts.hard_ms, 5);
	kn_policy_free(p);
}

static void
extends_null_stands_alone(void **state)
{
	struct kn_policy *p =
	    LOAD(NAMED(file("a.json", "{\"version\":1,\"extends\":null}")));
	(void)state;
	assert_int_equal(p->seccomp.group_n, 0); /* an empty list means none */
	assert_int_equal(p->fs.mount_n, 0);
	assert_int_equal(p->env.set_n, 0);
	assert_int_equal(p->allow_degraded, 0);
	assert_int_equal(p->task.memory, 0);
	assert_int_equal(p->task.stdout_bytes, UINT64_MAX);
	assert_int_equal(p->timeouts.claim_ms, 1000);
	kn_policy_free(p);
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
groups_replace_then_add_then_remove(void **state)
{
	struct kn_policy *p =
	    LOAD(SET("/seccomp/groups/replace=[\"@default\",\"@ipc\"]"),
		SET("/seccomp/groups={\"add\":[\"@aio\",\"@ipc\"],\"remove\":"
		    "[\"@default\"]}"),
		SET("/seccomp/groups/add=[\"@default\"]"));
	(void)state;
	assert_int_equal(p->seccomp.group_n, 3);
	assert_string_equal(p->seccomp.groups[0], "@ipc");
	assert_string_equal(p->seccomp.groups[1], "@aio");
	assert_string_equal(p->seccomp.groups[2], "@default");
	kn_policy_free(p);
}

static void
mounts_stand_parents_first_and_later_wins(void **state)
{
	struct kn_policy *p = LOAD(
	    SET("/filesystem/mounts=[{\"bind\":\"/a\",\"at\":\"/data//x/.\"},"
		"{\"bind\":\"/b\",\"at\":\"/data\",\"mode\":\"rw\"},{\"dir\":\"/d\"},"
		"{\"symlink\":\"d\",\"at\":\"/link\"}]"),
	    { .type = KN_SRC_MOUNT,
		.text = "c/./e",
		.at = "/data/x",
		.writable = true,
		.label = "--bind" },
	    SET("/filesystem/mounts=[{\"tmpfs\":\"/tmp\",\"size\":\"5M\"},"
		"{\"tmpfs\":\"/dev/shm\",\"size\":8192},"
		"{\"tmpfs\":\"/task\",\"size\":\"7M\",\"inodes\":99}]"));
	char want[4200], cwd[4096];
	const struct kn_mount *m = mount_at(p, "/data/x");
	(void)state;
	assert_non_null(getcwd(cwd, sizeof cwd));
	snprintf(want, sizeof want, "%s/c/e", cwd);
	assert_non_null(m);
	assert_string_equal(m->source, want);
	assert_string_equal(m->origin, "--bind");
	assert_true(m->writable && m->user);
	assert_true(mount_at(p, "/data") < m);
	assert_true(mount_at(p, "/usr") < mount_at(p, "/data"));
	assert_true(mount_at(p, "/data")->writable);
	assert_int_equal(mount_at(p, "/d")->type, KN_MOUNT_DIR);
	assert_string_equal(mount_at(p, "/link")->source, "d");
	assert_int_equal(p->fs.tmp_bytes, 5 << 20);
	assert_int_equal(p->fs.tmp_inodes, 10000);
	assert_int_equal(p->fs.shm_bytes, 8192);
	assert_int_equal(p->fs.task_bytes, 7 << 20);
	assert_int_equal(p->fs.task_inodes, 99);
	kn_policy_free(p);

	/* What a bind covers is not mounted below it for nothing. */
	p = LOAD(
	    { .type = KN_SRC_MOUNT, .text = "/srv", .at = "/etc", .label = "--b" });
	assert_null(mount_at(p, "/etc/passwd"));
	assert_non_null(mount_at(p, "/etc"));
	kn_policy_free(p);
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

/* ---- layers ---- */

static bool
bit(uint32_t bits, enum kn_layer l)
{
	return bits >> l & 1;
}

static void
a_memory_limit_by_name_is_enforced_or_refused(void **state)
{
	const enum kn_layer mem = KN_LAYER_CG_MEMORY;
	struct kn_policy *p = LOAD(VALUE("/limits/task/memory", "64M"));
	(void)state;
	assert_true(bit(p->require, mem) && !bit(p->allow_degraded, mem));
	kn_policy_free(p);
	p = LOAD(SET("/limits={\"worker\":{\"memory\":\"4G\"}}"));
	assert_true(bit(p->require, mem));
	kn_policy_free(p);
	for (int i = 0; i < 2; i++) {
		p = LOAD(NAMED(i ? "judge" : "strict"));
		assert_true(bit(p->require, mem) && !bit(p->allow_degraded, mem));
		kn_policy_free(p);
	}
	/* The same source, or a later one, may give it up; an earlier one may not. */
	p = LOAD(
	    SET("/limits/task/memory=64M"), SET("/allow_degraded=[\"cgroup.memory\"]"));
	assert_true(!bit(p->require, mem) && bit(p->allow_degraded, mem));
	kn_policy_free(p);
	p = LOAD(
	    SET("/allow_degraded=[\"cgroup.memory\"]"), SET("/limits/task/memory=64M"));
	assert_true(bit(p->require, mem));
	kn_policy_free(p);
	p = LOAD(NAMED(
	    file("a.json", "{\"version\":1,\"extends\":\"judge\",\"allow_degraded\":"
			   "[\"cgroup.memory\"]}")));
	assert_true(!bit(p->require, mem) && bit(p->allow_degraded, mem));
	kn_policy_free(p);
	/* Processes and CPU time need no cgroup to be exact. */
	p = LOAD(VALUE("/limits/task/pids", "9"), VALUE("/limits/task/cpu_ms", "2s"));
	assert_int_equal(p->task.cpu_ms, 2000);
	assert_false(bit(p->require, KN_LAYER_CG_PIDS));
	assert_true(bit(p->allow_degraded, KN_LAYER_CG_PIDS));
	assert_false(bit(p->require, mem));
	kn_policy_free(p);
}

static void
require_and_allow_undo_one_another(void **state)
{
	struct kn_policy *p = LOAD(SET("/require=[\"mseal\"]"), SET("/landlock=on"),
	    SET("/allow_degraded=[\"seccomp\"]"));
	(void)state;
	assert_true(bit(p->require, KN_LAYER_MSEAL));
	assert_false(bit(p->allow_degraded, KN_LAYER_MSEAL));
	assert_true(bit(p->require, KN_LAYER_LANDLOCK));
	assert_false(bit(p->require, KN_LAYER_SECCOMP));
	kn_policy_free(p);
	p = LOAD(SET("/require=null"), SET("/allow_degraded=null"));
	assert_int_equal(p->require, 0);
	assert_int_equal(p->allow_degraded, 0);
	kn_policy_free(p);
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
		assert_string_equal(p->hash, q->hash);
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

static void
sha256_gives_the_standards_vectors(void **state)
{
	static const struct {
		const char *text, *hex;
		size_t times;
	} v[] = {
		{ "",
		    "e3b0c44298fc1c149afbf4c8996fb924"
		    "27ae41e4649b934ca495991b7852b855",
		    1 },
		{ "abc",
		    "ba7816bf8f01cfea414140de5dae2223"
		    "b00361a396177a9cb410ff61f20015ad",
		    1 },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		    "248d6a61d20638b8e5c026930c3e6039"
		    "a33ce45964ff2167f6ecedd419db06c1",
		    1 },
		{ "a",
		    "cdc76e5c9914fb9281a1c7e284d73e67"
		    "f1809a48a497200e046d39ccc7112cd0",
		    1000000 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		size_t n = strlen(v[i].text);
		char *data = malloc(n * v[i].times + 1), hex[65];
		uint8_t sum[32];
		for (size_t t = 0; t < v[i].times; t++)
			memcpy(data + t * n, v[i].text, n);
		kn_sha256(data, n * v[i].times, sum);
		for (size_t b = 0; b < 32; b++)
			snprintf(hex + 2 * b, 3, "%02x", sum[b]);
		assert_string_equal(hex, v[i].hex);
		free(data);
	}
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
		cmocka_unit_test(keys_of_a_later_version_are_refused_by_name),
		cmocka_unit_test(a_mistake_is_one_sentence_with_its_place),
		cmocka_unit_test(mounts_and_rules_are_whole_or_refused),
		cmocka_unit_test(deep_long_and_strange_files_are_refused_quickly),
		cmocka_unit_test(a_place_is_found_among_escapes_and_strings),
		cmocka_unit_test(objects_merge_arrays_append_null_removes_later_wins),
		cmocka_unit_test(a_base_is_applied_once),
		cmocka_unit_test(extends_null_stands_alone),
		cmocka_unit_test(a_cycle_names_both_ends),
		cmocka_unit_test(groups_replace_then_add_then_remove),
		cmocka_unit_test(mounts_stand_parents_first_and_later_wins),
		cmocka_unit_test(a_bind_without_a_place_needs_a_possible_one),
		cmocka_unit_test(a_memory_limit_by_name_is_enforced_or_refused),
		cmocka_unit_test(require_and_allow_undo_one_another),
		cmocka_unit_test(flags_are_sources_like_any_other),
		cmocka_unit_test(sizes_and_durations),
		cmocka_unit_test(a_task_tightens_and_never_loosens),
		cmocka_unit_test(the_printed_policy_loads_to_the_same_hash),
		cmocka_unit_test(every_rule_and_mount_of_a_preset_says_why),
		cmocka_unit_test(the_schema_that_ships_is_the_tables),
		cmocka_unit_test(sha256_gives_the_standards_vectors),
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
