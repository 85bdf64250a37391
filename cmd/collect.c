/* cmd/collect.c: see collect.h. */
#include "cmd/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "ipc/err.h"
#include "ipc/fd.h"

static const char overwritten[] =
    "nothing is overwritten: give another directory, or empty this one";

/* What a task would find out only after it has run. A pattern may match anything, and
 * of a name that is a directory's the files may be meant. */
static int
check(int fd, const char *dir, const char *const *names, size_t n, struct kn_err *e)
{
	struct stat st;

	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0) {
		kn_err_sys(e, KN_EK_USAGE, "--out-dir: write to %s", dir);
		kn_opt_hint_file(e, dir);
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		if (strpbrk(names[i], "*?[\\") ||
		    fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    S_ISDIR(st.st_mode))
			continue;
		return kn_opt_refuse(e, overwritten,
		    "--out-dir: %.100s is in %.100s already", names[i], dir);
	}
	return 0;
}

int
kn_collect_open(const char *dir, const char *const *names, size_t n, struct kn_err *e)
{
	int fd = -1;

	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		kn_err_sys(e, KN_EK_USAGE, "--out-dir: make %s", dir);
	else if ((fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		kn_err_sys(e, KN_EK_USAGE, "--out-dir: open %s", dir);
	if (fd < 0)
		kn_opt_hint_file(e, dir);
	else if (check(fd, dir, names, n, e) < 0)
		kn_fd_close(&fd);
	return fd;
}

void
kn_collect_tell(const struct knit_outcome *o, const struct kn_voice *v)
{
	bool told = false;

	for (size_t i = 0; i < o->file_n; i++) {
		const struct knit_file *f = knit_outcome_file(o, i);

		if (f->name[0] != '/')
			continue;
		kn_say(v, "out: %s: %s", f->name, f->refused ? f->refused : "");
		told = true;
	}
	if (told && o->error[0])
		kn_say(v, "%s", o->error);
	if (o->out_dir && !v->quiet)
		kn_say(v, "out: %llu file%s in %s", (unsigned long long)o->out_files,
		    o->out_files == 1 ? "" : "s", o->out_dir);
}

unsigned
kn_collect(int dir, const struct knit_outcome *o, const struct kn_voice *v)
{
	unsigned failed = 0;

	for (size_t i = 0; i < o->file_n; i++) {
		const struct knit_file *f = knit_outcome_file(o, i);
		struct knit_error err = KNIT_ERROR_NONE;
		struct kn_err e = { 0 };

		if (f->name[0] == '/') /* of a copy: kn_collect_tell() */
			continue;
		if (f->refused) {
			kn_say(v, "--collect: %s: %s", f->name, f->refused);
			if (strcmp(f->refused, "not a regular file") == 0 && !v->quiet)
				kn_say_hint(v, "of a directory its files are named: "
					       "--collect 'out/*'");
			continue;
		}
		if (knit_outcome_save(o, i, dir, &err) < 0) {
			kn_say_take(&e, &err);
			kn_err_wrap(&e, "--out-dir");
			if (e.sys == EEXIST)
				kn_err_hint(&e, "%s", overwritten);
			kn_say_error(v, &e);
			failed++;
		}
	}
	/* No failure, but not what somebody who names files expects. */
	if (o->file_n == 0 && o->started && !v->quiet)
		kn_say(v, "--collect: nothing below /task matches");
	return failed;
}
