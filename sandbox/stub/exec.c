/* sandbox/stub/exec.c: the task's process, from its birth to its program.
 *
 * The order of later steps is the order in which they stop being possible: descriptors
 * while they are open, Landlock before the descriptors go, limits and directory, the
 * search for the program, and the cell filter last, after which only execve is called.
 * Capabilities are gone already: init dropped and verified them.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "sandbox/stub/cell.h"
#include "sandbox/stub/sys.h"

static _Noreturn void
fail(struct kn_cell *c, enum kn_exec_step step, int r, const char *detail)
{
	c->step = step;
	c->sys = -r;
	c->detail = detail;
	kn_sys_exit(127);
}

/* When memory runs out the task goes, and never its keepers. A process's own file can
 * be opened only while its memory is dumpable, and ours is the stub's, which is not: it
 * is for these four calls, while nothing untrusted exists in the sandbox. Init and stub
 * keep their value, and until execve the kernel looks for no victim in a vfork. The
 * cell's own /proc cannot be written to, or the task would take the value back. */
static void
go_first(const struct kn_cell *c)
{
	int fd;

	(void)KN_SYS2(SYS_prctl, PR_SET_DUMPABLE, 1);
	fd = kn_sys_openat(c->proc_fd, "self/oom_score_adj", O_WRONLY | O_CLOEXEC, 0);
	if (fd >= 0)
		(void)kn_sys_write(fd, "1000", 4);
	(void)KN_SYS2(SYS_prctl, PR_SET_DUMPABLE, 0);
	kn_sys_close(fd);
}

static void
take_streams(struct kn_cell *c)
{
	long r = KN_SYS0(SYS_setsid);

	if (r <= 0) /* 0: the call was not made */
		fail(c, KN_EXEC_CELL, r < 0 ? (int)r : -EPERM, "session");
	for (int i = 0; i < 3; i++) {
		r = KN_SYS3(SYS_dup3, c->stdio[i], i, 0);
		if (r < 0)
			fail(c, KN_EXEC_CELL, (int)r, "streams");
	}
	if (!c->pty)
		return;
	r = KN_SYS3(SYS_ioctl, 0, TIOCSCTTY, 0);
	if (r < 0)
		fail(c, KN_EXEC_CELL, (int)r, "terminal");
}

/* Nothing beyond the standard streams is inherited, but what a resident is given. Its
 * image goes at execve. The last step before which other descriptors are needed: the
 * numbers may have been theirs. */
static void
keep_descriptors(struct kn_cell *c)
{
	int first_free = 3 + (int)c->kept_n, aside[KN_JOB_KEPT_MAX];
	long r = 0;

	/* Out of the way of one another first. */
	for (uint32_t i = 0; i < c->kept_n && r >= 0; i++) {
		r = KN_SYS3(SYS_fcntl, c->kept[i], F_DUPFD_CLOEXEC, first_free);
		aside[i] = (int)r;
	}
	for (uint32_t i = 0; i < c->kept_n && r >= 0; i++)
		r = KN_SYS3(SYS_dup3, aside[i], 3 + (int)i, i == 0 ? O_CLOEXEC : 0);
	if (r < 0)
		fail(c, KN_EXEC_CELL, (int)r, "descriptors");
	r = KN_SYS3(SYS_close_range, first_free, ~0u, 0);
	if (r < 0)
		fail(c, KN_EXEC_WALL, (int)r, "close descriptors");
}

static void
set_limits(struct kn_cell *c)
{
	for (uint32_t i = 0; i < c->rlimit_n; i++) {
		struct rlimit l = { c->rlimits[i].value, c->rlimits[i].value };
		long r = KN_SYS4(SYS_prlimit64, 0, c->rlimits[i].resource, &l, NULL);

		if (r < 0)
			fail(c, KN_EXEC_LIMITS, (int)r, "resource limits");
	}
}

/* ---- finding the program ---- */

