/* sandbox/lack.h: what keeps a machine from running sandboxes: one table of causes,
 * which layer refuses, and what to do about it, by whom.
 *
 * `run` takes its hints from here and `doctor` its fixes, so that both say the same. A
 * cause is chosen from what the kernel answered and a few of its settings; nothing is
 * ever proposed that leads to running without walls.
 */
#ifndef KN_SANDBOX_LACK_H
#define KN_SANDBOX_LACK_H

#include <stdbool.h>
#include <stddef.h>

struct kn_err;

enum kn_lack {
	KN_LACK_NONE,
	KN_LACK_USERNS_MAX,
	KN_LACK_USERNS_CLONE,
	KN_LACK_USERNS_APPARMOR,
	KN_LACK_USERNS_KERNEL,
	KN_LACK_FILTER,
	KN_LACK_FILTER_NEWER,
	KN_LACK_CHROOT,
	KN_LACK_LSM,
	KN_LACK_USERNS_OTHER,
	KN_LACK_NS_LIMIT,
	KN_LACK_PROCESSES,
	KN_LACK_PROC_MASKED,
	KN_LACK_PROC_MISSING,
	KN_LACK_LOOPBACK,
	KN_LACK_MOUNT,
	KN_LACK_PIVOT_ROOT,
	KN_LACK_BWRAP_MISSING,
	KN_LACK_BWRAP_OLD,
	KN_LACK_BWRAP_NAMED,
	KN_LACK_BWRAP_BROKEN,
	KN_LACK_BWRAP_SETUID,
	KN_LACK_BWRAP_UNREACHABLE,
	KN_LACK_MEMFD,
	KN_LACK_ROOT_POWERLESS,
	KN_LACK_ROOT_NO_IDS,
	KN_LACK_NOT_ROOT,
	KN_LACK_IDMAP,
	KN_LACK_IDMAP_OWNER,
	KN_LACK_SECCOMP,
	KN_LACK_LISTENER,
	KN_LACK_LANDLOCK,
	KN_LACK_LANDLOCK_SCOPES,
	KN_LACK_LANDLOCK_TRUNCATE,
	KN_LACK_MSEAL,
	KN_LACK_OPENAT2,
	KN_LACK_CGROUP_ABSENT,
	KN_LACK_CGROUP_COVERED,
	KN_LACK_CGROUP_READONLY,
	KN_LACK_CGROUP_DENIED,
	KN_LACK_CGROUP_CONTROLLER,
	KN_LACK_CGROUP_KILL,
	KN_LACK_NOFILE,
	KN_LACK_FILE_SIZE,
	KN_LACK_ADDRESS_SPACE,
	KN_LACK_MEMORY,
	KN_LACK_INSIDE_CELL,
	KN_LACK_WSL1,
	KN_LACK_LAUNCHER,
	KN_LACK_RUNTIME_MISSING,
	KN_LACK_N
};

/* What this process runs in. */
enum kn_inside {
	KN_INSIDE_NONE,
	KN_INSIDE_DOCKER,
	KN_INSIDE_PODMAN,
	KN_INSIDE_KUBERNETES,
	KN_INSIDE_LXC,
	KN_INSIDE_NSPAWN,
	KN_INSIDE_OTHER, /* namespaces of somebody's making */
	KN_INSIDE_N
};
struct kn_around {
	enum kn_inside inside;
	bool filtered;	   /* a system call filter is in force */
	bool no_new_privs; /* setuid programs gain nothing */
	bool chrooted;
	int wsl;      /* 0, 1, 2 */
	char lsm[64]; /* our AppArmor or SELinux label, "" if there is none */
};
void kn_around_look(struct kn_around *out);
const char *kn_inside_name(enum kn_inside inside); /* "docker" */

/* Who has to do it. */
enum kn_who { KN_WHO_CALLER, KN_WHO_ROOT, KN_WHO_CONTAINER };

const char *kn_lack_name(enum kn_lack c);  /* "userns-max" */
const char *kn_lack_what(enum kn_lack c);  /* a clause */
const char *kn_lack_layer(enum kn_lack c); /* which layer refuses */
/* One command, annotation, option or setting, for who is root or not and for what we
 * run in. */
void kn_lack_fix(enum kn_lack c, const struct kn_around *a, bool root, char *out,
    size_t n, enum kn_who *who);

/* Why a namespace, or what needs one, was refused with this errno. */
enum kn_lack kn_lack_of_userns(int sys, const struct kn_around *a);
/* The same of a mount and its like in a namespace that could be had; seen: what is
 * to blame if no setting or filter is. */
enum kn_lack kn_lack_of_inner(enum kn_lack seen, const struct kn_around *a);
/* Who is to blame that a call is not there at all: `kernel`, unless this one is new
 * enough to have it and a filter is around. */
enum kn_lack kn_lack_of_missing(enum kn_lack kernel, const struct kn_around *a);
/* Whether sys is the errno of openat2 where a filter around us refuses it, which is
 * asked anew. errno stays. */
bool kn_lack_openat2(int sys);
/* The same in words that can follow an error's text: "; ...", or "" if it is not so. */
const char *kn_lack_openat2_text(int sys);
/* "what; fix" as the hint of an error, unless it has one. */
void kn_lack_hint(enum kn_lack c, bool root, struct kn_err *e);
/* The cause that the kernel's settings tell, for a launch that failed at a namespace or
 * in one; sys 0: not known. */
void kn_lack_hint_userns(int sys, bool root, struct kn_err *e);

#endif
