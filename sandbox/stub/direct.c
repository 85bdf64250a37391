/* sandbox/stub/direct.c: a worker without namespaces (sandbox/stub/direct.h). */
#include "sandbox/stub/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "ipc/clock.h"
#include "ipc/control.h"
#include "ipc/job.h"
#include "sandbox/stub/cell.h"
#include "sandbox/stub/children.h"
#include "sandbox/stub/look.h"
#include "sandbox/stub/rmtree.h"
#include "sandbox/stub/sys.h"
#include "sandbox/stub/text.h"
#include "sandbox/stub/wall.h"

enum { DIR_MODE = 0700, DRAIN_NS = 1000 * 1000 };

static struct kn_rmtree tree;

/* ---- the stub ---- */

/* What comes after `from` in a path, if it is that or below it. */
static const char *
rest_of(const char *path, const char *from)
{
	size_t n = strlen(from);

	if (strncmp(path, from, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	return path + n;
}

static int
name_dirs(struct kn_direct *d)
{
	struct kn_text task = { d->task, sizeof d->task, 0 };
	struct kn_text tmp = { d->tmp, sizeof d->tmp, 0 };

	if (d->place[0] != '/' || strlen(d->place) + sizeof "/task" > sizeof d->task)
		return -ENAMETOOLONG;
	kn_text_str(&task, d->place);
	kn_text_str(&task, "/task");
	kn_text_str(&tmp, d->place);
	kn_text_str(&tmp, "/tmp");
	return 0;
}

/* Who must not be reached is the supervisor, our parent. */
static int
enter_domain(struct kn_direct *d)
{
	int r;

	d->scope_fd = kn_wall_land_scopes();
	if (d->scope_fd < 0)
		return d->scope_fd == -EOPNOTSUPP ? 0 : d->scope_fd;
	r = kn_wall_land_enter(d->scope_fd);
	if (r == 0 && kn_sys_kill((int)KN_SYS0(SYS_getppid), 0) != -EPERM)
		r = -EPERM;
	d->scoped = r == 0;
	return r;
}

int
kn_direct_enter(struct kn_direct *d, const char **out_what)
{
	int r;

	*out_what = d->place;
	r = name_dirs(d);
	if (r < 0)
		return r;
	d->stub_pid = (int)KN_SYS0(SYS_getpid);
	d->place_fd = kn_sys_openat(
	    AT_FDCWD, d->place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (d->place_fd < 0)
		return d->place_fd;
	r = kn_direct_clear(d);
	if (r < 0)
		return r;
	/* Also where something that starts launchers has stayed (launcher.prefix). */
	*out_what = "death with the parent";
	r = (int)KN_SYS5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (r < 0)
		return r;
	*out_what = "subreaper";
	r = (int)KN_SYS5(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (r < 0)
		return r;
	*out_what = "no_new_privs";
	r = kn_wall_no_new_privs();
	if (r < 0)
		return r;
	*out_what = "the scope of signals";
	r = enter_domain(d);
	if (r < 0 || d->scoped)
		return r;
	*out_what = "no list of children (CONFIG_PROC_CHILDREN) in /proc";
	return kn_children_kill();
}

int
kn_direct_caps(void)
{
	return kn_wall_cell_caps();
}

/* ---- rules ---- */

static int
add_rule(struct kn_land *l, const char *at, enum kn_land_what what, int fd)
{
	struct stat st;
	int r;

	if (l->rule_n == KN_LAND_RULES_MAX)
		return -E2BIG;
	if (fd < 0)
		fd = kn_sys_openat(AT_FDCWD, at, O_PATH | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	r = kn_sys_stat(fd, "", &st, AT_EMPTY_PATH);
	if (r < 0) {
		kn_sys_close(fd);
		return r;
	}
	l->rule[l->rule_n++] =
	    (struct kn_land_rule){ fd, (uint8_t)what, S_ISDIR(st.st_mode) };
	return 0;
}

/* Keep its name if it is below /task or /tmp. */
static int
keep_shown(struct kn_direct *d, const char *at)
{
	size_t n = strlen(at) + 1;

	if (!rest_of(at, "/task") && !rest_of(at, "/tmp"))
		return 0;
	if (n > sizeof d->shown - d->shown_n)
		return -E2BIG;
	memcpy(d->shown + d->shown_n, at, n);
	d->shown_n += n;
	return 0;
}

static bool
is_shown(const struct kn_direct *d, const char *path)
{
	for (size_t at = 0; at < d->shown_n; at += strlen(d->shown + at) + 1)
		if (rest_of(path, d->shown + at))
			return true;
	return false;
}

/* What a bind is for: as root our uid is not the caller's, and nothing shows his files
 * as ours. */
static int
add_bind(struct kn_land *l, const struct kn_boot_bind *b)
{
	int fd = kn_sys_openat(AT_FDCWD, b->at, O_PATH | O_CLOEXEC, 0);
	struct stat st;
	int r = fd < 0 ? fd : kn_sys_stat(fd, "", &st, AT_EMPTY_PATH);

	if (r == 0 && b->check && (st.st_dev != b->dev || st.st_ino != b->ino))
		r = -ESTALE;
	if (r == 0 && b->check)
		r = (int)KN_SYS3(SYS_faccessat, AT_FDCWD, b->at,
		    4 /* R_OK */ | (b->writable ? 2 /* W_OK */ : 0));
	if (r < 0) {
		kn_sys_close(fd);
		/* Of the system's root, what is not there is done without. */
		return !b->check && (r == -ENOENT || r == -EACCES) ? 0 : r;
	}
	return add_rule(l, b->at, b->writable ? KN_LAND_WRITE : KN_LAND_READ, fd);
}

int
kn_direct_rules(struct kn_land *l, const struct kn_boot *b, struct kn_direct *d,
    const char **out_what)
{
	static const char *const nodes[] = { "/dev/null", "/dev/full", "/dev/random",
		"/dev/urandom", "/dev/tty" };
	int r = 0;

	l->abi = b->flags & KN_BOOT_LANDLOCK ? b->landlock_abi : 0;
	l->ready_fd = -1;
	l->direct = true;
	for (uint32_t i = 0; r == 0 && i < b->bind_n; i++) {
		*out_what = b->binds[i].at;
		r = keep_shown(d, b->binds[i].at);
		if (r == 0 && l->abi > 0)
			r = add_bind(l, &b->binds[i]);
	}
	if (r < 0 || l->abi == 0)
		return r;
	for (size_t i = 0; r == 0 && i < sizeof nodes / sizeof *nodes; i++) {
		*out_what = nodes[i];
		r = add_rule(l, nodes[i], KN_LAND_NODE, -1);
		if (r == -ENOENT)
			r = 0;
	}
	/* Who may write to it has shared mappings of it: memory that belongs to no
	 * process (kn_mounts_zeros()). */
	*out_what = "/dev/zero";
	if (r == 0)
		r = add_rule(l, "/dev/zero", KN_LAND_READ, -1);
	if (r == -ENOENT)
		r = 0;
	*out_what = "/proc";
	if (r == 0)
		r = add_rule(l, "/proc", KN_LAND_READ, -1);
	*out_what = d->place;
	if (r == 0)
		r = add_rule(l, d->place, KN_LAND_WRITE, -1);
	if (r == 0)
		kn_wall_land_prepare(l, 1);
	*out_what = "the rules";
	return r == 0 && l->ready_fd < 0 ? l->ready_fd : r;
}

/* ---- a task's directories ---- */

int
kn_direct_clear(struct kn_direct *d)
{
	return kn_rmtree_below(&tree, d->place_fd);
}

int
kn_direct_task_fs(struct kn_direct *d)
{
	int r = kn_sys_mkdirat(d->place_fd, "task", DIR_MODE);

	if (r == 0)
		r = kn_sys_mkdirat(d->place_fd, "tmp", DIR_MODE);
	return r < 0 ? r
		     : kn_sys_openat(d->place_fd, "task",
			   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

/* `before` (its first bytes), and a path as it is here: `before` itself if it is none
 * of those two. NULL: no room. */
static const char *
map(struct kn_direct *d, struct kn_text *t, const char *before, size_t before_n,
    const char *path)
{
	const char *rest = rest_of(path, "/task"), *to = d->task, *start;

	if (!rest) {
		rest = rest_of(path, "/tmp");
		to = d->tmp;
	}
	if (!rest || is_shown(d, path))
		return before;
	start = t->p + t->n;
	if (t->n + before_n + strlen(to) + strlen(rest) + 2 > t->cap)
		return NULL;
	memcpy(t->p + t->n, before, before_n);
	t->n += before_n;
	kn_text_str(t, to);
	kn_text_str(t, rest);
	t->n++; /* its end is the next one's beginning */
	return start;
}

static int
map_env(struct kn_direct *d, struct kn_text *t, const char *const *env)
{
	static const char tmpdir[] = "TMPDIR=";
	bool has_tmp = false;
	size_t n = 0;

	for (; *env; env++) {
		const char *value = strchr(*env, '=');

		if (n + 2 >= KN_DIRECT_ENV)
			return -E2BIG;
		has_tmp |= strncmp(*env, tmpdir, sizeof tmpdir - 1) == 0;
		d->env[n] = *env;
		if (value)
			d->env[n] =
			    map(d, t, *env, (size_t)(value + 1 - *env), value + 1);
		if (!d->env[n++])
			return -E2BIG;
	}
	/* Programs that are told nothing would take /tmp, where they may not write. */
	if (!has_tmp && !(d->env[n++] = map(d, t, tmpdir, sizeof tmpdir - 1, "/tmp")))
		return -E2BIG;
	d->env[n] = NULL;
	return 0;
}

int
kn_direct_plan(struct kn_direct *d, const struct kn_job *j, struct kn_cell *c)
{
	struct kn_text t = { d->text, sizeof d->text, 0 };
	int r = map_env(d, &t, j->env);

	if (r < 0)
		return r;
	c->env = d->env;
	c->cwd = map(d, &t, j->cwd, 0, j->cwd);
	c->program = map(d, &t, j->argv[0], 0, j->argv[0]);
	c->direct = d;
	return c->cwd && c->program ? 0 : -E2BIG;
}

/* ---- processes ---- */

uint64_t
kn_direct_others(struct kn_direct *d, int proc_fd)
{
	static _Alignas(16) char dents[4096];
	uint64_t now_ns = kn_clock_now();
	uint32_t uid = (uint32_t)KN_SYS0(SYS_getuid);
	long n;

	if (d->others_ns && now_ns < d->others_ns + KN_S_NS)
		return d->others;
	d->others = 0;
	d->others_ns = now_ns;
	(void)KN_SYS3(SYS_lseek, proc_fd, 0, 0);
	while ((n = kn_sys_getdents(proc_fd, dents, sizeof dents)) > 0)
		for (long at = 0; at < n;) {
			const struct kn_sys_dirent *e = (const void *)(dents + at);

			at += e->reclen;
			if (e->name[0] >= '1' && e->name[0] <= '9')
				d->others += kn_look_threads_of(proc_fd, e->name, uid);
		}
	return d->others;
}

void
kn_direct_drain(const struct kn_direct *d)
{
	struct timespec t = { 0, DRAIN_NS };
	int status;

	for (;;) {
		int r = kn_sys_wait4(-1, &status, __WALL | WNOHANG, NULL);

		if (r == -ECHILD)
			return;
		if (r != 0)
			continue;
		if (d->scoped)
			(void)kn_sys_kill(-1, SIGKILL);
		else
			(void)kn_children_kill();
		(void)kn_sys_ppoll(NULL, 0, &t);
	}
}

int
kn_direct_init(const struct kn_direct *d, int on_death)
{
	/* No session: each is a group of its own to the scheduler, which lets a new one
	 * wait where the processors are taken, and the task makes one anyway. */
	int r = (int)KN_SYS2(SYS_setpgid, 0, 0);

	if (r >= 0)
		r = (int)KN_SYS5(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (r >= 0 && d->scoped)
		r = kn_wall_land_enter(d->scope_fd);
	if (r >= 0)
		r = (int)KN_SYS5(SYS_prctl, PR_SET_PDEATHSIG, on_death, 0, 0, 0);
	if (r >= 0 && (int)KN_SYS0(SYS_getppid) != d->stub_pid)
		r = -ESRCH;
	return r < 0 ? r : 0;
}
