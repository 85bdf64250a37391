/* sandbox/policy.h: a policy document -> an immutable struct kn_policy.
 *
 * kn_policy_load() merges preset, extends chain, files, --set and flag settings in the
 * order given, checks the result once, and keeps the origin of each value. Errors name
 * file, line, column and JSON pointer, and for an unknown key the nearest known one.
 * All strings and arrays are owned by the policy; kn_policy_free() ends them all.
 * Paths that came from a file are already absolute (relative to that file's folder);
 * paths from flags are relative to the caller's working directory, likewise absolute.
 */
#ifndef KN_SANDBOX_POLICY_H
#define KN_SANDBOX_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/layer.h"

struct kn_err;
struct kn_net_rule;

/* What to merge, in order. */
enum kn_policy_src_type {
	KN_SRC_NAMED, /* preset name or file name (a name with '/' or ".json" is a file)
		       */
	KN_SRC_SET,   /* text "/json/pointer=VALUE"; label is the flag as typed */
	KN_SRC_VALUE, /* pointer + text: a flag such as --memory; VALUE as for SET */
	KN_SRC_MOUNT, /* text: host path, at: inside path, writable: appended mount */
};
struct kn_policy_src {
	enum kn_policy_src_type type;
	const char *text;
	const char *pointer; /* VALUE */
	const char *at;	     /* MOUNT; NULL: same as text */
	bool writable;	     /* MOUNT */
	const char *label;   /* for messages and origins: "--memory" */
};

enum kn_mount_type {
	KN_MOUNT_BIND,
	KN_MOUNT_TMPFS,
	KN_MOUNT_DIR,
	KN_MOUNT_SYMLINK,
	KN_MOUNT_DATA,	/* a small read-only file with `data` as content, no mount of
			   its own (bwrap: --perms 0444 --file FD AT) */
	KN_MOUNT_LINK,	/* a link that a bind shows at `at`, kept as it is */
	KN_MOUNT_WHITE, /* what is denied below an overlay: not shown */
	KN_MOUNT_MASK,	/* what is denied: something that cannot be opened, upon a
			   file or folder that another mount shows at `at` */
};
struct kn_mount {
	enum kn_mount_type type;
	const char *source; /* BIND: absolute host path; SYMLINK: link text; DATA
			     * without data: the host's file that has them; LINK and
			     * MASK: what it is upon, a host path */
	const char *at;	    /* absolute, clean (no "..", ".", "//"), inside */
	const void *data;   /* DATA: its bytes, or NULL */
	size_t data_n;
	bool writable; /* BIND; MASK: of what it is upon */
	bool dir;      /* MASK: it is upon a folder */
	bool implied;  /* BIND, SYMLINK: left out where others show the same there */
	bool pin; /* BIND: of a folder upon itself, in a writable one, so that a task
		   * cannot move it away with what is mounted below it */
	bool optional; /* BIND: skip if the source does not exist (system root only) */
	bool user;     /* asked for by caller or policy file, not by a system root */
	uint64_t bytes, inodes; /* TMPFS; BIND with overlay */
	bool overlay;	    /* BIND: each task writes to a layer of its own upon it */
	const char *out;    /* with overlay: what a task changed goes to a folder of its
			       own below this one of the machine; NULL: nowhere */
	const char *origin; /* "--bind", "policy.json:/filesystem/mounts/0" */
	unsigned turn;	    /* which of the merged documents it came with */
};

enum kn_seccomp_action {
	KN_SC_ALLOW,
	KN_SC_ERRNO,
	KN_SC_KILL, /* the process */
	KN_SC_LOG,
	KN_SC_KILL_OLD, /* SCMP_ACT_KILL: as KN_SC_KILL */
	KN_SC_KILL_THREAD,
	KN_SC_TRAP
};
/* By which numbers a process asks for system calls. */
enum kn_abi { KN_ABI_NATIVE, KN_ABI_X32, KN_ABI_I386, KN_ABI_N };
enum kn_cmp_op {
	KN_CMP_NE,
	KN_CMP_LT,
	KN_CMP_LE,
	KN_CMP_EQ,
	KN_CMP_GE,
	KN_CMP_GT,
	KN_CMP_MASKED_EQ
};
struct kn_seccomp_arg {
	unsigned index;
	enum kn_cmp_op op;
	uint64_t value,
	    value_two; /* MASKED_EQ: mask = value, compared with value_two */
};
struct kn_seccomp_rule {
	const char *const *names;
	size_t name_n;
	enum kn_seccomp_action action;
	unsigned errno_ret;		   /* ERRNO */
	const struct kn_seccomp_arg *args; /* all must hold */
	size_t arg_n;
	const char *why, *origin;
};

