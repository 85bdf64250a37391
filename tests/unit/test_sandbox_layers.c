/* tests/unit/test_sandbox_layers.c: layers that cannot be had are refused by name, and
 * a launch that failed is explained in one line. No process is started.
 */
#include "sandbox_test.h"

#include "sandbox/launch_int.h"

static struct kn_policy *
load_policy(void)
{
	struct kn_policy *p = NULL;
	struct kn_err e = { 0 };

	OK(kn_policy_load(NULL, 0, &p, &e), e);
	return p;
}

/* ---- layers ---- */

static void
layers_are_decided_or_refused_by_name(void **state)
{
	struct kn_policy *loaded = load_policy(), p = *loaded;
	struct kn_host h = { .mseal = false, .landlock_abi = 0 };
	const struct kn_cgroup *none = NULL; /* what an ordinary user gets */
	struct kn_layers out;
	struct kn_err e = { 0 };

	(void)state;
	p.require = 0;
	p.allow_degraded = 0;
	p.landlock = KN_LANDLOCK_AUTO;
	p.task.memory = p.worker.memory = p.task.pids = p.worker.pids = 0;
	p.task.cpu_ms = 0;
	OK(kn_launch_layers(&p, &h, none, &out, &e), e);
	assert_int_equal(out.state[KN_LAYER_NAMESPACES], KN_LAYER_ENFORCED);
	assert_int_equal(out.state[KN_LAYER_SECCOMP], KN_LAYER_ENFORCED);
	assert_int_equal(out.state[KN_LAYER_UID], KN_LAYER_ABSENT);
	assert_int_equal(out.state[KN_LAYER_LANDLOCK], KN_LAYER_ABSENT);
	assert_int_equal(out.state[KN_LAYER_MSEAL], KN_LAYER_ABSENT);
	assert_int_equal(out.state[KN_LAYER_CG_MEMORY], KN_LAYER_ABSENT);
	/* Asked for by a value. */
	p.landlock = KN_LANDLOCK_ON;
	assert_int_equal(kn_launch_layers(&p, &h, none, &out, &e), -1);
	assert_int_equal(e.kind, KN_EK_HOST);
	assert_non_null(strstr(e.msg, "layer landlock: asked for by /landlock"));
	assert_non_null(strstr(e.hint, "allow_degraded"));
	p.allow_degraded = 1u << KN_LAYER_LANDLOCK;
	OK(kn_launch_layers(&p, &h, none, &out, &e), e);
	assert_int_equal(out.state[KN_LAYER_LANDLOCK], KN_LAYER_DEGRADED);
	/* Required: allow_degraded does not help. */
	p.require = 1u << KN_LAYER_LANDLOCK;
	kn_err_clear(&e);
	assert_int_equal(kn_launch_layers(&p, &h, none, &out, &e), -1);
	assert_non_null(strstr(e.msg, "layer landlock: required"));
	h.landlock_abi = 4;
	OK(kn_launch_layers(&p, &h, none, &out, &e), e);
	assert_int_equal(out.state[KN_LAYER_LANDLOCK], KN_LAYER_ENFORCED);
	p.landlock = KN_LANDLOCK_OFF;
	assert_int_equal(kn_launch_layers(&p, &h, none, &out, &e), -1);
	p.require = 0;
	OK(kn_launch_layers(&p, &h, none, &out, &e), e);
	assert_int_equal(out.state[KN_LAYER_LANDLOCK], KN_LAYER_ABSENT);
	p.require = 1u << KN_LAYER_UID;
	assert_int_equal(kn_launch_layers(&p, &h, none, &out, &e), -1);
	kn_policy_free(loaded);
}

static void
machine_network_without_scopes_of_landlock_is_said(void **state)
{
	struct kn_policy *loaded = load_policy(), p = *loaded;
	struct kn_host h = { .mseal = true, .landlock_abi = 5 };
	struct kn_layers out;
	struct kn_err e = { 0 };

	(void)state;
	p.require = 0;
	p.allow_degraded = 1u << KN_LAYER_LANDLOCK;
	p.landlock = KN_LANDLOCK_AUTO;
	p.task.memory = p.task.pids = p.task.cpu_ms = 0;
	p.network = KN_NET_HOST;
	OK(kn_launch_layers(&p, &h, NULL, &out, &e), e);
	assert_int_equal(out.state[KN_LAYER_LANDLOCK], KN_LAYER_DEGRADED);
	p.require = 1u << KN_LAYER_LANDLOCK;
	assert_int_equal(kn_launch_layers(&p, &h, NULL, &out, &e), -1);
	assert_non_null(strstr(e.msg, "scopes"));
	p.network = KN_NET_NONE;
	OK(kn_launch_layers(&p, &h, NULL, &out, &e), e);
	p.network = KN_NET_HOST;
	h.landlock_abi = 6;
	OK(kn_launch_layers(&p, &h, NULL, &out, &e), e);
	assert_int_equal(out.state[KN_LAYER_LANDLOCK], KN_LAYER_ENFORCED);
	kn_policy_free(loaded);
}

