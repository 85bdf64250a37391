/* sandbox/lack.c: which cause it is: from an errno, a few settings, and what this
 * process runs in. Read when something has failed, never on the way of a run.
 */
#include "sandbox/lack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"

enum { SETTING_MAX = 32, TEXT_MAX = 65536 };

static int
read_text(const char *path, char *buf, size_t n)
{
	KN_OWN_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t at = 0;
	ssize_t got = fd >= 0 ? 0 : -1;

	buf[0] = '\0';
	while (fd >= 0 && at + 1 < n && (got = read(fd, buf + at, n - 1 - at)) > 0)
		at += (size_t)got;
	buf[at] = '\0';
	return got < 0 && at == 0 ? -1 : 0;
}

/* The setting as a number, -1 if this kernel has no such file. */
static long
setting(const char *path)
{
	char text[SETTING_MAX];

	return read_text(path, text, sizeof(text)) == 0 ? strtol(text, NULL, 10) : -1;
}

/* ---- what we run in ---- */

const char *
kn_inside_name(enum kn_inside inside)
{
	static const char *const names[KN_INSIDE_N] = {
		[KN_INSIDE_NONE] = "none",
		[KN_INSIDE_DOCKER] = "docker",
		[KN_INSIDE_PODMAN] = "podman",
		[KN_INSIDE_KUBERNETES] = "kubernetes",
		[KN_INSIDE_LXC] = "lxc",
		[KN_INSIDE_NSPAWN] = "systemd-nspawn",
		[KN_INSIDE_OTHER] = "other",
	};

	return names[inside];
}

/* The first namespaces of a machine have fixed numbers (linux/nsfs.h, 6.18). Marker
 * files alone do not make a container: images of them are also booted as machines. Nor
 * does a user namespace, which anybody can make. */
static bool
in_first_namespaces(void)
{
	static const struct {
		const char *path;
		ino_t first;
	} ns[] = { { "/proc/self/ns/uts", 0xEFFFFFFEu },
		{ "/proc/self/ns/pid", 0xEFFFFFFCu } };
	struct stat st;

	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++)
		if (stat(ns[i].path, &st) == 0 && st.st_ino != ns[i].first)
			return false;
	return true;
}

static enum kn_inside
by_name(const char *text)
{
	static const struct {
		const char *word;
		enum kn_inside inside;
	} names[] = { { "kube", KN_INSIDE_KUBERNETES }, { "docker", KN_INSIDE_DOCKER },
		{ "podman", KN_INSIDE_PODMAN }, { "libpod", KN_INSIDE_PODMAN },
		{ "lxc", KN_INSIDE_LXC }, { "systemd-nspawn", KN_INSIDE_NSPAWN } };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(text, names[i].word) != NULL)
			return names[i].inside;
	return KN_INSIDE_NONE;
}

static enum kn_inside
look_inside(void)
{
	static const char *const tell[] = { "/run/systemd/container", "/proc/1/cgroup",
		"/proc/self/cgroup", "/proc/1/environ" };
	char text[4096];

	if (in_first_namespaces())
		return KN_INSIDE_NONE;
	if (getenv("KUBERNETES_SERVICE_HOST") != NULL ||
	    access("/var/run/secrets/kubernetes.io", F_OK) == 0)
		return KN_INSIDE_KUBERNETES;
	if (access("/run/.containerenv", F_OK) == 0)
		return KN_INSIDE_PODMAN;
	if (access("/.dockerenv", F_OK) == 0)
		return KN_INSIDE_DOCKER;
	for (size_t i = 0; i < sizeof(tell) / sizeof(tell[0]); i++) {
		enum kn_inside k = read_text(tell[i], text, sizeof(text)) == 0
				       ? by_name(text)
				       : KN_INSIDE_NONE;

		if (k != KN_INSIDE_NONE)
			return k;
	}
	return access("/dev/lxd", F_OK) == 0 ? KN_INSIDE_LXC : KN_INSIDE_OTHER;
}

/* In a chroot "/" is no mount point that this process is shown. (One that is a mount
 * point is told by what the kernel then refuses.) */
static bool
is_chroot(void)
{
	char *text = malloc(TEXT_MAX);
	bool found = true;

	if (text != NULL && read_text("/proc/self/mountinfo", text, TEXT_MAX) == 0) {
		found = false;
		for (char *line = text, *end; *line != '\0' && !found; line = end) {
			char point[8] = "";

			end = line + strcspn(line, "\n");
			end += *end == '\n';
			found = sscanf(line, "%*s %*s %*s %*s %7s", point) == 1 &&
				strcmp(point, "/") == 0;
		}
	}
	free(text);
	return !found;
}

static bool
status_has(const char *status, const char *line)
{
	return strstr(status, line) != NULL;
}

