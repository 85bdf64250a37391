/* supervisor/batch_files.c: files of a task that come from elsewhere ("path" below a
 * root of the policy, "from" an earlier task), and what a task keeps for later ones.
 *
 * Descriptors are opened only when a task is about to be handed over, so that a long
 * queue of waiting tasks holds none; and while others run, none of the last ones, which
 * a worker that is to be started needs.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/fd.h"
#include "sandbox/policy.h"
#include "supervisor/batch_int.h"
#include "supervisor/batch_keep.h"
#include "supervisor/beneath.h"
#include "supervisor/task_line_json.h"

enum { LAUNCH_FDS = 32 }; /* open beside the pool's while one goes on */

/* Resolve "." and ".." by their letters: below a root no link is followed, so the
 * letters say what the kernel would. Absolute path in, out holds the result. */
static bool
normalise(const char *path, char *out, size_t out_n)
{
	size_t n = 0;

	for (const char *s = path; *s;) {
		size_t len;

		while (*s == '/')
			s++;
		len = strcspn(s, "/");
		if (len == 2 && s[0] == '.' && s[1] == '.') {
			while (n > 0 && out[--n] != '/')
				;
		} else if (len > 0 && !(len == 1 && s[0] == '.')) {
			if (n + len + 2 > out_n)
				return false;
			out[n++] = '/';
			memcpy(out + n, s, len);
			n += len;
		}
		s += len;
	}
	out[n] = '\0';
	return true;
}

static bool
absolute(const char *path, char *out, size_t out_n)
{
	char cwd[PATH_MAX], *joined;
	bool ok;

	if (path[0] == '/')
		return normalise(path, out, out_n);
	if (!getcwd(cwd, sizeof cwd) || asprintf(&joined, "%s/%s", cwd, path) < 0)
		return false;
	ok = normalise(joined, out, out_n);
	free(joined);
	return ok;
}

/* What of path lies below root, or NULL. */
static const char *
below(const char *path, const char *root)
{
	size_t n = strlen(root);

	while (n > 0 && root[n - 1] == '/')
		n--;
	if (strncmp(path, root, n) != 0 || path[n] != '/' || path[n + 1] == '\0')
		return NULL;
	return path + n + 1;
}

static int
root_fd(struct kn_batch *b, size_t i, struct kn_err *e)
{
	const char *root = b->o.policy->fs.task_paths[i];

	if (!b->roots) {
		b->roots = malloc(b->o.policy->fs.task_path_n * sizeof *b->roots);
		if (!b->roots)
			return kn_err_set(e, KN_EK_HOST, "out of memory");
		for (size_t j = 0; j < b->o.policy->fs.task_path_n; j++)
			b->roots[j] = -1;
	}
	if (b->roots[i] < 0)
		b->roots[i] = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (b->roots[i] < 0)
		return kn_err_sys(e, KN_EK_TASK, "open %s", root);
	return b->roots[i];
}

/* No mask stands between us and what is denied. By both names: a folder above the root
 * may be a link. */
static int
check_denied(const struct kn_policy *p, const char *full, int *fd_own, struct kn_err *e)
{
	char link[40], real[PATH_MAX];
	ssize_t n;

	if (p->fs.denied_n == 0)
		return 0;
	snprintf(link, sizeof link, "/proc/self/fd/%d", *fd_own);
	n = readlink(link, real, sizeof real - 1);
	real[n > 0 ? n : 0] = '\0';
	if (n > 0 && !kn_policy_denies(p, real) && !kn_policy_denies(p, full))
		return 0;
	kn_fd_close(fd_own);
	return kn_err_set(e, KN_EK_TASK, "the policy denies it (/filesystem/deny)");
}

static int
open_path(struct kn_batch *b, const char *path, int *out_fd, struct stat *st,
    struct kn_err *e)
{
	const struct kn_policy *p = b->o.policy;
	char full[PATH_MAX];

	if (!absolute(path, full, sizeof full))
		return kn_err_set(e, KN_EK_TASK, "path is too long");
	for (size_t i = 0; i < p->fs.task_path_n; i++) {
		const char *rel = below(full, p->fs.task_paths[i]);
		int root = rel ? root_fd(b, i, e) : -1;

		if (!rel)
			continue;
		if (root < 0 || kn_beneath_open(root, rel, out_fd, st, e) < 0)
			return -1;
		return check_denied(p, full, out_fd, e);
	}
	return kn_err_set(e, KN_EK_TASK,
	    "not below a directory that the policy allows "
	    "(/filesystem/task_paths)");
}

static int
open_source(struct kn_batch *b, struct kn_node *n, const struct kn_line_source *s,
    enum kn_verdict *out_v, struct kn_err *e)
{
	struct kn_task_file *f = &n->task->files[s->file];
	char at[KN_LINE_POINTER_MAX];
	struct stat st;
	uint32_t mode = 0;
	int r;

