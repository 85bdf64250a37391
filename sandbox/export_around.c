/* sandbox/export_around.c: what has to be around this program itself, when a container
 * or a service manager starts it: not what a task may do, but what a pool of such tasks
 * needs in order to build its own walls, and no privilege.
 *
 * The profile of system calls is what the policy lets its tasks call, with what this
 * program, bubblewrap and the stub need themselves. Conditions on arguments are left
 * out: the filters inside have them. Refused is what neither needs.
 */
#include <inttypes.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/layout.h"
#include "sandbox/export_int.h"
#include "sandbox/filter.h"

enum { CALLS_MAX = 1024, BESIDE = 16, PROCESSES_OF_OURS = 8 };
#define OWN_BYTES \
	((uint64_t)64 << 20) /* the supervisor, with room for what clients send */
/* What tasks keep for others, and the ids of long batches, lie below /tmp: in memory,
 * since nothing else of a container can be written to. As much as one task may keep,
 * twice. */
enum { KEPT_MIB = 128 };
#define KEPT_BYTES ((uint64_t)KEPT_MIB << 20)

/* ---- system calls ---- */

/* Wider than what one version of a C library makes of it, so that the next one runs. */
static const char *const groups[] = { "@default", "@basic-io", "@file-system", "@ioctl",
	"@chown", "@io-event", "@ipc", "@process", "@signal", "@timer", "@network-io",
	"@sync", "@resources", "@setuid", "@sandbox" };
static const char *const own[] = { "mount", "umount2", "pivot_root", /* bubblewrap */
	"sethostname", "fsopen", "fsconfig", "fsmount",		     /* the stub */
	"open_tree", "move_mount", "mount_setattr", /* idmapped binds */
	"sched_setattr" };

struct call {
	char name[40];
	bool ours, allowed, conditional, seen;
	uint32_t ret; /* of the last rule */
};
struct calls {
	struct call v[CALLS_MAX];
	uint32_t unlisted;
};

static bool
is_ours(const char *name)
{
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (strcmp(own[i], name) == 0)
			return true;
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
		if (kn_filter_group_has(groups[i], name))
			return true;
	return false;
}

static int
name_one(void *ctx, const char *name, int nr)
{
	struct calls *s = ctx;

	if (nr < 0 || nr >= CALLS_MAX)
		return -1;
	snprintf(s->v[nr].name, sizeof s->v[nr].name, "%s", name);
	s->v[nr].ours = is_ours(name);
	return 0;
}

