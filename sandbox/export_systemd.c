/* sandbox/export_systemd.c: the [Service] section of a unit. Its filter of system calls
 * has names and no arguments: where ours looks at them, a setting of systemd's stands
 * in that looks at the same ones, or the call is left out.
 */
#include <inttypes.h>
#include <linux/seccomp.h>
#include <string.h>

#include "sandbox/export_int.h"
#include "sandbox/filter.h"

/* Whose arguments a setting below, or the lack of a terminal, takes care of. */
static const char *const covered[] = {
	"clone", "unshare",			       /* RestrictNamespaces */
	"socket", "socketpair",			       /* RestrictAddressFamilies */
	"personality",				       /* LockPersonality */
	"chmod", "fchmod", "fchmodat", "fchmodat2",    /* RestrictSUIDSGID */
	"open", "openat", "creat", "mknod", "mknodat", /* RestrictSUIDSGID */
	"mkdir", "mkdirat",			       /* RestrictSUIDSGID */
	"sched_setscheduler",			       /* RestrictRealtime */
	"ioctl",     /* StandardInput=null: no terminal */
	"fcntl",     /* F_SETLEASE: of files of its own, which nobody else waits for */
	"prlimit64", /* PID 1 is none of the task's */
};

struct filter {
	FILE *allowed; /* names */
	FILE *left;    /* whose arguments nothing looks at */
	char last[64];
	bool conditional, allows, kills;
};

static bool
is_covered(const char *name)
{
	for (size_t i = 0; i < sizeof covered / sizeof *covered; i++)
		if (strcmp(covered[i], name) == 0)
			return true;
	return false;
}

/* All rules of one call have been seen. */
static void
end_call(struct filter *s)
{
	if (s->allows && (!s->conditional || is_covered(s->last)))
		fprintf(s->allowed, " %s", s->last);
	else if (s->allows)
		fprintf(s->left, " %s", s->last);
	s->allows = s->conditional = false;
}

static int
see(void *ctx, const struct kn_frule *r)
{
	struct filter *s = ctx;
	uint32_t action = r->ret & SECCOMP_RET_ACTION_FULL;

	if (strcmp(s->last, r->name) != 0) {
		end_call(s);
		snprintf(s->last, sizeof s->last, "%s", r->name);
	}
	for (int i = 0; i < 6; i++)
		s->conditional = s->conditional || r->arg[i].mask;
	if (action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG)
		s->allows = true;
	else if (action != SECCOMP_RET_ERRNO)
		s->kills = true;
	return 0;
}

static int
calls(struct kn_exporting *x)
{
	struct filter s = { 0 };
	char *allowed = NULL, *left = NULL;
	size_t n, m;
	uint32_t unlisted;
	int rc = -1;

	s.allowed = open_memstream(&allowed, &n);
	s.left = open_memstream(&left, &m);
	if (s.allowed && s.left)
		rc = kn_filter_rules(x->p, &unlisted, see, &s, x->e);
	else
		kn_err_set(x->e, KN_EK_HOST, "export: out of memory");
	if (rc == 0)
		end_call(&s);
	if ((s.allowed && fclose(s.allowed) != 0) || (s.left && fclose(s.left) != 0))
		rc = kn_err_set(x->e, KN_EK_HOST, "export: out of memory");
	if (rc == 0) {
		uint32_t action = unlisted & SECCOMP_RET_ACTION_FULL;

		fprintf(x->f, "SystemCallArchitectures=native\nSystemCallFilter=%s\n",
		    allowed + (*allowed == ' '));
		if (action == SECCOMP_RET_ERRNO)
			fprintf(x->f, "SystemCallErrorNumber=%u\n",
			    unlisted & SECCOMP_RET_DATA);
		else if (action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG)
			rc = kn_err_set(x->e, KN_EK_CONFIG,
			    "/seccomp/default: systemd takes a list of what is "
			    "allowed, "
			    "and this policy allows what nothing names");
	}
	if (rc == 0 && *left)
		rc = kn_export_note(x,
		    "seccomp: refused whatever the arguments, at which a unit cannot "
		    "look:%s",
		    left);
	if (rc == 0 && s.kills)
		rc = kn_export_note(x, "seccomp: calls that kill are refused with the "
				       "same error as others");
	free(allowed);
	free(left);
	return rc;
}

/* A value in a unit: % starts a specifier, and quotes keep blanks. */
static void
word(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '%' || *s == '$')
			fputc(*s, f);
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		if (*s == '\n')
			fputs("\\n", f);
		else
			fputc(*s, f);
	}
	fputc('"', f);
}

