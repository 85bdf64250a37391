/* sandbox/doctor_ns.c: namespaces, and the steps that bwrap takes in them, one by one,
 * so that the one which is refused has a name.
 *
 * One child takes the steps in the order that bwrap does and writes down how each
 * ended. As root it is a worker's uid first: what root may do proves nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/fd.h"
#include "sandbox/doctor_int.h"

enum step {
	S_ID,
	S_USER,
	S_MAP,
	S_MNT,
	S_IPC,
	S_UTS,
	S_NAME,
	S_NET,
	S_CGROUP,
	S_PID,
	S_FORK,
	S_SLAVE,
	S_TMPFS,
	S_PROC,
	S_PIVOT,
	S_LOOP,
	S_NEST,
	S_NEST_MAP,
	S_N
};
enum { UNTRIED = -1, INSIDE_ID = 1000 };

/* 0 went well, else its errno; UNTRIED. */
struct steps {
	int sys[S_N];
};

static const char *const step_text[S_N] = {
	[S_ID] = "take a worker's uid",
	[S_USER] = "unshare user",
	[S_MAP] = "map ids",
	[S_MNT] = "unshare mount",
	[S_IPC] = "unshare ipc",
	[S_UTS] = "unshare uts",
	[S_NAME] = "set the host name",
	[S_NET] = "unshare net",
	[S_CGROUP] = "unshare cgroup",
	[S_PID] = "unshare pid",
	[S_FORK] = "fork",
	[S_SLAVE] = "make / slave",
	[S_TMPFS] = "mount a tmpfs",
	[S_PROC] = "mount proc",
	[S_PIVOT] = "pivot_root",
	[S_LOOP] = "loopback up",
	[S_NEST] = "unshare user within",
	[S_NEST_MAP] = "map ids within",
};

static int
note(struct steps *s, enum step i, int rc)
{
	s->sys[i] = rc < 0 ? errno : 0;
	return rc;
}

static int
write_text(const char *path, const char *text)
{
	KN_OWN_FD int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* The kernel takes a map of one id of one's own. */
static int
map_self(uid_t uid, gid_t gid)
{
	char text[64];

	snprintf(text, sizeof(text), "%d %u 1\n", INSIDE_ID, (unsigned)uid);
	if (write_text("/proc/self/uid_map", text) < 0 ||
	    write_text("/proc/self/setgroups", "deny") < 0)
		return -1;
	snprintf(text, sizeof(text), "%d %u 1\n", INSIDE_ID, (unsigned)gid);
	return write_text("/proc/self/gid_map", text);
}

static int
loopback_up(void)
{
	KN_OWN_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { .ifr_name = "lo" };

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0)
		return -1;
	r.ifr_flags = (short)(r.ifr_flags | IFF_UP);
	return ioctl(fd, SIOCSIFFLAGS, &r);
}

static const char *
mount_tmpfs(void)
{
	static const char *const at[] = { "/tmp", "/mnt", "/var/tmp", "/srv", "/opt" };

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		if (mount("tmpfs", at[i], "tmpfs", MS_NOSUID | MS_NODEV,
			"mode=0755,size=1m,nr_inodes=64") == 0)
			return at[i];
	return NULL;
}

/* As process 1 of the new namespaces. */
static void
inner(struct steps *s)
{
	const char *dir;

	note(s, S_LOOP, loopback_up());
	if (note(s, S_SLAVE, mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL)) < 0)
		return;
	dir = mount_tmpfs();
	if (note(s, S_TMPFS, dir != NULL ? chdir(dir) : -1) < 0)
		return;
	if (mkdir("old", 0755) < 0 || mkdir("proc", 0755) < 0)
		return;
	note(s, S_PROC,
	    mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
	if (note(s, S_PIVOT, (int)syscall(SYS_pivot_root, ".", "old")) == 0 &&
	    (chdir("/") < 0 || umount2("old", MNT_DETACH) < 0))
		note(s, S_PIVOT, -1);
	if (s->sys[S_PROC] != 0 || s->sys[S_PIVOT] != 0)
		return;
	/* As --disable-userns does: one more, and none after it. */
	if (note(s, S_NEST, write_text("/proc/sys/user/max_user_namespaces", "1")) < 0)
		return;
	if (note(s, S_NEST, unshare(CLONE_NEWUSER)) == 0)
		note(s, S_NEST_MAP, map_self(INSIDE_ID, INSIDE_ID));
}