static bool
lets_pass(uint32_t ret)
{
	uint32_t action = ret & SECCOMP_RET_ACTION_FULL;

	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

static int
see(void *ctx, const struct kn_frule *r)
{
	struct calls *s = ctx;
	struct call *c;

	if (r->nr < 0 || r->nr >= CALLS_MAX)
		return -1;
	c = &s->v[r->nr];
	for (int i = 0; i < 6; i++)
		c->conditional = c->conditional || r->arg[i].mask;
	c->allowed = c->allowed || lets_pass(r->ret);
	c->ret = r->ret;
	c->seen = true;
	return 0;
}

static struct calls *
list(const struct kn_policy *p, struct kn_err *e)
{
	struct calls *s = calloc(1, sizeof *s);

	if (!s) {
		kn_err_set(e, KN_EK_HOST, "export: out of memory");
		return NULL;
	}
	if (kn_filter_names(name_one, s) < 0)
		kn_err_set(e, KN_EK_BUG, "export: a system call beyond %d", CALLS_MAX);
	else if (kn_filter_rules(p, &s->unlisted, see, s, e) == 0)
		return s;
	free(s);
	return NULL;
}

static bool
passes(const struct calls *s, const struct call *c)
{
	return c->name[0] &&
	       (c->ours || c->allowed || (!c->seen && lets_pass(s->unlisted)));
}

/* The error of a call that is refused whatever its arguments; 0: it has the default's.
 */
static uint32_t
refusal(const struct call *c)
{
	return c->seen && !c->ours && !c->allowed && !c->conditional &&
		       (c->ret & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO
		   ? c->ret & SECCOMP_RET_DATA
		   : 0;
}

/* One entry for each answer: the same error as from the filters inside. */
static json_t *
entries(const struct calls *s)
{
	json_t *all = json_array(), *names = json_array();

	for (size_t i = 0; i < CALLS_MAX; i++)
		if (passes(s, &s->v[i]))
			json_array_append_new(names, json_string(s->v[i].name));
	json_array_append_new(
	    all, json_pack("{s:o,s:s}", "names", names, "action", "SCMP_ACT_ALLOW"));
	for (uint32_t e = 1; e < 4096; e++) {
		names = json_array();
		for (size_t i = 0; i < CALLS_MAX; i++)
			if (refusal(&s->v[i]) == e)
				json_array_append_new(names, json_string(s->v[i].name));
		if (json_array_size(names) == 0)
			json_decref(names);
		else
			json_array_append_new(
			    all, json_pack("{s:o,s:s,s:i}", "names", names, "action",
				     "SCMP_ACT_ERRNO", "errnoRet", (int)e));
	}
	return all;
}

static int
around_seccomp(struct kn_exporting *x)
{
	struct calls *s = list(x->p, x->e);
	const char *machine, *docker;
	json_t *o = NULL;
	char *text = NULL;

	if (!s)
		return -1;
	kn_filter_machine(&machine, &docker);
	/* An unknown call is what a C library tries first, and then does without. */
	o = json_pack("{s:s,s:i,s:[s],s:o}", "defaultAction", "SCMP_ACT_ERRNO",
	    "defaultErrnoRet", 38, "architectures", machine, "syscalls", entries(s));
	text = o ? json_dumps(o, JSON_INDENT(2)) : NULL;
	if (text)
		fprintf(x->f, "%s\n", text);
	json_decref(o);
	free(s);
	free(text);
	return text ? 0 : kn_err_set(x->e, KN_EK_HOST, "export: out of memory");
}

/* ---- amounts ---- */

struct amounts {
	uint64_t bytes, processes;
	unsigned stop_s;
};

/* What the tasks of all workers may hold at one time, with the memory that they are
 * handed over in: a container's limit below that kills the pool with the task. */
static int
size(struct kn_exporting *x, struct amounts *a)
{
	const struct kn_policy *p = x->p;
	struct kn_layout l;
	bool module = p->pool.kind == KN_KIND_MODULE;
	uint64_t files = p->fs.tmp_bytes + p->fs.shm_bytes + p->fs.task_bytes;

	if (kn_layout_of(module ? 2 * x->workers : x->workers, p->payload_area,
		module ? p->payload_area : KN_PAGE, &l) < 0)
		return kn_err_set(x->e, KN_EK_CONFIG, "export: that many workers");
	a->bytes = OWN_BYTES + KEPT_BYTES + l.arena_bytes +
		   x->workers * (p->task.memory + files);
	a->bytes = (a->bytes + (1 << 20) - 1) >> 20 << 20;
	a->processes = BESIDE + x->workers * (p->task.pids + PROCESSES_OF_OURS);
	a->stop_s = (p->timeouts.hard_ms + p->timeouts.grace_ms +
			p->timeouts.teardown_ms + 999) /
			1000 +
		    10;
	if (!p->task.memory || !p->task.pids)
		return kn_err_set(x->e, KN_EK_CONFIG,
		    "/limits/task: without a limit of memory and processes there is "
		    "no amount that a container could be given");
	return kn_export_note(x,
	    "%u workers: %" PRIu64 " MiB for each (%" PRIu64 " memory, %" PRIu64
	    " files in memory, %" PRIu64 " to hand over), %" PRIu64
	    " for the server, and %d for what tasks keep, in its /tmp",
	    x->workers, (a->bytes - OWN_BYTES - KEPT_BYTES) / x->workers >> 20,
	    p->task.memory >> 20, files >> 20, l.arena_bytes / x->workers >> 20,
	    OWN_BYTES >> 20, KEPT_MIB);
}

/* What all three say. */
static int
notes(struct kn_exporting *x)
{
	if (!x->preset &&
	    kn_export_note(x, "the policy is read at /etc/knit/%s.json: put it there",
		x->name) < 0)
		return -1;
	if (!x->p->timeouts.hard_ms || !x->p->timeouts.queue_ms)
		return kn_export_note(x,
		    "a stop waits for all that was taken: without %s there is no bound",
		    x->p->timeouts.hard_ms ? "/timeouts/queue_ms"
					   : "/timeouts/hard_ms");
	return 0;
}

static int
profile_note(struct kn_exporting *x, const char *where)
{
	return kn_export_note(x,
	    "seccomp: the profile is what --format seccomp --around prints; put it %s. "
	    "What it refuses to a task is not told in the task's result",
	    where);
}

static void
serve_args(struct kn_exporting *x, const char *before, const char *between)
{
	char policy[320], workers[16];
	const char *const v[] = { "serve", "--policy", policy, "--workers", workers,
		"--socket", "/run/knit/tasks", "--socket-mode", "660", "--http",
		"/run/knit/http", "--health-file", "/run/knit/health" };

	snprintf(
	    policy, sizeof policy, x->preset ? "%s" : "/etc/knit/%s.json", x->name);
	snprintf(workers, sizeof workers, "%u", x->workers);
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		fputs(i ? between : before, x->f);
		kn_export_sh(x->f, v[i]);
	}
}

/* ---- docker ---- */

static int
around_docker(struct kn_exporting *x)
{
	struct amounts a;
	FILE *f = x->f;

	if (size(x, &a) < 0 || notes(x) < 0 || profile_note(x, "beside") < 0)
		return -1;
	if (kn_export_note(x,
		"cgroups: Docker 28 and later has --security-opt "
		"writable-cgroups=true, "
		"podman --security-opt unmask=/sys/fs/cgroup; without, memory is "
		"watched and not capped") < 0)
		return -1;
	fputs("docker run --detach --name knit --read-only --user 1000:1000", f);
	fputs(" \\\n  --cap-drop ALL --security-opt no-new-privileges", f);
	fputs(" \\\n  --security-opt seccomp=", f);
	kn_export_sh(f, x->name);
	fputs(".seccomp.json", f);
	fputs(" \\\n  --security-opt apparmor=unconfined"
	      " --security-opt systempaths=unconfined",
	    f);
	fprintf(f, " \\\n  --cgroupns private --ipc private --network %s",
	    x->p->network == KN_NET_NONE ? "none" : "bridge");
	fprintf(f,
	    " \\\n  --memory %" PRIu64 "m --memory-swap %" PRIu64
	    "m --pids-limit %" PRIu64,
	    a.bytes >> 20, a.bytes >> 20, a.processes);
	fprintf(f, " \\\n  --ulimit core=0 --ulimit nofile=65536 --stop-timeout %u",
	    a.stop_s);
	if (!x->preset)
		fprintf(f,
		    " \\\n  --mount type=bind,source=\"$PWD/%s.json\",target="
		    "/etc/knit/%s.json,readonly",
		    x->name, x->name);
	fprintf(f,
	    " \\\n  --mount type=volume,source=knit,target=/run/knit"
	    " --tmpfs /tmp:size=%dm",
	    KEPT_MIB);
	serve_args(x, " \\\n  IMAGE ", " ");
	fputc('\n', f);
	return 0;
}

/* ---- Kubernetes ---- */

static void
probe(FILE *f, const char *name, const char *how)
{
	fprintf(f,
	    "    %s:\n      exec: {command: [knit-sandbox, serve, --probe, "
	    "/run/knit/http]}\n%s",
	    name, how);
}

static int
around_k8s(struct kn_exporting *x)
{
	struct amounts a;
	FILE *f = x->f;

	if (size(x, &a) < 0 || notes(x) < 0 ||
	    profile_note(x,
		"on each node as seccomp/knit/NAME.json below the kubelet's "
		"folder") < 0)
		return -1;
	if (kn_export_note(x,
		"processes: %" PRIu64 " is the least for the kubelet's "
		"podPidsLimit",
		a.processes) < 0 ||
	    kn_export_note(x, "cgroups: a RuntimeClass that makes them writable; "
			      "without, memory is watched and not capped") < 0)
		return -1;
	fprintf(f,
	    "apiVersion: v1\nkind: Pod\nmetadata: {name: knit}\nspec:\n"
	    "  hostUsers: false\n  automountServiceAccountToken: false\n"
	    "  enableServiceLinks: false\n"
	    "  terminationGracePeriodSeconds: %u\n",
	    a.stop_s);
	fprintf(f,
	    "  securityContext:\n    runAsNonRoot: true\n    runAsUser: 1000\n"
	    "    runAsGroup: 1000\n    fsGroup: 1000\n"
	    "    seccompProfile: {type: Localhost, localhostProfile: knit/%s.json}\n"
	    "    appArmorProfile: {type: Unconfined}\n",
	    x->name);
	fputs("  containers:\n  - name: knit\n    image: IMAGE\n"
	      "    imagePullPolicy: IfNotPresent\n    args:",
	    f);
	serve_args(x, "\n    - \"", "\"\n    - \"");
	fprintf(f,
	    "\"\n    securityContext:\n      procMount: Unmasked\n"
	    "      allowPrivilegeEscalation: false\n"
	    "      readOnlyRootFilesystem: true\n"
	    "      capabilities: {drop: [ALL]}\n"
	    "    resources:\n"
	    "      requests: {memory: %" PRIu64 "Mi, cpu: %u}\n"
	    "      limits: {memory: %" PRIu64 "Mi}\n",
	    a.bytes >> 20, x->workers, a.bytes >> 20);
	probe(
	    f, "startupProbe", "      periodSeconds: 1\n      failureThreshold: 60\n");
	probe(f, "readinessProbe", "      periodSeconds: 5\n      timeoutSeconds: 5\n");
	fputs(
	    "    livenessProbe:\n      exec: {command: [knit-sandbox, serve, --probe, "
	    "/run/knit/http, --alive]}\n      periodSeconds: 20\n"
	    "      timeoutSeconds: 10\n      failureThreshold: 3\n",
	    f);
	fputs("    volumeMounts:\n    - {name: run, mountPath: /run/knit}\n"
	      "    - {name: tmp, mountPath: /tmp}\n",
	    f);
	if (!x->preset)
		fputs(
		    "    - {name: policy, mountPath: /etc/knit, readOnly: true}\n", f);
	fprintf(f,
	    "  volumes:\n  - {name: run, emptyDir: {medium: Memory, "
	    "sizeLimit: 1Mi}}\n"
	    "  - {name: tmp, emptyDir: {medium: Memory, sizeLimit: %dMi}}\n",
	    KEPT_MIB);
	if (!x->preset)
		fputs("  - {name: policy, configMap: {name: knit-policy}}\n", f);
	return 0;
}

/* ---- systemd ---- */

/* Settings that would cover parts of /proc are not among them: a sandbox within gets a
 * /proc of its own only where the one around it is whole. Nor is RestrictSUIDSGID=,
 * which refuses all of openat2 (KN_LACK_OPENAT2). */
static int
around_systemd(struct kn_exporting *x)
{
	struct calls *s;
	struct amounts a;
	FILE *f = x->f;

	if (size(x, &a) < 0 || notes(x) < 0 || !(s = list(x->p, x->e)))
		return -1;
	fprintf(f,
	    "[Service]\nDelegate=yes\nNoNewPrivileges=yes\nCapabilityBoundingSet=\n"
	    "AmbientCapabilities=\nRestrictRealtime=yes\nLockPersonality=yes\n"
	    "SystemCallArchitectures=native\n"
	    "MemoryMax=%" PRIu64 "M\nMemorySwapMax=0\nTasksMax=%" PRIu64
	    "\nLimitCORE=0\nLimitNOFILE=65536\nTimeoutStopSec=%us\n"
	    "SystemCallErrorNumber=ENOSYS\nSystemCallFilter=",
	    a.bytes >> 20, a.processes, a.stop_s);
	for (size_t i = 0, n = 0; i < CALLS_MAX; i++)
		if (passes(s, &s->v[i]))
			fprintf(f, "%s%s", n++ ? " " : "", s->v[i].name);
	fputc('\n', f);
	free(s);
	return kn_export_note(
	    x, "seccomp: what it refuses to a task is not told in the task's result");
}

int
kn_export_around(struct kn_exporting *x, enum kn_export_format f)
{
	static int (*const make[])(struct kn_exporting *) = {
		[KN_EXPORT_SECCOMP] = around_seccomp,
		[KN_EXPORT_DOCKER] = around_docker,
		[KN_EXPORT_K8S] = around_k8s,
		[KN_EXPORT_SYSTEMD] = around_systemd,
	};

	if ((size_t)f >= sizeof make / sizeof *make || !make[f])
		return kn_err_set(x->e, KN_EK_USAGE,
		    "--around: seccomp, docker, k8s and systemd start this program");
	if (x->p->launcher != KN_LAUNCHER_BWRAP)
		return kn_err_set(x->e, KN_EK_CONFIG,
		    "--around: what is told is what bwrap needs, and "
		    "/launcher/type is another; direct needs nothing");
	return make[f](x);
}
