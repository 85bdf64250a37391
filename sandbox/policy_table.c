/* sandbox/policy_table.c: every key a policy may have. The parser, the defaults of
 * absent keys and the JSON Schema come from this one table, so they cannot drift.
 */
#include <string.h>

#include "ipc/near.h"
#include "sandbox/policy_int.h"

#define K (1024ll)
#define M (1024 * K)
#define G (1024 * M)
#define T (1024 * G)
#define DAY_MS (24ll * 3600 * 1000)

#define AT(member) \
	.off = offsetof(struct kn_policy, member), \
	.width = sizeof(((struct kn_policy *)0)->member)
#define WORDS(...) \
	(const char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}

#define PLAIN(p, t, d) \
	{ \
		.path = p, .type = t, .doc = d \
	}
#define OBJECT(p, d) PLAIN(p, KN_KEY_OBJECT, d)
#define MAP(p, d) PLAIN(p, KN_KEY_MAP, d)
#define LIST(p, d) PLAIN(p, KN_KEY_LIST, d)
#define TEXT(p, d) PLAIN(p, KN_KEY_TEXT, d)
#define PROFILE(p, d) PLAIN(p, KN_KEY_PROFILE, d)
#define INT(p, lo, hi, d, ...) \
	{ \
		.path = p, .type = KN_KEY_INT, .min = lo, .max = hi, .doc = d, \
		__VA_ARGS__ \
	}
#define SIZE(p, lo, hi, d, ...) \
	{ \
		.path = p, .type = KN_KEY_SIZE, .min = lo, .max = hi, .doc = d, \
		__VA_ARGS__ \
	}
#define NUMBER(p, lo, hi, d, ...) \
	{ \
		.path = p, .type = KN_KEY_NUMBER, .min = lo, .max = hi, .doc = d, \
		__VA_ARGS__ \
	}
#define WORD(p, w, d, ...) \
	{ \
		.path = p, .type = KN_KEY_WORD, .words = w, .doc = d, __VA_ARGS__ \
	}

#define BOOL(p, d, ...) \
	{ \
		.path = p, .type = KN_KEY_BOOL, .doc = d, __VA_ARGS__ \
	}

static const char *const layer_words[] = { "namespaces", "seccomp", "capabilities",
	"uid", "landlock", "rlimits", "cgroup.memory", "cgroup.pids", "cgroup.cpu",
	"mseal", NULL };
/* Without the others there is no sandbox: nothing stands in for them. (Namespaces: by
 * launcher direct.) */
static const char *const degradable_words[] = { "namespaces", "uid", "landlock",
	"cgroup.memory", "cgroup.pids", "cgroup.cpu", "mseal", NULL };
static const char *const action_words[] = { "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO",
	"SCMP_ACT_KILL_PROCESS", "SCMP_ACT_LOG", "SCMP_ACT_KILL",
	"SCMP_ACT_KILL_THREAD", "SCMP_ACT_TRAP", NULL }; /* enum kn_seccomp_action */
static const char *const action_later[] = { "SCMP_ACT_TRACE", "SCMP_ACT_NOTIFY", NULL };

