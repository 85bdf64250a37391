/* sandbox/policy_rootfs.c: launcher.rootfs: a directory of the machine as the root.
 *
 * Its entries are shown read-only, one by one, in a root that we make: so the points of
 * other mounts need not exist in it, and nothing is ever made there. They are the
 * caller's, as if he had named each by --ro-bind: held by descriptor from the start and
 * compared inside, and as root shown under the worker's uid. What each sandbox has of
 * its own (/proc, /dev, /tmp, /task) is left out, and /sys, which none has.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/policy_int.h"

static const char *const own[] = { "dev", "proc", "tmp", "task", "sys" };

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
add(struct kn_pol *p, struct kn_mount_list *l, int dir, const char *name,
    struct kn_err *e)
{
	struct kn_mount m = {
		.type = KN_MOUNT_BIND, .user = true, .origin = "launcher.rootfs"
	};
	char text[1024];
	struct stat st;
	ssize_t n;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* gone since it was listed */
	for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
		if (strcmp(name, own[i]) != 0)
			continue;
		/* As a link it would lead a runtime out of the root. */
		if (!S_ISDIR(st.st_mode))
			return kn_pol_fail(p, "/launcher/rootfs", e,
			    "its /%s is not a directory", name);
		return 0;
	}
	m.at = kn_pmem_fmt(&p->mem, e, "/%s", name);
	if (!m.at)
		return -1;
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(dir, name, text, sizeof text - 1);
		if (n <= 0 || n == sizeof text - 1)
			return kn_pol_fail(p, "/launcher/rootfs", e,
			    "its link /%s cannot be read", name);
		text[n] = '\0';
		m.type = KN_MOUNT_SYMLINK;
		m.user = false; /* it leads nowhere but in the sandbox */
		m.source = kn_pmem_dup(&p->mem, text, (size_t)n, e);
	} else if (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) {
		m.source = kn_pmem_fmt(&p->mem, e, "%s%s", p->pub.rootfs, m.at);
	} else {
		return 0;
	}
	return m.source ? kn_mount_add(l, m, &p->mem, e) : -1;
}

int
kn_policy_rootfs(struct kn_pol *p, struct kn_mount_list *l, struct kn_err *e)
{
	enum { ENTRIES_MAX = 200 };
	DIR *d = opendir(p->pub.rootfs);
	char *names[ENTRIES_MAX];
	struct dirent *de;
	size_t n = 0;
	int rc = 0;

	if (!d)
		return kn_pol_fail(
		    p, "/launcher/rootfs", e, "%s: %s", p->pub.rootfs, strerror(errno));
	while ((de = readdir(d)) != NULL && n < ENTRIES_MAX)
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0 &&
		    !(names[n++] = strdup(de->d_name)))
			rc = kn_err_sys(e, KN_EK_HOST, "read launcher.rootfs");
	if (rc == 0 && n == ENTRIES_MAX)
		rc = kn_pol_fail(p, "/launcher/rootfs", e,
		    "has %d entries or more, which is no root", ENTRIES_MAX);
	if (rc == 0)
		qsort(names, n, sizeof *names, by_name);
	for (size_t i = 0; i < n; i++) {
		if (rc == 0)
			rc = add(p, l, dirfd(d), names[i], e);
		free(names[i]);
	}
	closedir(d);
	return rc;
}