static void
without_namespaces_an_older_landlock_is_refused_by_what_it_leaves_open(void **state)
{
	struct kn_policy *loaded = load_policy(), p = *loaded;
	struct kn_host h = {
		.mseal = true, .landlock_abi = 2, .root = true, .ids = true
	};
	struct kn_layers out;
	struct kn_err e = { 0 };

	(void)state;
	p.require = 1u << KN_LAYER_LANDLOCK;
	p.allow_degraded = 1u << KN_LAYER_NAMESPACES;
	p.task.memory = p.task.pids = p.worker.pids = p.task.cpu_ms = 0;
	p.launcher = KN_LAUNCHER_DIRECT;
	assert_int_equal(kn_launch_layers(&p, &h, NULL, &out, &e), -1);
	assert_non_null(strstr(e.msg, "empty every file that anybody may write"));
	assert_non_null(strstr(e.hint, "Linux 6.2"));
	h.landlock_abi = 3;
	kn_err_clear(&e);
	OK(kn_launch_layers(&p, &h, NULL, &out, &e), e);
	/* Signals reach all of a user; root's workers have each their own. */
	h.root = h.ids = false;
	assert_int_equal(kn_launch_layers(&p, &h, NULL, &out, &e), -1);
	assert_non_null(strstr(e.msg, "signals to all processes of its user"));
	assert_null(strstr(e.msg, "empty"));
	h.landlock_abi = 2;
	kn_err_clear(&e);
	assert_int_equal(kn_launch_layers(&p, &h, NULL, &out, &e), -1);
	assert_non_null(strstr(e.msg, "empty all files that its user may write"));
	assert_non_null(strstr(e.hint, "Linux 6.12"));
	h.landlock_abi = 6;
	kn_err_clear(&e);
	OK(kn_launch_layers(&p, &h, NULL, &out, &e), e);
	kn_policy_free(loaded);
}

static void
memory_limit_without_a_cgroup_is_refused(void **state)
{
	struct kn_policy *loaded = load_policy(), p = *loaded;
	struct kn_host h = { .mseal = true, .landlock_abi = 1 };
	struct kn_layers out;
	struct kn_err e = { 0 };

	(void)state;
	p.require = p.allow_degraded = 0;
	p.task.pids = p.worker.pids = p.task.cpu_ms = 0;
	p.task.memory = 64 << 20;
	assert_int_equal(kn_launch_layers(&p, &h, NULL, &out, &e), -1);
	assert_non_null(
	    strstr(e.msg, "layer cgroup.memory: asked for by /limits/task/memory"));
	p.allow_degraded = 1u << KN_LAYER_CG_MEMORY;
	OK(kn_launch_layers(&p, &h, NULL, &out, &e), e);
	assert_int_equal(out.state[KN_LAYER_CG_MEMORY], KN_LAYER_DEGRADED);
	kn_policy_free(loaded);
}

/* ---- explain ---- */

static void
an_end_without_a_word_is_explained_for_each_kind(void **state)
{
	struct kn_host h = { .root = false };
	struct kn_launcher l = { .host = &h, .program = "/p" };
	struct kn_err e;

	(void)state;
	for (int i = 0; i < KN_LAUNCHER_N; i++) {
		l.ops = kn_launch_kind((enum kn_launcher_type)i, &e);
		assert_non_null(l.ops);
		kn_launch_explain(&l, "", SIGKILL, &e);
		assert_non_null(strstr(e.msg, "signal 9"));
		kn_launch_explain(&l, "what nobody knows\n", 256, &e);
		assert_int_equal(e.kind, KN_EK_LAUNCH);
	}
}