enum kn_kind { KN_KIND_EXEC, KN_KIND_MODULE };
enum kn_steal {
	KN_STEAL_AUTO,
	KN_STEAL_SHARED,
	KN_STEAL_BROKERED,
	KN_STEAL_OFF,
	KN_STEAL_N
};
const char *kn_steal_name(enum kn_steal s);
/* -1: no such word. */
int kn_steal_parse(const char *name);
enum kn_claim { /* in the order of enum kn_claim_how of ipc/region.h */
	KN_CLAIMS_AUTO,
	KN_CLAIMS_DEKKER,
	KN_CLAIMS_CAS_MASK,
	KN_CLAIMS_N
};
int kn_claims_parse(const char *name);
enum kn_balancer { /* in the order of the core's enum kn_balance */
	KN_BALANCER_FIRST_IDLE,
	KN_BALANCER_ROUND_ROBIN,
	KN_BALANCER_RANDOM,
	KN_BALANCER_FIRST_IDLE_OR_RANDOM,
	KN_BALANCER_N
};
enum kn_launcher_type {
	KN_LAUNCHER_BWRAP,
	KN_LAUNCHER_OCI,
	KN_LAUNCHER_DIRECT,
	KN_LAUNCHER_N
};
enum kn_runtime {
	KN_RUNTIME_AUTO,
	KN_RUNTIME_RUNC,
	KN_RUNTIME_CRUN,
	KN_RUNTIME_PODMAN,
	KN_RUNTIME_DOCKER,
	KN_RUNTIME_N
};
const char *kn_runtime_name(enum kn_runtime r);
enum kn_network { KN_NET_NONE, KN_NET_HOST, KN_NET_ALLOW };
enum kn_isolation { KN_ISOLATION_CELL, KN_ISOLATION_WORKER };
enum kn_user { KN_USER_AUTO, KN_USER_ROOT, KN_USER_CALLER };
enum kn_ipc_scope { KN_IPC_TASK, KN_IPC_WORKER };
enum kn_root { KN_ROOT_SYSTEM, KN_ROOT_EMPTY };
enum kn_permissions { KN_PERMISSIONS_PROJECT, KN_PERMISSIONS_NONE };
enum kn_landlock { KN_LANDLOCK_AUTO, KN_LANDLOCK_ON, KN_LANDLOCK_OFF };

struct kn_task_limits { /* 0: none, but core 0 is zero */
	uint64_t memory, pids, cpu_ms, nofile, fsize, stack, core;
	uint64_t stdout_bytes, stderr_bytes; /* captured; UINT64_MAX: uncapped */
};
struct kn_timeouts {
	uint32_t queue_ms, claim_ms, task_ms, hard_ms, grace_ms, stop_ack_ms, start_ms;
	uint32_t hard_slack_ms, teardown_ms;
};

struct kn_policy {
	struct {
		uint32_t workers; /* 0: decided by the machine */
		enum kn_kind kind;
		enum kn_steal steal;
		enum kn_claim claim;
		uint32_t region_lanes; /* 0: as wide as leaves a spare region */
		enum kn_balancer balancer;
		/* MODULE: absolute path of the file, where it is inside, and the text
		 * for its init hook ("" if none); else NULL */
		const char *module, *module_at, *init;
		enum kn_isolation isolation;
		enum kn_ipc_scope ipc;
		uint32_t spares;
		uint32_t recycle_tasks, recycle_s;
		uint64_t recycle_memory;
		uint32_t retries;
		uint32_t abort_ids; /* 0: as many as there can be calls */
	} pool;
	enum kn_launcher_type launcher;
	enum kn_runtime runtime; /* of OCI */
	/* of OCI: an image's name, a directory whose entries are the root; NULL */
	const char *image, *rootfs;
	const char *const *prefix; /* argv before the launcher's */
	size_t prefix_n;
	uint32_t require, allow_degraded; /* bit per enum kn_layer */
	/* limits asked for by name (a flag, --set, a policy file or a strict preset)
	 * are enforced or refused: a bit in `require` stands for each such layer
	 * already. */
	struct {
		enum kn_root root;
		const struct kn_mount
		    *mounts; /* in mount order; the expanded system root first */
		size_t mount_n;
		uint64_t tmp_bytes, tmp_inodes; /* private /tmp of a cell */
		uint64_t shm_bytes,
		    shm_inodes; /* /dev/shm; inodes 0: as many as pages */
		uint64_t task_bytes, task_inodes; /* /task */
		const char *const
		    *task_paths; /* roots below which a task line may name "path" */
		size_t task_path_n;
		const char *const *denied; /* patterns: see kn_policy_denies() */
		size_t denied_n;
	} fs;
	enum kn_network network;
	struct {
		const struct kn_net_rule *allow; /* mode allow; sandbox/net_rule.h */
		size_t allow_n;
	} net;
	struct {
		const char *const *inherit;
		size_t inherit_n;
		const char *const *set;
		size_t set_n; /* "K=V" */
	} env;
	struct {
		bool worker_uid; /* "auto": own host uid per worker as root */
		const char *hostname;
		enum kn_user user;
		uint32_t uid, gid; /* who a task is inside */
	} identity;
	struct {
		const char *const *groups;
		size_t group_n; /* effective, after add/remove/replace */
		const struct kn_seccomp_rule *rules;
		size_t rule_n;
		enum kn_seccomp_action unlisted;
		unsigned unlisted_errno;
		uint32_t abis; /* bit per enum kn_abi that the same rules cover */
		/* a foreign profile instead of groups, resolved for this machine */
		bool profiled;
		const struct kn_seccomp_rule *profile;
		size_t profile_n;
		const char *const *notes; /* what was passed over in it */
		size_t note_n;
		bool explain; /* tell of refused calls */
	} seccomp;
	enum kn_landlock landlock;
	enum kn_permissions permissions;
	struct {
		bool set;	      /* or any program may be executed */
		const char *const *v; /* absolute paths inside, or names; none: no
				       * program but what a task is */
		size_t n;
		const char *path; /* where names are looked for: as PATH is */
	} run;
	bool console; /* false: what a task prints is read and thrown away */
	struct {
		uint64_t memory, pids;
	} worker; /* 0: none */
	struct kn_task_limits task;
	uint32_t task_cpus; /* thousandths of a processor, of a task; 0: no limit */
	bool output_kill;   /* on_output_limit: "kill" */
	struct kn_timeouts timeouts;
	uint64_t payload_max, payload_area;
};