/* Order: as the man page shows them. A parent stands before its members. */
const struct kn_key kn_policy_keys[] = {
	OBJECT("", "A policy for knit-sandbox: what a worker and a task may do."),
	TEXT("/$schema", "Address of this schema, for editors. Not interpreted."),
	TEXT("/description", "What this policy is for. Not interpreted."),
	INT("/version", 1, 1, "Version of this format."),
	TEXT("/extends",
	    "A preset or a file (relative to this one) that this document is merged "
	    "onto. Absent: \"default\". null: nothing."),

	OBJECT("/pool", "The workers."),
	INT("/pool/workers", 1, 256, "Number of workers. Absent: the machine decides.",
	    .none = true, AT(pool.workers)),
	WORD("/pool/kind", WORDS("exec", "module"),
	    "What a task is. \"exec\": a command. \"module\": a call of a function "
	    "that a shared object exports, which the worker keeps loaded.",
	    AT(pool.kind), .later = WORDS("stream", "fork")),
	TEXT("/pool/module", "Of kind module: the shared object with its tasks, a file "
			     "of this machine."),
	TEXT("/pool/init", "Of kind module: text for its knit_worker_init, run before "
			   "the first task."),
	WORD("/pool/isolation", WORDS("cell", "worker"),
	    "What is fresh for each task: its cell, or the whole worker.",
	    AT(pool.isolation)),
	WORD("/pool/ipc", WORDS("task", "worker"),
	    "Whose System V and POSIX message queue namespace a task sees.",
	    AT(pool.ipc)),
	INT("/pool/spares", 0, 256, "Workers launched ahead.", AT(pool.spares)),
	OBJECT("/pool/recycle", "When a worker is replaced."),
	INT("/pool/recycle/tasks", 0, 1000000000, "After so many tasks; 0: never.",
	    AT(pool.recycle_tasks)),
	INT("/pool/recycle/seconds", 0, 31536000, "After so many seconds; 0: never.",
	    AT(pool.recycle_s)),
	SIZE("/pool/recycle/memory", 64 * K, 1 * T,
	    "When an idle worker holds more than this; 0: never.", .none = true,
	    AT(pool.recycle_memory)),
	INT("/pool/retries", 0, 100,
	    "How often a task lost with its worker is run again.", AT(pool.retries)),
	WORD("/pool/steal", WORDS("auto", "shared", "brokered", "off"),
	    "How a task that waits for a busy worker gets to an idle one. \"shared\": "
	    "workers of kind module take calls from one place, and each can read the "
	    "arguments of all.",
	    AT(pool.steal)),
	WORD("/pool/claim", WORDS("auto", "dekker", "cas-mask"),
	    "With steal shared: how a worker takes a call.", AT(pool.claim)),
	INT("/pool/region_lanes", 0, 32,
	    "With steal shared: slots taken together; 0: leaves a region to spare.",
	    AT(pool.region_lanes)),
	INT("/pool/abort_ids", 0, 1024,
	    "Calls of a module that can be asked to give up at one time; 0: all.",
	    AT(pool.abort_ids)),
	WORD("/pool/balancer",
	    WORDS("first-idle", "round-robin", "random", "first-idle-or-random"),
	    "Which worker gets the next task: of the idle ones, else of those at work.",
	    AT(pool.balancer)),

	OBJECT("/launcher", "What starts a worker."),
	WORD("/launcher/type", WORDS("bwrap", "oci", "direct"),
	    "\"bwrap\": bubblewrap. \"oci\": a container of a runtime. \"direct\": "
	    "no "
	    "namespaces, which is weaker.",
	    AT(launcher)),
	WORD("/launcher/runtime", WORDS("auto", "runc", "crun", "podman", "docker"),
	    "Of type oci: the program that makes containers. \"auto\": the first of "
	    "runc and crun that is there.",
	    AT(runtime)),
	TEXT("/launcher/image", "Of type oci, podman or docker: whose root it is."),
	TEXT(
	    "/launcher/rootfs", "Of type oci: a directory whose entries are the root."),
	LIST("/launcher/prefix", "A program with its arguments that starts the "
				 "launcher, as nice or taskset."),
	TEXT("/launcher/prefix/*", "An argument; the first is the program."),

	LIST("/require", "Layers that must be enforced, or the run is refused."),
	WORD("/require/*", layer_words, "A layer."),
	LIST("/allow_degraded",
	    "Layers that may be weaker or missing where the machine lacks them."),
	WORD("/allow_degraded/*", degradable_words, "A layer."),

	OBJECT("/filesystem", "What a task sees of the file system."),
	WORD("/filesystem/root", WORDS("system", "empty"),
	    "\"system\": read-only /usr and a minimal /etc of this machine. \"empty\": "
	    "only what mounts name.",
	    AT(fs.root), .dflt = KN_ROOT_EMPTY),
	LIST("/filesystem/mounts", "Binds, tmpfs sizes, directories and links."),
	OBJECT(
	    "/filesystem/mounts/*", "One of bind, copy, overlay, tmpfs, dir, symlink."),
	TEXT("/filesystem/mounts/*/bind", "A path of the machine to show inside."),
	TEXT("/filesystem/mounts/*/copy",
	    "A directory of the machine of which each task has a copy of its own, as a "
	    "layer upon it."),
	TEXT("/filesystem/mounts/*/out",
	    "Of a copy: a directory of the machine. The files that a task made or "
	    "changed are brought to a new folder of it, named after the task."),
	TEXT("/filesystem/mounts/*/overlay",
	    "A directory of the machine, with a layer of each task's own upon it: what "
	    "a task writes goes there and ends with it."),
	TEXT("/filesystem/mounts/*/tmpfs",
	    "/tmp, /dev/shm or /task: private to each task, of this size."),
	TEXT("/filesystem/mounts/*/dir", "An empty directory."),
	TEXT("/filesystem/mounts/*/symlink", "Text of a symbolic link made at \"at\"."),
	TEXT("/filesystem/mounts/*/at", "The path inside. Absent: as outside."),
	WORD("/filesystem/mounts/*/mode", WORDS("ro", "rw"), "Of a bind."),
	SIZE("/filesystem/mounts/*/size", 4 * K, 1 * T, "Of a tmpfs or a layer."),
	INT("/filesystem/mounts/*/inodes", 16, 100000000,
	    "Files in a tmpfs or a layer."),
	TEXT("/filesystem/mounts/*/why", "The reason."),
	LIST("/filesystem/task_paths",
	    "Directories of the machine below which a task line's \"path\" may be."),
	TEXT("/filesystem/task_paths/*", "An existing directory."),
	LIST("/filesystem/read",
	    "Paths of the machine, or patterns, shown read-only at the same place."),
	TEXT("/filesystem/read/*", "A path; \"~\" is the caller's home."),
	LIST("/filesystem/write", "The same, to be written to."),
	TEXT("/filesystem/write/*", "A path; \"~\" is the caller's home."),
	LIST("/filesystem/deny",
	    "Paths and patterns that cannot be opened, whatever else shows them."),
	TEXT("/filesystem/deny/*",
	    "A path, or a pattern; \"**/NAME\" is looked for in all binds."),

	OBJECT("/network", "The network a task sees."),
	WORD("/network/mode", WORDS("none", "host", "allow"),
	    "\"none\": an empty network of its own. \"host\": the machine's. "
	    "\"allow\": an empty one, and a proxy of ours that leads to the hosts of "
	    "/network/allow.",
	    AT(network)),
	LIST("/network/allow", "With mode allow: what a task can reach."),
	TEXT("/network/allow/*",
	    "HOST:PORT. HOST: a name, \"*.\" and a name, or an address (IPv6 in "
	    "brackets). PORT: a number, or * for any."),

	OBJECT("/environment", "A task's environment. Nothing else is inherited."),
	LIST("/environment/inherit", "Variables taken from the caller, if set there."),
	TEXT("/environment/inherit/*", "A name."),
	MAP("/environment/set", "Variables with their values."),
	TEXT("/environment/set/*", "A value."),

	OBJECT("/identity", "Who a task is."),
	WORD("/identity/user", WORDS("auto", "root", "caller"),
	    "Who a task is inside: 1000, 0, or who started the supervisor. Outside it "
	    "is nobody of these: where the supervisor is root, each worker has a user "
	    "id of its own.",
	    AT(identity.user)),
	TEXT("/identity/hostname", "The host name a task sees."),

	OBJECT("/seccomp", "The system calls a task may make."),
	OBJECT("/seccomp/groups", "Named groups of calls that are allowed."),
	LIST("/seccomp/groups/add", "Groups to add."),
	TEXT("/seccomp/groups/add/*", "A group, as @basic-io."),
	LIST("/seccomp/groups/remove", "Groups to remove."),
	TEXT("/seccomp/groups/remove/*", "A group."),
	LIST("/seccomp/groups/replace", "Groups to have instead of all so far."),
	TEXT("/seccomp/groups/replace/*", "A group."),
	LIST(
	    "/seccomp/rules", "Rules for single calls; the last that matches decides."),
	OBJECT("/seccomp/rules/*", "A rule."),
	LIST("/seccomp/rules/*/names", "The calls it is about."),
	TEXT("/seccomp/rules/*/names/*", "A system call."),
	WORD("/seccomp/rules/*/action", action_words, "What happens.",
	    .later = action_later),
	INT("/seccomp/rules/*/errnoRet", 1, 4095,
	    "The error number of SCMP_ACT_ERRNO. Absent: 1, EPERM."),
	LIST("/seccomp/rules/*/args", "Conditions on arguments; all must hold."),
	OBJECT("/seccomp/rules/*/args/*", "A condition."),
	INT("/seccomp/rules/*/args/*/index", 0, 5, "Which argument."),
	INT("/seccomp/rules/*/args/*/value", INT64_MIN, INT64_MAX,
	    "Compared with; for SCMP_CMP_MASKED_EQ the mask."),
	INT("/seccomp/rules/*/args/*/valueTwo", INT64_MIN, INT64_MAX,
	    "For SCMP_CMP_MASKED_EQ: what the masked argument must be."),
	WORD("/seccomp/rules/*/args/*/op",
	    WORDS("SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE", "SCMP_CMP_EQ",
		"SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"),
	    "How it is compared."),
	TEXT("/seccomp/rules/*/why", "The reason."),
	OBJECT("/seccomp/default", "What happens to a call that nothing names."),
	WORD("/seccomp/default/action", action_words, "As in a rule.",
	    AT(seccomp.unlisted), .dflt = KN_SC_ERRNO, .later = action_later),
	INT("/seccomp/default/errnoRet", 1, 4095, "As in a rule. Absent: 38, ENOSYS.",
	    AT(seccomp.unlisted_errno), .dflt = 38),
	LIST("/seccomp/architectures",
	    "Whose numbers of system calls a task may use beside the machine's own; "
	    "the same rules cover them."),
	WORD("/seccomp/architectures/*",
	    WORDS("SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32",
		"SCMP_ARCH_AARCH64"),
	    "X86_64 and AARCH64 are always there, each on its own machines."),
	PROFILE("/seccomp/profile",
	    "A profile of OCI runtimes or Docker as it stands, or the name of a file "
	    "with one: what it allows stands in place of the groups."),
	BOOL("/seccomp/explain",
	    "Whether calls that are refused are told in the result, with what would "
	    "allow them.",
	    AT(seccomp.explain)),

	WORD("/landlock", WORDS("auto", "on", "off"),
	    "\"auto\": where the kernel has it. \"on\": or refuse to run.",
	    AT(landlock)),
	LIST("/capabilities", "What a task may keep: nothing can be given."),
	TEXT("/capabilities/*", "A capability; each is refused, with the reason."),

	OBJECT("/permissions", "The words of the system that this one descends from; "
			       "what is absent adds nothing."),
	WORD("/permissions/mode", WORDS("project"),
	    "\"project\": the project's directory is read and written, and known "
	    "secrets in it and in the caller's home are denied.",
	    AT(permissions), .dflt = KN_PERMISSIONS_NONE),
	TEXT("/permissions/project",
	    "With mode project: its directory. Absent: where the policy file is."),
	LIST("/permissions/read",
	    "As /filesystem/read; with mode project, in place of the project."),
	TEXT("/permissions/read/*", "A path or a pattern."),
	LIST("/permissions/write",
	    "As /filesystem/write; with mode project, in place of the project, which "
	    "then is only read."),
	TEXT("/permissions/write/*", "A path or a pattern."),
	LIST("/permissions/deny_read", "As /filesystem/deny."),
	TEXT("/permissions/deny_read/*", "A path or a pattern."),
	LIST("/permissions/deny_write",
	    "What is not written to, also where something that holds it is."),
	TEXT("/permissions/deny_write/*", "A path or a pattern."),
	LIST("/permissions/net", "As /network/allow; implies mode allow."),
	TEXT("/permissions/net/*", "HOST:PORT."),
	LIST("/permissions/run",
	    "The programs that a task may execute beside its own command. An empty "
	    "list: none. Absent: any that it can see."),
	TEXT("/permissions/run/*",
	    "An absolute path inside, or a name that is looked for along the PATH of "
	    "/environment/set."),
	LIST("/permissions/env", "As /environment/inherit."),
	TEXT("/permissions/env/*", "A name."),
	BOOL("/permissions/console",
	    "Whether what a task prints reaches the caller. Absent: it does.",
	    AT(console), .dflt = true),

	OBJECT("/limits", "Amounts."),
	OBJECT("/limits/worker", "Of a worker with all that runs in it."),
	SIZE("/limits/worker/memory", 8 * M, 64 * T, "Bytes; 0: none.", .none = true,
	    AT(worker.memory)),
	INT("/limits/worker/pids", 8, 4194304, "Processes and threads; 0: none.",
	    .none = true, AT(worker.pids)),
	OBJECT("/limits/task", "Of one task with all its processes."),
	SIZE("/limits/task/memory", 1 * M, 64 * T, "Bytes; 0: none.", .none = true,
	    AT(task.memory)),
	INT("/limits/task/pids", 1, 4194304, "Processes and threads; 0: none.",
	    .none = true, AT(task.pids)),
	INT("/limits/task/cpu_ms", 1, 365 * DAY_MS,
	    "Processor time of all its processes, in milliseconds; 0: none.",
	    .none = true, AT(task.cpu_ms)),
	INT("/limits/task/nofile", 8, 1048576,
	    "Open descriptors of one process; 0: as the machine has it.", .none = true,
	    AT(task.nofile)),
	SIZE("/limits/task/fsize", 4 * K, 64 * T, "Size of one file; 0: none.",
	    .none = true, AT(task.fsize)),
	SIZE("/limits/task/stack", 64 * K, 1 * T,
	    "Stack of a process; 0: as the machine has it.", .none = true,
	    AT(task.stack)),
	SIZE("/limits/task/core", 0, 64 * T, "Size of a core file.", AT(task.core)),
	SIZE("/limits/task/stdout", 0, 64 * T,
	    "Bytes of standard output that are kept. Absent: all.",
	    AT(task.stdout_bytes), .dflt = -1),
	SIZE("/limits/task/stderr", 0, 64 * T,
	    "Bytes of standard error that are kept. Absent: all.",
	    AT(task.stderr_bytes), .dflt = -1),
	NUMBER("/limits/task/cpus", 100, 8192000,
	    "Processors that all its processes may use at one time; 0: all there are.",
	    .none = true, AT(task_cpus)),
	WORD("/on_output_limit", WORDS("cut", "kill"),
	    "What happens to a task that writes more than is kept.", AT(output_kill)),

	OBJECT("/timeouts", "Milliseconds."),
	INT("/timeouts/queue_ms", 0, 365 * DAY_MS,
	    "From acceptance until a worker takes the task; 0: none.",
	    AT(timeouts.queue_ms)),
	INT("/timeouts/claim_ms", 10, DAY_MS,
	    "An idle worker that has not taken its task by then is replaced.",
	    AT(timeouts.claim_ms), .dflt = 1000),
	INT("/timeouts/task_ms", 0, 20 * DAY_MS,
	    "Soft limit: SIGTERM, and SIGKILL after grace_ms; 0: none.",
	    AT(timeouts.task_ms)),
	INT("/timeouts/hard_ms", 0, 20 * DAY_MS,
	    "Hard limit: everything of the task is killed; 0: none.",
	    AT(timeouts.hard_ms)),
	INT("/timeouts/grace_ms", 0, 3600 * 1000, "From SIGTERM to SIGKILL.",
	    AT(timeouts.grace_ms), .dflt = 100),
	INT("/timeouts/teardown_ms", 0, 3600 * 1000,
	    "A worker that has ended all of a task and is not done taking down what "
	    "it left, so long after it should have answered, is killed; 0: at once.",
	    AT(timeouts.teardown_ms), .dflt = 10000),
	INT("/timeouts/stop_ack_ms", 1, 60 * 1000,
	    "A worker that has not acknowledged a stop by then is killed.",
	    AT(timeouts.stop_ack_ms), .dflt = 50),
	INT("/timeouts/hard_slack_ms", 1, 60 * 1000,
	    "A worker whose task is not gone so long after hard_ms or grace_ms is "
	    "killed.",
	    AT(timeouts.hard_slack_ms), .dflt = 40),
	INT("/timeouts/start_ms", 100, 3600 * 1000,
	    "A worker that is not ready by then is killed.", AT(timeouts.start_ms),
	    .dflt = 10000),

	OBJECT("/payload", "What travels through shared memory."),
	SIZE("/payload/max", 4 * K, 512 * M,
	    "The largest task or result; at most an eighth of area.", AT(payload_max),
	    .dflt = 8 * M),
	SIZE("/payload/area", 64 * K, 4 * G, "Room per worker and direction.",
	    AT(payload_area), .dflt = 64 * M),
};
const size_t kn_policy_key_n = sizeof kn_policy_keys / sizeof *kn_policy_keys;