	if (n->task->call.name)
		at[0] = '\0';
	else
		kn_line_pointer(at, sizeof at, "/files", f->path);
	if (s->path) {
		*out_v = KN_V_INVALID;
		r = open_path(b, s->path, &f->fd, &st, e);
		mode = r == 0 ? st.st_mode & 0777 : 0;
		if (r < 0)
			return kn_err_wrap(e, "%s/path", at);
	} else {
		*out_v = KN_V_SKIPPED;
		r = kn_keep_get(b->keep, s->from, s->name, &f->fd, &mode, e);
		if (r < 0)
			return kn_err_wrap(e, "%s/from: not kept", at);
	}
	if (!s->mode_given)
		f->mode = mode;
	return 0;
}

/* A call's argument is the file's content. */
static int
read_argument(
    struct kn_batch *b, struct kn_task *t, enum kn_verdict *out_v, struct kn_err *e)
{
	uint64_t max = b->o.policy->payload_max;
	struct kn_task_file *f = &t->files[0];
	char *bytes;

	*out_v = KN_V_TOO_LARGE;
	if (kn_fd_read_all(
		f->fd, max ? (size_t)max : SIZE_MAX / 2, &bytes, &t->call.arg.n, e) < 0)
		return kn_err_wrap(e, "/path: (KNT_ERROR_3)");
	t->call.arg.bytes = bytes;
	kn_fd_close(&f->fd);
	free(t->files);
	t->files = NULL;
	t->file_n = 0;
	return 0;
}

/* The kernel gives the lowest that is free, so all below this one are in use. */
static bool
is_scarce(int fd)
{
	struct rlimit now;

	return getrlimit(RLIMIT_NOFILE, &now) == 0 &&
	       (rlim_t)fd + LAUNCH_FDS >= now.rlim_cur;
}

int
kn_batch_files(
    struct kn_batch *b, struct kn_node *n, enum kn_verdict *out_v, struct kn_err *e)
{
	bool alone = b->running_n == 0 && !(b->ops.others && b->ops.others(b->ops.ctx));

	if (n->task->call.name && n->task->file_n == 0)
		return 0; /* none, or read already */
	for (size_t i = 0; i < n->line.source_n; i++) {
		const struct kn_line_source *s = &n->line.sources[i];
		struct kn_task_file *f = &n->task->files[s->file];

		if (f->fd >= 0 || open_source(b, n, s, out_v, e) == 0) {
			if (alone || !is_scarce(f->fd))
				continue;
		} else if (alone || (e->sys != EMFILE && e->sys != ENFILE)) {
			return -1;
		}
		for (size_t j = 0; j < n->task->file_n; j++)
			kn_fd_close(&n->task->files[j].fd);
		return 1;
	}
	return n->task->call.name && n->task->file_n > 0
		   ? read_argument(b, n->task, out_v, e)
		   : 0;
}

/* ---- what a task leaves ---- */

static void
note(struct kn_outcome *o, const char *text)
{
	size_t n = strlen(o->error);

	snprintf(o->error + n, sizeof o->error - n, "%s%s", n > 0 ? "; " : "", text);
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

/* The name is the worker's word: only one that the task was asked for counts. */
static bool
store_one(struct kn_batch *b, const struct kn_node *n, struct kn_outcome_file *f,
    struct kn_outcome *o)
{
	struct kn_err e = { 0 };

	if (f->refusal != KN_FILE_OK || f->fd < 0 || !asked_to_keep(n->task, f->name))
		return false;
	if (kn_keep_put(b->keep, n->line.id, f->name, f->fd, f->bytes, f->mode, &e) ==
	    0)
		return true;
	kn_err_wrap(&e, "keep");
	note(o, e.msg);
	return false;
}

void
kn_batch_store(struct kn_batch *b, const struct kn_node *n, struct kn_outcome *o)
{
	const struct kn_task *t = n->task;
	bool *have = t->keep_n ? calloc(t->keep_n, sizeof *have) : NULL;

	for (size_t i = 0; i < o->file_n; i++) {
		struct kn_outcome_file *f = &o->files[i];

		if (!(f->what & KN_FILE_KEEP) || !store_one(b, n, f, o))
			continue;
		for (size_t j = 0; have && j < t->keep_n; j++)
			have[j] |= strcmp(t->keep[j], f->name) == 0;
	}
	for (size_t j = 0; have && j < t->keep_n; j++) {
		if (!have[j])
			kn_keep_forget(b->keep, n->line.id, t->keep[j]);
	}
	free(have);
}

void
kn_batch_files_close(struct kn_batch *b)
{
	for (size_t i = 0; b->roots && i < b->o.policy->fs.task_path_n; i++)
		kn_fd_close(&b->roots[i]);
	free(b->roots);
	b->roots = NULL;
}