void
kn_around_look(struct kn_around *out)
{
	struct utsname u;
	char status[8192];

	memset(out, 0, sizeof(*out));
	out->inside = look_inside();
	out->chrooted = is_chroot();
	if (read_text("/proc/self/status", status, sizeof(status)) == 0) {
		out->filtered = status_has(status, "\nSeccomp:\t2") ||
				status_has(status, "\nSeccomp:\t1");
		out->no_new_privs = status_has(status, "\nNoNewPrivs:\t1");
	}
	if (uname(&u) == 0 && strstr(u.release, "icrosoft") != NULL)
		out->wsl = strstr(u.release, "WSL2") != NULL ||
				   strstr(u.release, "microsoft-standard") != NULL
			       ? 2
			       : 1;
	if (read_text("/proc/self/attr/current", out->lsm, sizeof(out->lsm)) == 0)
		out->lsm[strcspn(out->lsm, "\n")] = '\0';
}

/* ---- causes ---- */

/* What a setting of the kernel says, KN_LACK_NONE if they all allow it. */
static enum kn_lack
of_settings(void)
{
	if (setting("/proc/sys/user/max_user_namespaces") == 0)
		return KN_LACK_USERNS_MAX;
	if (geteuid() != 0 &&
	    setting("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		return KN_LACK_USERNS_CLONE;
	if (setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
		return KN_LACK_USERNS_APPARMOR;
	if (setting("/proc/sys/user/max_user_namespaces") < 0)
		return KN_LACK_USERNS_KERNEL;
	return KN_LACK_NONE;
}

enum kn_lack
kn_lack_of_userns(int sys, const struct kn_around *a)
{
	enum kn_lack c = of_settings();

	if (a->wsl == 1)
		return KN_LACK_WSL1;
	if (c != KN_LACK_NONE)
		return c;
	if (sys == ENOSPC)
		return KN_LACK_NS_LIMIT;
	if (sys == EAGAIN)
		return KN_LACK_PROCESSES;
	if (sys == EINVAL)
		return KN_LACK_USERNS_KERNEL;
	if (a->chrooted)
		return KN_LACK_CHROOT;
	if (a->filtered)
		return KN_LACK_FILTER;
	/* A security module says EACCES, and here is no id that is not mapped. */
	if (sys == EPERM && a->inside == KN_INSIDE_NONE)
		return KN_LACK_CHROOT;
	return sys == EACCES ? KN_LACK_LSM : KN_LACK_USERNS_OTHER;
}

enum kn_lack
kn_lack_of_inner(enum kn_lack seen, const struct kn_around *a)
{
	if (of_settings() == KN_LACK_USERNS_APPARMOR)
		return KN_LACK_USERNS_APPARMOR;
	if (a->filtered && seen == KN_LACK_MOUNT)
		return KN_LACK_FILTER;
	return seen;
}

enum kn_lack
kn_lack_of_missing(enum kn_lack kernel, const struct kn_around *a)
{
	static const struct {
		enum kn_lack cause;
		unsigned major, minor;
	} since[] = { { KN_LACK_MSEAL, 6, 10 }, { KN_LACK_LANDLOCK, 5, 13 } };
	unsigned major = 0, minor = 0;
	struct utsname u;

	if (!a->filtered || uname(&u) < 0 ||
	    sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return kernel;
	for (size_t i = 0; i < sizeof(since) / sizeof(since[0]); i++)
		if (since[i].cause == kernel &&
		    (major > since[i].major ||
			(major == since[i].major && minor >= since[i].minor)))
			return KN_LACK_FILTER_NEWER;
	return kernel;
}

bool
kn_lack_openat2(int sys)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC };
	int before = errno, said = 0;
	KN_OWN_FD int fd = -1;

	if (sys != ENOSYS && sys != EPERM)
		return false;
	fd = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));
	if (fd < 0)
		said = errno;
	errno = before;
	return said == ENOSYS || said == EPERM;
}

/* ---- as hints of `run` ---- */

static void
hint(enum kn_lack c, const struct kn_around *a, bool root, struct kn_err *e)
{
	char fix[sizeof(e->hint)];
	enum kn_who who;

	if (c == KN_LACK_NONE)
		return;
	kn_lack_fix(c, a, root, fix, sizeof(fix), &who);
	kn_err_hint(
	    e, "%s; %s%s", kn_lack_what(c), who == KN_WHO_ROOT ? "as root: " : "", fix);
}

void
kn_lack_hint(enum kn_lack c, bool root, struct kn_err *e)
{
	struct kn_around a;

	kn_around_look(&a);
	hint(c, &a, root, e);
}

void
kn_lack_hint_userns(int sys, bool root, struct kn_err *e)
{
	struct kn_around a;

	kn_around_look(&a);
	hint(kn_lack_of_userns(sys, &a), &a, root, e);
}