/* No sources at all means the preset "default". */
int kn_policy_load(const struct kn_policy_src *src, size_t src_n,
    struct kn_policy **out, struct kn_err *e);
/* One mistake, whole: the text in an error may be cut. */
struct kn_policy_note {
	struct kn_err *err;
	char *text; /* "file:line:column: /pointer: what is wrong" */
	char *pointer;
	size_t doc; /* which of the documents read */
	unsigned line, col;
};
struct kn_policy_notes {
	struct kn_policy_note *v;
	size_t n, more, docs; /* more: mistakes that are not kept */
};
/* The same, with all that is wrong and not the first mistake only: document by
 * document, in the order of the text. kn_policy_notes_fini() in both cases. */
int kn_policy_load_noted(const struct kn_policy_src *src, size_t src_n,
    struct kn_policy **out, struct kn_policy_notes *notes, struct kn_err *e);
void kn_policy_notes_fini(struct kn_policy_notes *notes);
void kn_policy_free(struct kn_policy *p);
/* The merged document as pretty JSON (malloc'ed), for --dry-run. */
char *kn_policy_text(const struct kn_policy *p);
/* The same for readers: beside each value who set it, as "my.json:7" or "preset judge",
 * and the hash (malloc'ed). */
char *kn_policy_listing(const struct kn_policy *p);
/* What differs, with both origins (malloc'ed); "" if nothing does. */
char *kn_policy_compare(const struct kn_policy *a, const struct kn_policy *b);
/* The JSON Schema of a policy document (malloc'ed text). */
char *kn_policy_schema(void);
/* The JSON of the value at pointer (malloc'ed); NULL: none there. */
char *kn_policy_value(const struct kn_policy *p, const char *pointer);
/* The text at pointer (borrowed) if it is one, or NULL. */
const char *kn_policy_word(const struct kn_policy *p, const char *pointer);
/* "sha256:<64 hex>" of the merged canonical document; "" when out of memory. Made when
 * it is first asked for: a run without a report need not wait for it. */
const char *kn_policy_hash(const struct kn_policy *p);
/* Who set the value at `pointer`: "--memory", "preset default", "my.json:/limits/...";
 * NULL if nobody did. */
const char *kn_policy_origin(const struct kn_policy *p, const char *pointer);
/* True if somebody other than a shipped preset set it. */
bool kn_policy_named(const struct kn_policy *p, const char *pointer);
/* Names of the shipped presets, NULL-terminated. */
const char *const *kn_policy_presets(void);
/* Is what lies at a path of the machine denied? The path is absolute and clean; ask
 * about the canonical one as well where the two may differ. */
bool kn_policy_denies(const struct kn_policy *p, const char *path);

/* A task line's own limits: tighten only. Starts from the policy's; each set field of
 * `want` must not be looser, else -1 with the pointer in e ("/limits/task/memory"). */
struct kn_task_ask {
	bool has_memory, has_pids, has_cpu_ms, has_nofile, has_fsize, has_stack,
	    has_core, has_stdout, has_stderr, has_task_ms, has_hard_ms, has_queue_ms,
	    has_grace_ms;
	struct kn_task_limits limits;
	struct kn_timeouts timeouts;
};
int kn_policy_tighten(const struct kn_policy *p, const struct kn_task_ask *want,
    struct kn_task_limits *out_limits, struct kn_timeouts *out_timeouts,
    struct kn_err *e);
/* Sizes "64M" and plain integers; durations "2s", "500ms", "1m". 0 or -1 with e. */
int kn_policy_size(const char *text, uint64_t *out, struct kn_err *e);
int kn_policy_duration_ms(const char *text, uint64_t *out, struct kn_err *e);

#endif