const struct kn_key *
kn_policy_key(const char *path)
{
	for (size_t i = 0; i < kn_policy_key_n; i++)
		if (strcmp(kn_policy_keys[i].path, path) == 0)
			return &kn_policy_keys[i];
	return NULL;
}

bool
kn_policy_key_is_ms(const struct kn_key *k)
{
	size_t n = strlen(k->path);
	return n > 3 && strcmp(k->path + n - 3, "_ms") == 0;
}

/* The last component, if `path` is directly below `parent` (n bytes); else NULL. */
static const char *
member_of(const char *path, const char *parent, size_t n)
{
	if (strncmp(path, parent, n) != 0 || path[n] != '/' ||
	    strchr(path + n + 1, '/'))
		return NULL;
	return path + n + 1;
}

const struct kn_key *
kn_policy_key_child(const char *path, const char *name)
{
	const struct kn_key *any = NULL;
	size_t n = strlen(path);
	for (size_t i = 0; i < kn_policy_key_n; i++) {
		const char *m = member_of(kn_policy_keys[i].path, path, n);
		if (m && strcmp(m, "*") == 0)
			any = &kn_policy_keys[i];
		else if (m && strcmp(m, name) == 0)
			return &kn_policy_keys[i];
	}
	return any;
}

const struct kn_key *
kn_policy_key_at(const char *pointer)
{
	const struct kn_key *k = &kn_policy_keys[0];
	while (k && *pointer == '/') {
		char name[KN_POLICY_POINTER_MAX];
		size_t n = strcspn(++pointer, "/");
		if (n >= sizeof name)
			return NULL;
		memcpy(name, pointer, n);
		name[n] = 0;
		k = kn_policy_key_child(k->path, name);
		pointer += n;
	}
	return *pointer ? NULL : k;
}

const char *
kn_policy_key_near(const char *path, const char *name)
{
	struct kn_near near = kn_near_to(name);
	for (size_t i = 0; i < kn_policy_key_n; i++) {
		const char *m = member_of(kn_policy_keys[i].path, path, strlen(path));
		if (m)
			kn_near_try(&near, m);
	}
	return kn_near_best(&near);
}