static void
failures_are_explained_in_one_printable_line(void **state)
{
	struct kn_host h = { .root = false };
	struct kn_launcher l = { .ops = &kn_launch_bwrap, .host = &h };
	struct kn_err e;

	(void)state;
	kn_launch_explain(&l,
	    "bwrap: Creating new namespace failed: Operation not permitted\n", 256, &e);
	assert_int_equal(e.kind, KN_EK_HOST);
	assert_non_null(strstr(e.msg, "Creating new namespace failed"));
	assert_true(e.hint[0] != '\0');
	kn_launch_explain(
	    &l, "noise\nbwrap: loopback: Failed RTM_NEWADDR: x\n", 256, &e);
	assert_int_equal(e.kind, KN_EK_HOST);
	assert_int_equal(strncmp(e.msg, "bwrap: loopback", 15), 0);
	/* as bubblewrap 0.8 has it, and 0.4 had it */
	for (int i = 0; i < 2; i++) {
		kn_launch_explain(&l,
		    i ? "bwrap: No permissions to creating new namespace, likely "
			"because the "
			"kernel does not allow non-privileged user namespaces. On e.g. "
			"debian this can be enabled with 'sysctl "
			"kernel.unprivileged_userns_clone=1'.\n"
		      : "bwrap: No permissions to create new namespace, likely because "
			"the "
			"kernel does not allow non-privileged user namespaces. See "
			"<https://deb.li/bubblewrap> or "
			"<file:///usr/share/doc/bubblewrap/README.Debian.gz>.\n",
		    256, &e);
		assert_int_equal(e.kind, KN_EK_HOST);
		assert_non_null(strstr(e.hint, "user namespaces"));
		assert_int_equal(e.msg[strlen(e.msg) - 1], '.');
	}
	/* As in a container of podman's, whose profile lets namespaces be made. */
	kn_launch_explain(&l,
	    "bwrap: Can't set hostname to sandbox: Operation not permitted\n", 256, &e);
	assert_int_equal(e.kind, KN_EK_HOST);
	assert_true(e.hint[0] != '\0');
	/* A limit that was met, not a setting of the kernel. */
	kn_launch_explain(&l,
	    "bwrap: Creating new namespace failed: Resource temporarily unavailable\n",
	    256, &e);
	assert_non_null(strstr(e.hint, "ulimit -u"));
	kn_launch_explain(&l, "\033]0;title\007\nsecond", 256, &e);
	assert_int_equal(e.kind, KN_EK_LAUNCH);
	for (const char *p = e.msg; *p != '\0'; p++)
		assert_true(*p >= ' ' && *p != 0x7f);
	assert_null(strstr(e.msg, "second"));
	kn_launch_explain(&l, "", SIGKILL, &e);
	assert_non_null(strstr(e.msg, "signal 9"));
	kn_launch_explain(&l, NULL, 256, &e);
	assert_non_null(strstr(e.msg, "status 1"));
}

/* As crun 1.8.1, runc 1.1.5 and podman 4.3.1 were seen to print. */
static void
what_a_runtime_says_is_found_among_what_its_helpers_say(void **state)
{
	static const struct {
		const char *said, *shown, *hint;
	} rows[] = {
		{ "newgidmap: Cannot determine your user name.\n"
		  "newuidmap: Cannot determine your user name.\n"
		  "mount `proc` to `proc`: Operation not permitted\n\n",
		    "mount `proc` to", "/proc is refused" },
		{ "clone: Operation not permitted\n", "clone: ", "user namespaces" },
		{ "clone: No space left on device\n", "clone: ", "limit" },
		{ "clone: Resource temporarily unavailable\n", "clone: ", "ulimit -u" },
		{ "create keyring `x`: Operation not permitted\n", "create keyring",
		    "user namespaces" },
		{ "sethostname: Operation not permitted\n", "sethostname",
		    "user namespaces" },
		{ "set propagation for `/`: Operation not permitted\n",
		    "set propagation", "mount" },
		{ "pivot_root: Operation not permitted\n", "pivot_root", "pivot_root" },
		{ "error stat'ing file `/x`: No such file or directory\n", "error stat",
		    "went away" },
		{ "Error: crun: clone: Operation not permitted: OCI permission denied\n"
		  "more\n",
		    "crun: clone: ", "user namespaces" },
		{ "time=\"x\" level=error msg=\"runc run failed: unable to start "
		  "container process: error during container init: sethostname: "
		  "operation not permitted\"\n",
		    "runc run failed", "user namespaces" },
		{ "docker: Error response from daemon: x.\nSee 'docker run --help'.\n",
		    "Error response from daemon: x.", "--dry-run" },
	};
	struct kn_host h = { .root = false };
	struct kn_launcher l = { .ops = &kn_launch_oci, .host = &h };
	struct kn_err e;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		kn_launch_explain(&l, rows[i].said, 256, &e);
		assert_int_equal(
		    strncmp(e.msg, rows[i].shown, strlen(rows[i].shown)), 0);
		assert_non_null(strstr(e.hint, rows[i].hint));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_are_decided_or_refused_by_name),
		cmocka_unit_test(machine_network_without_scopes_of_landlock_is_said),
		cmocka_unit_test(
		    without_namespaces_an_older_landlock_is_refused_by_what_it_leaves_open),
		cmocka_unit_test(memory_limit_without_a_cgroup_is_refused),
		cmocka_unit_test(failures_are_explained_in_one_printable_line),
		cmocka_unit_test(
		    what_a_runtime_says_is_found_among_what_its_helpers_say),
		cmocka_unit_test(an_end_without_a_word_is_explained_for_each_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