static void
files(struct kn_exporting *x)
{
	const struct kn_policy *p = x->p;

	fprintf(x->f,
	    "RootDirectory=/var/empty\nTemporaryFileSystem=/:ro\nMountAPIVFS=yes\n"
	    "TemporaryFileSystem=/tmp:size=%" PRIu64 ",nr_inodes=%" PRIu64
	    ",mode=1777\nTemporaryFileSystem=/task:size=%" PRIu64 ",nr_inodes=%" PRIu64
	    ",mode=1777\n"
	    "TemporaryFileSystem=/dev/shm:size=%" PRIu64 ",mode=1777\n"
	    "WorkingDirectory=/task\n",
	    p->fs.tmp_bytes, p->fs.tmp_inodes, p->fs.task_bytes, p->fs.task_inodes,
	    p->fs.shm_bytes);
	for (size_t i = 0; i < p->fs.mount_n; i++) {
		const struct kn_mount *m = &p->fs.mounts[i];
		bool link = m->type == KN_MOUNT_SYMLINK;

		/* What is made up, or is a link elsewhere, has no source to bind. */
		if (link ? m->at[0] != '/' : !m->source)
			continue;
		fputs(m->writable ? "BindPaths=" : "BindReadOnlyPaths=", x->f);
		/* A colon in quotes would be part of the path, which is not there: of
		 * "-/usr:/usr" nothing is bound, and nothing is said. */
		if (!link) {
			char source[4200];

			snprintf(source, sizeof source, "%s%s", m->optional ? "-" : "",
			    m->source);
			word(x->f, source);
			fputc(':', x->f);
		}
		word(x->f, m->at);
		fputc('\n', x->f);
	}
}

static void
amounts(struct kn_exporting *x)
{
	const struct kn_policy *p = x->p;
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = { { "MemoryMax", p->task.memory }, { "TasksMax", p->task.pids },
		{ "LimitNOFILE", p->task.nofile }, { "LimitFSIZE", p->task.fsize },
		{ "LimitSTACK", p->task.stack },
		{ "LimitCPU", (p->task.cpu_ms + 999) / 1000 } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].value)
			fprintf(x->f, "%s=%" PRIu64 "\n", rows[i].name, rows[i].value);
	fprintf(x->f, "LimitCORE=%" PRIu64 "\n", p->task.core);
	if (p->task_cpus)
		fprintf(x->f, "CPUQuota=%u%%\n", (p->task_cpus + 5) / 10);
	if (p->task.memory)
		fputs("MemorySwapMax=0\nOOMPolicy=kill\n", x->f);
	if (p->timeouts.hard_ms)
		fprintf(x->f, "RuntimeMaxSec=%ums\n", p->timeouts.hard_ms);
	fprintf(x->f, "TimeoutStopSec=%ums\n",
	    p->timeouts.grace_ms ? p->timeouts.grace_ms : 1);
}

static int
lacks(struct kn_exporting *x)
{
	const struct kn_policy *p = x->p;

	if (p->landlock != KN_LANDLOCK_OFF &&
	    kn_export_lacks(x, KN_LAYER_LANDLOCK, "Landlock", "nothing") < 0)
		return -1;
	if (p->task.cpu_ms &&
	    kn_export_lacks(x, KN_LAYER_CG_CPU, "limit of all processes' CPU time",
		"a limit of each process (LimitCPU)") < 0)
		return -1;
	if (kn_export_note(x,
		"namespaces: PrivatePIDs needs systemd 257; an older one ignores it, "
		"and other processes are another user's and hidden in /proc") < 0 ||
	    kn_export_note(x,
		"/filesystem/root: RootDirectory must be there, empty; made-up files "
		"of /etc are missing") < 0)
		return -1;
	return kn_export_say_times(x, true);
}

int
kn_export_systemd(struct kn_exporting *x)
{
	static const char fixed[] =
	    "[Service]\nType=exec\nDynamicUser=yes\nNoNewPrivileges=yes\n"
	    "CapabilityBoundingSet=\nAmbientCapabilities=\nPrivateUsers=yes\n"
	    "PrivateIPC=yes\nPrivatePIDs=yes\nPrivateDevices=yes\nPrivateMounts=yes\n"
	    "DevicePolicy=closed\nProtectHostname=yes\nProtectClock=yes\n"
	    "ProtectKernelTunables=yes\nProtectKernelModules=yes\n"
	    "ProtectKernelLogs=yes\nProtectControlGroups=yes\nProtectProc=invisible\n"
	    "ProcSubset=pid\nRestrictNamespaces=yes\nRestrictRealtime=yes\n"
	    "RestrictSUIDSGID=yes\nLockPersonality=yes\nKeyringMode=private\n"
	    "RemoveIPC=yes\nUMask=0077\nStandardInput=null\n";
	const struct kn_policy *p = x->p;
	bool host = p->network == KN_NET_HOST;

	if (lacks(x) < 0)
		return -1;
	fputs(fixed, x->f);
	fprintf(x->f, "PrivateNetwork=%s\nRestrictAddressFamilies=AF_UNIX%s\n",
	    host ? "no" : "yes", host ? " AF_INET AF_INET6 AF_NETLINK" : "");
	files(x);
	amounts(x);
	for (size_t i = 0; i < p->env.set_n; i++) {
		fputs("Environment=", x->f);
		word(x->f, p->env.set[i]);
		fputc('\n', x->f);
	}
	for (size_t i = 0; i < p->env.inherit_n; i++)
		fprintf(x->f, "PassEnvironment=%s\n", p->env.inherit[i]);
	return calls(x);
}
