/* supervisor/out.c: what a task changed in its copy of a directory, brought out.
 *
 * The files came as descriptors that were looked at (files.c). They are written below a
 * folder that did not exist before, beneath it and following no link, so that nothing
 * on the machine is ever overwritten.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/lack.h"
#include "sandbox/policy.h"
#include "supervisor/batch_keep.h"
#include "supervisor/beneath.h"
#include "supervisor/inner.h"

enum { TRIES = 1000 };

/* Named after the task; after that, counted on. -1: errno. */
static int
make_folder(int dir, const char *id, char *out, size_t n)
{
	char name[KN_KEEP_NAME_MAX];
	int fd, no;

	kn_keep_name(id, name);
	for (int i = 1; i <= TRIES; i++) {
		if (i == 1)
			snprintf(out, n, "%s", name);
		else
			snprintf(out, n, "%s.%d", name, i);
		if (mkdirat(dir, out, 0777) == 0) {
			fd = kn_beneath_dir(dir, out);
			no = errno;
			if (fd < 0)
				unlinkat(dir, out, AT_REMOVEDIR);
			errno = no;
			return fd;
		}
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

static void
note(struct kn_outcome *o, const char *text, const char *more)
{
	size_t n = strlen(o->error);

	snprintf(o->error + n, sizeof o->error - n, "%sout: %s%s", n > 0 ? "; " : "",
	    text, more);
}

/* Its name as the task knows it. NULL: no memory. */
static char *
name_inside(const char *at, const char *name)
{
	char *s;

	if (strcmp(name, ".") == 0)
		return strdup(at);
	return asprintf(&s, "%s/%s", at, name) < 0 ? NULL : s;
}

/* Whether it is there now. */
static bool
bring(int folder, struct kn_outcome_file *f, struct kn_outcome *o, bool *told)
{
	struct kn_err e = { 0 };

	if (f->refusal != KN_FILE_OK || f->fd < 0)
		return false;
	if (folder >= 0 &&
	    kn_beneath_write(folder, f->name, f->fd, f->bytes, f->mode, false, &e) == 0)
		return true;
	f->refusal = KN_FILE_UNWRITTEN;
	if (folder >= 0 && !*told)
		note(o, e.msg, "");
	*told = true;
	return false;
}

static bool
any(const struct kn_outcome *o)
{
	for (size_t i = 0; i < o->file_n; i++)
		if (o->files[i].what == KN_FILE_OUT && o->files[i].fd >= 0)
			return true;
	return false;
}

void
kn_out_bring(const struct kn_sup *s, const char *id, struct kn_outcome *o)
{
	char name[KN_KEEP_NAME_MAX + 8];
	KN_OWN_FD int folder = -1;
	size_t kept = 0;
	bool told = false;
	int dir = -1;
	const struct kn_mount *m = kn_launcher_out(s->launcher, &dir);

	if (!m)
		return;
	if (any(o)) {
		folder = make_folder(dir, id ? id : "job", name, sizeof name);
		if (folder < 0)
			note(o, strerror(errno), kn_lack_openat2_text(errno));
		else if (asprintf(&o->out_dir, "%s/%s", m->out, name) < 0)
			o->out_dir = NULL;
	}
	for (size_t i = 0; i < o->file_n; i++) {
		struct kn_outcome_file *f = &o->files[i];
		bool out = f->what == KN_FILE_OUT, brought;
		char *inside;

		brought = out && bring(folder, f, o, &told);
		if (brought) {
			o->out_files++;
			o->out_bytes += f->bytes;
		} else if (out && (inside = name_inside(m->at, f->name))) {
			free(f->name);
			f->name = inside;
		}
		if (out)
			kn_fd_close(&f->fd);
		if (brought)
			free(f->name);
		else
			o->files[kept++] = *f;
	}
	o->file_n = kept;
}