static int
take_steps(const struct kn_doctor *d, void *shared)
{
	static const struct {
		enum step step;
		int flag;
	} ns[] = { { S_MNT, CLONE_NEWNS }, { S_IPC, CLONE_NEWIPC },
		{ S_UTS, CLONE_NEWUTS }, { S_NET, CLONE_NEWNET },
		{ S_CGROUP, CLONE_NEWCGROUP }, { S_PID, CLONE_NEWPID } };
	struct steps *s = shared;
	bool all = true;
	uid_t uid;
	gid_t gid;
	pid_t pid;

	if (note(s, S_ID, kn_doctor_become_worker(d)) < 0)
		return 0;
	uid = geteuid();
	gid = getegid();
	if (note(s, S_USER, unshare(CLONE_NEWUSER)) < 0 ||
	    note(s, S_MAP, map_self(uid, gid)) < 0)
		return 0;
	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++)
		all &= note(s, ns[i].step, unshare(ns[i].flag)) == 0;
	if (!all)
		return 0;
	/* (some profiles let namespaces be made, and refuse this) */
	if (note(s, S_NAME, sethostname("knit", 4)) < 0)
		return 0;
	pid = fork();
	note(s, S_FORK, pid < 0 ? -1 : 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		inner(s);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return 0;
}

/* ---- findings ---- */

/* Uid 0 of the machine, as a container's root is, and nothing of what makes it root. */
static bool
is_powerless(const struct kn_doctor *d)
{
	return d->host.uid == 0 && !d->host.root && d->host.host_root;
}

/* The first of these steps that failed; S_N: none did. UNTRIED counts as failed. */
static enum step
first_bad(const struct steps *s, enum step from, enum step to)
{
	for (enum step i = from; i <= to; i++)
		if (s->sys[i] != 0)
			return i;
	return S_N;
}

static void
say(struct kn_doctor *d, const struct steps *s, enum kn_probe p, enum step from,
    enum step to, enum kn_lack cause, const char *fine)
{
	enum step bad = first_bad(s, from, to);

	if (bad == S_N) {
		kn_doctor_ok(d, p, "%s", fine);
	} else if (s->sys[bad] == UNTRIED) {
		kn_doctor_untried(d, p, "what comes before it failed");
	} else {
		if (is_powerless(d)) /* uid 0 cannot even be mapped without */
			cause = KN_LACK_ROOT_POWERLESS;
		else if (cause == KN_LACK_NONE)
			cause = kn_lack_of_userns(s->sys[bad], &d->around);
		else
			cause = kn_lack_of_inner(cause, &d->around);
		kn_doctor_bad(d, p, KN_HEALTH_REFUSED, cause, "%s: %s", step_text[bad],
		    strerror(s->sys[bad]));
	}
}

static void
say_identity(struct kn_doctor *d, const struct steps *s)
{
	const struct kn_host *h = &d->host;

	if (is_powerless(d))
		kn_doctor_bad(d, KN_PROBE_IDENTITY, KN_HEALTH_REFUSED,
		    KN_LACK_ROOT_POWERLESS, "uid 0 of the machine without its powers");
	else if (s->sys[S_ID] > 0)
		kn_doctor_bad(d, KN_PROBE_IDENTITY, KN_HEALTH_REFUSED,
		    d->around.filtered ? KN_LACK_FILTER : KN_LACK_ROOT_NO_IDS, "%s: %s",
		    step_text[S_ID], strerror(s->sys[S_ID]));
	else if (s->sys[S_ID] == UNTRIED)
		kn_doctor_untried(d, KN_PROBE_IDENTITY, "no child");
	else if (h->root)
		kn_doctor_ok(d, KN_PROBE_IDENTITY, "root, workers from uid %u on",
		    (unsigned)h->worker_uid_base);
	else
		kn_doctor_ok(d, KN_PROBE_IDENTITY, "uid %u%s", (unsigned)h->uid,
		    h->uid == 0 ? " of a user namespace" : "");
}

void
kn_doctor_ns(struct kn_doctor *d)
{
	struct steps none, *s = kn_doctor_share(sizeof(*s));

	for (int i = 0; i < S_N; i++)
		none.sys[i] = UNTRIED;
	if (s != NULL) {
		*s = none;
		kn_doctor_child(d, take_steps, s);
	}
	say_identity(d, s ? s : &none);
	say(d, s ? s : &none, KN_PROBE_USERNS, S_USER, S_MAP, KN_LACK_NONE,
	    "can be made");
	say(d, s ? s : &none, KN_PROBE_NAMESPACES, S_MNT, S_FORK, KN_LACK_NONE,
	    "mount, ipc, uts, net, cgroup, pid");
	say(d, s ? s : &none, KN_PROBE_MOUNT, S_SLAVE, S_TMPFS, KN_LACK_MOUNT,
	    "slave, tmpfs");
	say(d, s ? s : &none, KN_PROBE_PROC, S_PROC, S_PROC, KN_LACK_PROC_MASKED,
	    "a fresh one can be mounted");
	say(d, s ? s : &none, KN_PROBE_PIVOT, S_PIVOT, S_PIVOT, KN_LACK_PIVOT_ROOT,
	    "works");
	say(d, s ? s : &none, KN_PROBE_LOOPBACK, S_LOOP, S_LOOP, KN_LACK_LOOPBACK,
	    "can be brought up");
	say(d, s ? s : &none, KN_PROBE_NESTED, S_NEST, S_NEST_MAP, KN_LACK_NONE,
	    "one more within, and no other");
	kn_doctor_unshare(s, sizeof(*s));
}
