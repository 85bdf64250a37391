/* supervisor/files.c: descriptors of files that a task hands back.
 *
 * The worker opened them; here they are hostile until shown otherwise: a read-only
 * descriptor of a regular file on a tmpfs (a FIFO would block the reader, a file of
 * another file system could be the host's), of a bounded size, with a name that stays
 * below the directory it will be put in. Anything else ends the worker.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "ipc/blob.h"
#include "ipc/fd.h"
#include "supervisor/inner.h"
#include "supervisor/ledger.h"

enum { NAME_MAX_BYTES = 4095, COMPONENT_MAX = 255 };

/* Relative, no "..", no ".", no empty component. */
static bool
name_ok(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > NAME_MAX_BYTES)
		return false;
	for (const char *p = name;; p++) {
		size_t len = strcspn(p, "/");

		if (len == 0 || len > COMPONENT_MAX || (len == 1 && p[0] == '.') ||
		    (len == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += len;
		if (!*p)
			return true;
	}
}

static bool
asked_to_keep(const struct kn_task *t, const char *name)
{
	for (size_t i = 0; i < t->keep_n; i++) {
		if (strcmp(t->keep[i], name) == 0)
			return true;
	}
	return false;
}

/* A thousand names of 4 KB that differ at their ends are gigabytes of comparing: their
 * prints differ at once, and nobody knows the pool's id who could make them meet. */
static uint64_t
print_of(const struct kn_entry *e, const char *name)
{
	uint64_t both[2];

	kn_ledger_hash(e->sup->pool_id, name, strlen(name), both);
	return both[0];
}

static bool
seen(const struct kn_entry *e, const char *name, uint64_t print, uint32_t what)
{
	for (size_t i = 0; i < e->file_n; i++) {
		const struct kn_outcome_file *f = &e->files[i];

		if (f->print == print && (f->what & what) && strcmp(f->name, name) == 0)
			return true;
	}
	return false;
}

/* Where a task writes, and nobody else. */
static bool
is_of_a_task(const struct kn_entry *e, const struct statfs *fs, const struct stat *st)
{
	uint64_t dev;
	uint32_t uid;

	if (!kn_launcher_files(e->sup->launcher, (uint32_t)e->worker, &dev, &uid))
		return fs->f_type == TMPFS_MAGIC;
	return st->st_dev == dev && st->st_uid == uid;
}

static const char *
check_fd(struct kn_entry *e, int fd, struct kn_outcome_file *f)
{
	uint64_t room = KN_FILES_BYTES_MAX - e->file_bytes;
	struct stat st;
	struct statfs fs;
	int flags = fcntl(fd, F_GETFL);

	/* What cannot be looked at is not handed on; it is no lie of the worker's. */
	if (flags < 0 || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0) {
		f->refusal = KN_FILE_IO;
		return NULL;
	}
	if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_PATH))
		return "files.mode";
	if (!S_ISREG(st.st_mode))
		return "files.type";
	if (!is_of_a_task(e, &fs, &st))
		return "files.filesystem";
	/* The stub keeps to these bounds, an honest one; what is read out by us must be
	 * bounded whatever it says. */
	if (st.st_size < 0 || (uint64_t)st.st_size > KN_FILE_BYTES_MAX ||
	    (uint64_t)st.st_size > room) {
		f->refusal = KN_FILE_TOO_LARGE;
		return NULL;
	}
	f->bytes = (uint64_t)st.st_size;
	e->file_bytes += f->bytes;
	f->mode = st.st_mode & 0777;
	return NULL;
}

static struct kn_outcome_file *
add(struct kn_entry *e)
{
	if (e->file_n == e->file_room) {
		size_t room = e->file_room ? 2 * e->file_room : 8;
		struct kn_outcome_file *v = realloc(e->files, room * sizeof *v);

		if (!v)
			return NULL;
		e->files = v;
		e->file_room = room;
	}
	memset(&e->files[e->file_n], 0, sizeof e->files[0]);
	e->files[e->file_n].fd = -1;
	return &e->files[e->file_n];
}

/* One record. Its descriptor, if it has one, is *fd_own. */
static const char *
take_one(struct kn_entry *e, struct kn_blob_r *r, int *fds_own, int fd_n, bool cut,
    int *fd_at)
{
	const char *name = kn_blob_get_str(r), *bad;
	uint32_t what = kn_blob_get_u32(r), refusal = kn_blob_get_u32(r);
	struct kn_outcome_file *f;
	uint64_t print;
	int dir;

	if (r->bad)
		return "files.body";
	if (what != KN_FILE_OUT &&
	    (what == 0 || (what & ~(uint32_t)(KN_FILE_KEEP | KN_FILE_COLLECT))))
		return "files.what";
	if (what == KN_FILE_OUT && !kn_launcher_out(e->sup->launcher, &dir))
		return "files.what";
	if (refusal >= KN_FILE_REFUSAL_N)
		return "files.refusal";
	/* a refusal may name a pattern or a bad name; it only stands in a message */
	if (refusal == KN_FILE_OK && !name_ok(name))
		return "files.name";
	if ((what & KN_FILE_KEEP) && !asked_to_keep(e->task, name))
		return "files.name";
	if ((what & KN_FILE_COLLECT) && e->task->collect_n == 0)
		return "files.what";
	print = print_of(e, name);
	if (seen(e, name, print, what))
		return "files.name";
	if (e->file_n >= KN_COLLECT_MAX)
		return "files.count";
	f = add(e);
	if (!f || !(f->name = strdup(name)))
		return "files.memory";
	e->file_n++;
	f->what = what;
	f->print = print;
	f->refusal = (enum kn_file_refusal)refusal;
	if (refusal != KN_FILE_OK)
		return NULL;
	if (*fd_at >= fd_n && cut)
		f->refusal = KN_FILE_IO;
	if (*fd_at >= fd_n)
		return cut ? NULL : "files.descriptors";
	bad = check_fd(e, fds_own[*fd_at], f);
	if (!bad && f->refusal == KN_FILE_OK)
		f->fd = kn_fd_take(&fds_own[*fd_at]);
	(*fd_at)++;
	return bad;
}

int
kn_files_take(struct kn_entry *e, const uint8_t *body, size_t n, int *fds_own, int fd_n,
    bool cut, const char **out_field)
{
	struct kn_blob_r r = { .p = body, .n = n };
	const char *bad = n ? NULL : "files.body"; /* empty ones could come for ever */
	int at = 0;

	while (!bad && r.at < r.n)
		bad = take_one(e, &r, fds_own, fd_n, cut, &at);
	if (!bad && at != fd_n)
		bad = "files.descriptors";
	for (int i = 0; i < fd_n; i++)
		kn_fd_close(&fds_own[i]);
	if (!bad)
		return 0;
	*out_field = bad;
	return -1;
}

void
kn_files_drop(struct kn_entry *e)
{
	for (size_t i = 0; i < e->file_n; i++) {
		free(e->files[i].name);
		kn_fd_close(&e->files[i].fd);
	}
	free(e->files);
	e->files = NULL;
	e->file_n = e->file_room = 0;
	e->file_bytes = 0;
}
