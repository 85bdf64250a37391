/* tests/unit/test_sandbox_policy_merge.c: several documents become one: what merges,
 * appends, removes and wins, and which walls must hold in the end.
 */
#include "tests/unit/policy_test.h"

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

/* Loading does not check them again. */
static void
presets_pass_the_check_that_files_must(void **state)
{
	(void)state;
	for (const char *const *name = kn_policy_presets(); *name; name++) {
		struct kn_pdoc d = { 0 };
		struct kn_err e = { 0 };
		if (kn_pdoc_preset(&d, *name, &e) < 0 ||
		    kn_policy_check_doc(&d, &e) < 0)
			fail_msg("%s: %s", *name, e.msg);
		kn_pdoc_fini(&d);
	}
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
	    SET("/allow_degraded=[\"uid\"]"), SET("/require=[\"cgroup.cpu\"]"));
	(void)state;
	assert_true(bit(p->require, KN_LAYER_MSEAL));
	assert_false(bit(p->allow_degraded, KN_LAYER_MSEAL));
	assert_true(bit(p->require, KN_LAYER_LANDLOCK));
	assert_true(bit(p->allow_degraded, KN_LAYER_UID));
	assert_false(bit(p->allow_degraded, KN_LAYER_CG_CPU));
	kn_policy_free(p);
	p = LOAD(SET("/permissions/run=[]"));
	assert_false(bit(p->require, KN_LAYER_LANDLOCK));
	kn_policy_free(p);
	p = LOAD(SET("/permissions/run=[\"sh\"]"));
	assert_true(bit(p->require, KN_LAYER_LANDLOCK));
	kn_policy_free(p);
	p = LOAD(
	    SET("/permissions/run=[\"sh\"]"), SET("/allow_degraded=[\"landlock\"]"));
	assert_true(bit(p->allow_degraded, KN_LAYER_LANDLOCK));
	kn_policy_free(p);
	p = LOAD(SET("/require=null"), SET("/allow_degraded=null"));
	assert_int_equal(p->require, 0);
	assert_int_equal(p->allow_degraded, 0);
	kn_policy_free(p);
}

static void
a_module_is_a_bind_of_its_own(void **state)
{
	struct kn_policy *p = LOAD(SET("/pool/kind=module"),
	    SET("/pool/module=/lib/m.so"), SET("/pool/init=hello"));
	const struct kn_mount *m = NULL;
	(void)state;
	for (size_t i = 0; i < p->fs.mount_n; i++)
		if (strcmp(p->fs.mounts[i].at, "/module/m.so") == 0)
			m = &p->fs.mounts[i];
	assert_non_null(m);
	assert_true(m->user && !m->writable);
	assert_string_equal(m->source, "/lib/m.so");
	assert_string_equal(p->pool.module_at, "/module/m.so");
	assert_string_equal(p->pool.init, "hello");
	kn_policy_free(p);
	refused_set("/pool/kind=module", PIECES("/pool/kind", "/pool/module"));
	refused_set("/pool/module=/m.so", PIECES("/pool/module", "module\" only"));
	refused_set("/pool/init=x", PIECES("/pool/init", "module\" only"));
}

/* Each entry is held and compared as a bind of the caller's; links are made again. */
static void
a_directory_as_root_is_its_entries(void **state)
{
	char top[] = "/tmp/knit-rootfs.XXXXXX", path[64], set[80];
	struct kn_policy *p;
	struct kn_err e = { 0 };
	(void)state;
	assert_non_null(mkdtemp(top));
	for (const char *const *d = (const char *const[]){ "dev", "proc", "opt", NULL };
	     *d; d++) {
		snprintf(path, sizeof path, "%s/%s", top, *d);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	snprintf(path, sizeof path, "%s/bin", top);
	assert_int_equal(symlink("opt/bin", path), 0);
	snprintf(set, sizeof set, "/launcher/rootfs=%s", top);
	p = LOAD(SET("/launcher/type=oci"), SET(set));
	assert_int_equal(p->fs.mount_n, 2);
	assert_int_equal(mount_at(p, "/bin")->type, KN_MOUNT_SYMLINK);
	assert_string_equal(mount_at(p, "/bin")->source, "opt/bin");
	assert_true(mount_at(p, "/opt")->user);
	assert_false(mount_at(p, "/opt")->writable);
	kn_policy_free(p);
	/* A runtime would be led out of the root. */
	snprintf(path, sizeof path, "%s/dev", top);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink("../outside", path), 0);
	const struct kn_policy_src src[] = { SET("/launcher/type=oci"), SET(set) };
	assert_int_equal(kn_policy_load(src, 2, &p, &e), -1);
	assert_non_null(strstr(e.msg, "its /dev is not a directory"));
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof path, "%s/bin", top);
	assert_int_equal(unlink(path), 0);
	for (const char *const *d = (const char *const[]){ "proc", "opt", "", NULL };
	     *d; d++) {
		snprintf(path, sizeof path, "%s/%s", top, *d);
		assert_int_equal(rmdir(path), 0);
	}
	refused_set("/launcher/rootfs=/x", PIECES("/launcher/rootfs", "launcher oci"));
	refused_set(
	    "/launcher/runtime=crun", PIECES("/launcher/runtime", "launcher oci"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_directory_as_root_is_its_entries),
		cmocka_unit_test(a_module_is_a_bind_of_its_own),
		cmocka_unit_test(objects_merge_arrays_append_null_removes_later_wins),
		cmocka_unit_test(presets_pass_the_check_that_files_must),
		cmocka_unit_test(a_base_is_applied_once),
		cmocka_unit_test(extends_null_stands_alone),
		cmocka_unit_test(groups_replace_then_add_then_remove),
		cmocka_unit_test(mounts_stand_parents_first_and_later_wins),
		cmocka_unit_test(a_memory_limit_by_name_is_enforced_or_refused),
		cmocka_unit_test(require_and_allow_undo_one_another),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
