/* sandbox/cgroup_why.c: see cgroup_why.h. */
#include "sandbox/cgroup_why.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "sandbox/cgroup_find.h"

enum { PLACES = 4 };

/* Our groups, as far as their directories can be seen: a mount may be covered by
 * another. */
struct places {
	struct kn_cgroup_where w;
	struct kn_cgroup_place *all[PLACES]; /* the last one is v2's */
	bool known, covered;
};

static void
find(struct places *p)
{
	struct kn_cgroup_place *all[PLACES] = { &p->w.memory, &p->w.pids, &p->w.cpuacct,
		&p->w.unified };

	memset(p, 0, sizeof(*p));
	memcpy(p->all, all, sizeof(all));
	p->known = kn_cgroup_where(&p->w, NULL) == 0;
	for (size_t i = 0; i < PLACES; i++) {
		if (all[i]->dir[0] == '\0' || access(all[i]->dir, F_OK) == 0)
			continue;
		all[i]->dir[0] = '\0';
		p->covered = true;
	}
}

static bool
is_v2(size_t i)
{
	return i == PLACES - 1;
}

enum kn_lack
kn_cgroup_why(void)
{
	struct places p;
	enum kn_lack worst = KN_LACK_CGROUP_CONTROLLER;
	struct statvfs fs;
	bool any = false;

	/* One that was made could not be opened. */
	if (kn_lack_openat2(ENOSYS))
		return KN_LACK_OPENAT2;
	find(&p);
	for (size_t i = 0; i < PLACES; i++) {
		if (p.all[i]->dir[0] == '\0')
			continue;
		any = true;
		/* (modes are looked at before a mount's flags) */
		if (statvfs(p.all[i]->dir, &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0)
			return KN_LACK_CGROUP_READONLY;
		if (access(p.all[i]->dir, W_OK) == 0)
			continue;
		if (errno == EACCES || errno == EPERM)
			worst = KN_LACK_CGROUP_DENIED;
	}
	if (any)
		return worst;
	return !p.known	   ? KN_LACK_PROC_MISSING
	       : p.covered ? KN_LACK_CGROUP_COVERED
			   : KN_LACK_CGROUP_ABSENT;
}

const char *
kn_cgroup_mode(void)
{
	struct places p;
	bool v1 = false;

	find(&p);
	for (size_t i = 0; i < PLACES && !is_v2(i); i++)
		v1 |= p.all[i]->dir[0] != '\0';
	if (p.w.unified.dir[0] == '\0')
		return v1 ? "v1" : "none";
	return v1 ? "hybrid" : "v2";
}

/* "for d in A B" of the directories, or of where they are mounted. How much was
 * written; *out_v1: whether one is v1's. */
static size_t
each(struct places *p, bool mounts, char *out, size_t n, bool *out_v1)
{
	size_t at = 0;

	*out_v1 = false;
	out[0] = '\0';
	for (size_t i = 0; i < PLACES; i++) {
		bool seen = p->all[i]->dir[0] == '\0';

		for (size_t j = 0; j < i; j++)
			seen |= strcmp(p->all[j]->dir, p->all[i]->dir) == 0;
		if (seen || at >= n)
			continue;
		*out_v1 |= !is_v2(i);
		/* v2: a group with processes in it hands out nothing. */
		at += (size_t)snprintf(out + at, n - at, "%s%.*s",
		    at ? " " : "for d in ",
		    mounts || is_v2(i) ? (int)p->all[i]->mount_n : KN_CGROUP_PATH_MAX,
		    p->all[i]->dir);
	}
	return at;
}

void
kn_cgroup_grant(unsigned uid, int pid, char *out, size_t n)
{
	struct places p;
	bool v1;
	size_t at;

	find(&p);
	at = each(&p, false, out, n, &v1);
	if (at > 0 && at < n)
		at += (size_t)snprintf(out + at, n - at,
		    "; do %sg=$d/knit-%u; mkdir -p $g/shell && chown -R %u $g && echo "
		    "%d >$g/shell/cgroup.procs; done",
		    v1 ? "" : "echo +memory +pids >$d/cgroup.subtree_control; ", uid,
		    uid, pid);
	if (at >= n)
		out[0] = '\0';
}

void
kn_cgroup_remount(char *out, size_t n)
{
	struct places p;
	bool v1;
	size_t at;

	find(&p);
	at = each(&p, true, out, n, &v1);
	if (at > 0 && at < n)
		at += (size_t)snprintf(
		    out + at, n - at, "; do mount -o remount,bind,rw $d; done");
	if (at >= n)
		out[0] = '\0';
}