/* 0 if path is a regular file that may be executed, else why not. */
static int
look_at(const char *path)
{
	struct stat st;
	int r = kn_sys_stat(AT_FDCWD, path, &st, 0);

	if (r < 0)
		return r;
	if (!S_ISREG(st.st_mode))
		return -EACCES; /* as execve says of a directory */
	return (int)KN_SYS3(SYS_faccessat, AT_FDCWD, path, 1 /* X_OK */);
}

static bool
is_absent(int r)
{
	return r == -ENOENT || r == -ENOTDIR;
}

static const char *
search_path(const struct kn_cell *c)
{
	for (const char *const *e = c->env; *e; e++)
		if (!strncmp(*e, "PATH=", 5))
			return *e + 5;
	return "/usr/local/bin:/usr/bin:/bin"; /* as execvp does without one */
}

/* The first executable file of that name along PATH. A file that is there but may not
 * be executed is remembered, and named if nothing better comes, as shells do. */
static int
search(struct kn_cell *c, const char *name)
{
	const char *dir = search_path(c);
	size_t name_n = strlen(name);
	int found = -ENOENT;

	if (name_n == 0)
		return -ENOENT;
	for (;;) {
		size_t n = strcspn(dir, ":");
		size_t at = n;
		int r = -ENAMETOOLONG;

		if (n + name_n + 3 <= sizeof c->path) {
			memcpy(c->path, dir, n);
			if (n == 0) /* an empty element is the current directory */
				c->path[at++] = '.';
			c->path[at++] = '/';
			memcpy(c->path + at, name, name_n + 1);
			r = look_at(c->path);
		}
		if (r == 0)
			return 0;
		if (!is_absent(r) && r != -ENAMETOOLONG)
			found = r;
		if (dir[n] == '\0')
			return found;
		dir += n + 1;
	}
}

static const char *
find_program(struct kn_cell *c)
{
	const char *name = c->program ? c->program : c->argv[0];
	int r;

	if (c->kept_n > 0)
		return "/proc/self/fd/3";
	if (strchr(name, '/')) {
		r = look_at(name);
		if (r == 0)
			return name;
	} else {
		r = search(c, name);
		if (r == 0)
			return c->path;
	}
	if (is_absent(r))
		fail(c, KN_EXEC_LOOKUP, -ENOENT, name);
	fail(c, KN_EXEC_EXEC, r, name);
}

static void
enter_directory(struct kn_cell *c)
{
	int r = (int)KN_SYS1(SYS_chdir, c->cwd);

	if (r < 0)
		fail(c, KN_EXEC_CWD, r, c->cwd);
}

/* What the task is, with its interpreters, is executed also where the list of programs
 * (permissions.run) does not have it. It is looked for once more when all limits hold.
 * Of one that may not be, execve says so. */
static void
find_own(struct kn_cell *c, struct kn_programs *own)
{
	own->n = 0;
	if (!c->land->run_only)
		return;
	enter_directory(c);
	if (c->kept_n > 0)
		kn_programs_add_open(own, c->kept[0]);
	else
		(void)kn_programs_add(own, find_program(c));
}

void
kn_exec_task(void *cell)
{
	struct kn_cell *c = cell;
	struct kn_programs own;
	const char *program;
	int r;

	go_first(c);
	take_streams(c);
	find_own(c, &own);
	/* It is woken by who waits for it, on the same processor if calls are few: it
	 * then comes first, answers, and sleeps again before the other has to. */
	if (c->kept_n > 0)
		(void)kn_sys_short_turns();
	r = kn_wall_land_restrict(c->land, c->land_prepared, &own);
	if (r < 0)
		fail(c, KN_EXEC_WALL, r, "Landlock");
	keep_descriptors(c);
	set_limits(c);
	enter_directory(c);
	program = find_program(c);
	r = kn_wall_cell_filter(c->bpf, c->bpf_n);
	if (r < 0)
		fail(c, KN_EXEC_WALL, r, "seccomp");
	/* At the fourth only the cell's filter looks. */
	r = (int)KN_SYS4(SYS_execve, program, c->argv, c->env, c->land->exec_key);
	/* ENOENT here: the file is there, its interpreter is not. */
	fail(c, KN_EXEC_EXEC, r, program);
}
