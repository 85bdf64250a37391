/* cmd/collect.c: see collect.h. */
#include "cmd/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/cmd.h"
#include "cmd/report.h"
#include "ipc/err.h"
#include "supervisor/beneath.h"
#include "supervisor/task_line.h"

int
kn_collect_open(const char *dir, struct kn_err *e)
{
	int fd;

	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		return kn_err_sys(e, KN_EK_USAGE, "--out-dir: make %s", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return kn_err_sys(e, KN_EK_USAGE, "--out-dir: open %s", dir);
	return fd;
}

unsigned
kn_collect(int dir, const struct kn_outcome *o, const struct kn_voice *v)
{
	unsigned failed = 0, found = 0;

	for (size_t i = 0; i < o->file_n; i++) {
		const struct kn_outcome_file *f = &o->files[i];
		enum kn_file_refusal refusal = f->refusal;
		struct kn_err e = { 0 };

		if (!(f->what & KN_FILE_COLLECT))
			continue;
		found++;
		if (refusal == KN_FILE_OK && !kn_line_path_ok(f->name, strlen(f->name)))
			refusal = KN_FILE_BAD_NAME;
		if (refusal != KN_FILE_OK || f->fd < 0) {
			kn_say(v, "--collect: %s: %s", f->name,
			    kn_report_refusal(refusal));
			continue;
		}
		if (kn_beneath_write(
			dir, f->name, f->fd, f->bytes, f->mode, false, &e) < 0) {
			kn_err_wrap(&e, "--out-dir");
			if (e.sys == EEXIST)
				kn_err_hint(&e, "nothing is overwritten: give another "
						"directory, or empty this one");
			kn_say_error(v, &e);
			failed++;
		}
	}
	/* No failure, but not what somebody who names files expects. */
	if (found == 0 && o->started && !v->quiet)
		kn_say(v, "--collect: nothing below /task matches");
	return failed;
}
