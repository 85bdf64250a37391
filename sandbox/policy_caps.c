/* sandbox/policy_caps.c: /capabilities. A task has none, and none can be given: of each
 * the reason is told. Most would change nothing: one user and one group exist in a
 * task's user namespace, which owns neither its network nor the machine. Of the others
 * each takes a wall down.
 */
#include <stdio.h>
#include <string.h>

#include "ipc/near.h"
#include "sandbox/policy_int.h"

#define UNDOES "it could undo its cell"
#define KEEPERS "it could reach the processes that keep its cell"
#define HIDDEN \
	"it would open what filesystem.deny hides, and the layers below an overlay"
#define NETWORK \
	"no network, its own or the machine's, belongs to a task's user namespace, " \
	"and it would change nothing"
#define ALONE \
	"one user and one group exist in a task's user namespace, and it would " \
	"change " \
	"nothing"
#define OWN "all that a task sees is its own already"
#define MACHINE "it is about the whole machine, which is no task's to change"

/* By number, as the kernel has them (linux/capability.h). */
static const struct {
	const char *name, *why;
} caps[] = {
	{ "CAP_CHOWN", ALONE },
	{ "CAP_DAC_OVERRIDE", HIDDEN },
	{ "CAP_DAC_READ_SEARCH", HIDDEN },
	{ "CAP_FOWNER", ALONE },
	{ "CAP_FSETID", ALONE },
	{ "CAP_KILL", OWN },
	{ "CAP_SETGID", ALONE },
	{ "CAP_SETUID", ALONE },
	{ "CAP_SETPCAP", "there is no other that it could hand on" },
	{ "CAP_LINUX_IMMUTABLE", MACHINE },
	{ "CAP_NET_BIND_SERVICE", NETWORK },
	{ "CAP_NET_BROADCAST", NETWORK },
	{ "CAP_NET_ADMIN", NETWORK },
	{ "CAP_NET_RAW", NETWORK },
	{ "CAP_IPC_LOCK", MACHINE },
	{ "CAP_IPC_OWNER", OWN },
	{ "CAP_SYS_MODULE", MACHINE },
	{ "CAP_SYS_RAWIO", MACHINE },
	{ "CAP_SYS_CHROOT",
	    "a task does not choose its root: chroot is always refused" },
	{ "CAP_SYS_PTRACE", KEEPERS },
	{ "CAP_SYS_PACCT", MACHINE },
	{ "CAP_SYS_ADMIN", UNDOES },
	{ "CAP_SYS_BOOT", KEEPERS },
	{ "CAP_SYS_NICE", MACHINE },
	{ "CAP_SYS_RESOURCE", MACHINE },
	{ "CAP_SYS_TIME", MACHINE },
	{ "CAP_SYS_TTY_CONFIG", MACHINE },
	{ "CAP_MKNOD", "devices lead out of every wall" },
	{ "CAP_LEASE", MACHINE },
	{ "CAP_AUDIT_WRITE", MACHINE },
	{ "CAP_AUDIT_CONTROL", MACHINE },
	{ "CAP_SETFCAP", "there is no other that it could hand on" },
	{ "CAP_MAC_OVERRIDE", UNDOES },
	{ "CAP_MAC_ADMIN", UNDOES },
	{ "CAP_SYSLOG", MACHINE },
	{ "CAP_WAKE_ALARM", MACHINE },
	{ "CAP_BLOCK_SUSPEND", MACHINE },
	{ "CAP_AUDIT_READ", MACHINE },
	{ "CAP_PERFMON", MACHINE },
	{ "CAP_BPF", MACHINE },
	{ "CAP_CHECKPOINT_RESTORE", KEEPERS },
};
enum { CAP_N = sizeof caps / sizeof *caps };

static const char *
why_not(const char *name)
{
	for (size_t i = 0; i < CAP_N; i++)
		if (strcmp(caps[i].name, name) == 0)
			return caps[i].why;
	return NULL;
}

static int
refuse(const struct kn_pol *p, const char *pointer, const char *name, struct kn_err *e)
{
	const char *names[CAP_N + 1] = { NULL }, *why = why_not(name), *near;

	if (why)
		return kn_pol_fail(
		    p, pointer, e, "%s is given to no task: %s", name, why);
	for (size_t i = 0; i < CAP_N; i++)
		names[i] = caps[i].name;
	near = kn_near_word(names, name);
	if (near)
		return kn_pol_fail(p, pointer, e,
		    "unknown capability \"%.40s\"; did you mean \"%s\"?", name, near);
	return kn_pol_fail(p, pointer, e,
	    "unknown capability \"%.40s\"; none is given to a task", name);
}

int
kn_policy_build_caps(const struct kn_pol *p, struct kn_err *e)
{
	json_t *a = kn_pointer_get(p->doc, "/capabilities");
	char at[64];
	int rc = 0;

	for (size_t i = 0; i < json_array_size(a); i++) {
		snprintf(at, sizeof at, "/capabilities/%zu", i);
		rc |= refuse(p, at, json_string_value(json_array_get(a, i)), e);
	}
	return rc;
}
