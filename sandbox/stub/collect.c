/* sandbox/stub/collect.c: finding what a task left, and handing it over.
 *
 * The tree is hostile. It is walked depth first with a bound on depth, on names looked
 * at and on answers given; every open is beneath /task, follows nothing and cannot
 * block; only regular files are handed over, as read-only descriptors.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "ipc/blob.h"
#include "ipc/err.h"
#include "ipc/glob.h"
#include "sandbox/stub/files.h"
#include "sandbox/stub/overlay.h"
#include "sandbox/stub/send.h"
#include "sandbox/stub/sys.h"

enum {
	DEPTH_MAX = 32,
	NAMES_MAX = 200000, /* looked at for one task */
	SENT_MAX = 8192,    /* answers for one task, whatever the policy says */
	PATH_BYTES = 4096,
	DENTS_BYTES = 4096,
	BODY_ENTRY_MAX = PATH_BYTES + 16,
	/* A whole batch always fits one message. */
	BATCH_BYTES = KN_MSG_BODY_MAX - BODY_ENTRY_MAX,
};

struct batch {
	uint8_t bytes[sizeof(struct kn_msg) + KN_MSG_BODY_MAX];
	struct kn_blob_w body;
	int fds[KN_MSG_FDS_MAX];
	int fd_n;
};

struct walk {
	int root, sock, dead; /* dead: a negative errno of the socket */
	uint32_t task, gen;
	struct kn_collect_limits limits;
	uint64_t total, names;
	uint32_t sent;
	bool full; /* TOO_MANY was said */
	const char *pattern;
	char path[PATH_BYTES]; /* of the present place, relative to root */
	struct batch *batch;
	/* hashes of what was answered, by name and purpose: no answer is given twice */
	uint64_t *seen;
	uint32_t seen_n;
};

#define BENEATH \
	(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | \
	    RESOLVE_NO_XDEV)

/* ---- answers ---- */

static void
flush(struct walk *w)
{
	struct batch *b = w->batch;
	struct kn_msg m = { .type = KN_MSG_FILES,
		.task = w->task,
		.gen = w->gen,
		.bytes = (uint32_t)b->body.n };

	if (b->body.n == 0)
		return;
	memcpy(b->bytes, &m, sizeof m);
	if (w->dead == 0)
		w->dead = kn_send_fds(
		    w->sock, b->bytes, sizeof m + b->body.n, b->fds, b->fd_n);
	for (int i = 0; i < b->fd_n; i++)
		kn_sys_close(b->fds[i]);
	b->fd_n = 0;
	b->body.n = 0;
}

static uint64_t
hash_of(const char *name, uint32_t what)
{
	uint64_t h = 14695981039346656037u ^ what; /* FNV-1a */

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 1099511628211u;
	return h;
}

/* Two patterns may meet one file, a folder that cannot be read is met again by each of
 * them, a file may be called what a pattern is, and two bad names look alike when made
 * printable: whatever the reason, no answer is given twice, as the supervisor takes
 * that for a lie. */
static bool
is_answered(const struct walk *w, const char *name, uint32_t what)
{
	uint64_t h = hash_of(name, what);

	for (uint32_t i = 0; i < w->seen_n; i++)
		if (w->seen[i] == h)
			return true;
	return false;
}

static void
answer(struct walk *w, const char *name, uint32_t what, enum kn_file_refusal refusal,
    int fd_own)
{
	struct batch *b = w->batch;

	if (w->sent == SENT_MAX || is_answered(w, name, what)) {
		kn_sys_close(fd_own);
		return;
	}
	if (b->body.n > BATCH_BYTES || b->fd_n == KN_MSG_FDS_MAX)
		flush(w);
	kn_blob_str(&b->body, name);
	kn_blob_u32(&b->body, what);
	kn_blob_u32(&b->body, (uint32_t)refusal);
	if (fd_own >= 0)
		b->fds[b->fd_n++] = fd_own;
	w->seen[w->seen_n++] = hash_of(name, what);
	w->sent++;
}

/* Say once that there is more than may be handed over. */
static void
say_full(struct walk *w, uint32_t what)
{
	w->full = true;
	answer(w, w->pattern, what, KN_FILE_TOO_MANY, -1);
}

/* The last place is for saying that there is more. */
static bool
has_room(struct walk *w, uint32_t what)
{
	if (w->full)
		return false;
	if (w->sent + 1 < SENT_MAX && w->sent + 1 < w->limits.count_max)
		return true;
	say_full(w, what);
	return false;
}

/* What the task calls its files may not be fit for a record; then it is refused in a
 * form that is. What is kept was named by the caller. */
static bool
refuse_bad_name(struct walk *w, const char *name, uint32_t what)
{
	char shown[PATH_BYTES];
	int n = (int)strlen(name);

	if (what == KN_FILE_KEEP ||
	    (kn_err_printable(shown, sizeof shown, name, n) == n &&
		!memcmp(shown, name, (size_t)n)))
		return false;
	answer(w, shown, what, KN_FILE_BAD_NAME, -1);
	return true;
}

static enum kn_file_refusal
refusal_of(int r)
{
	if (r == -ENOENT || r == -ENOTDIR)
		return KN_FILE_MISSING;
	if (r == -ELOOP)
		return KN_FILE_SYMLINK;
	if (r == -ENAMETOOLONG)
		return KN_FILE_TOO_DEEP;
	if (r == -ENXIO) /* a socket, or a pipe that nobody writes */
		return KN_FILE_NOT_REGULAR;
	return KN_FILE_IO;
}

/* Open path beneath root and answer. at: a directory descriptor and a name in it, the
 * same file as w->path. quiet_dirs: what a wildcard met need not be said. */
static void
offer(struct walk *w, int dir, const char *at, const char *name, uint32_t what,
    bool quiet_dirs)
{
	struct open_how how = {
		.flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
		.resolve = BENEATH,
	};
	struct stat st;
	int fd;

	if (is_answered(w, name, what) || !has_room(w, what) ||
	    refuse_bad_name(w, name, what))
		return;
	fd = kn_sys_openat2(dir, at, &how);
	if (fd < 0) {
		answer(w, name, what, refusal_of(fd), -1);
		return;
	}
	if (kn_sys_stat(fd, "", &st, AT_EMPTY_PATH) < 0) {
		answer(w, name, what, KN_FILE_IO, -1);
	} else if (!S_ISREG(st.st_mode)) {
		if (!quiet_dirs || !S_ISDIR(st.st_mode))
			answer(w, name, what, KN_FILE_NOT_REGULAR, -1);
	} else if ((uint64_t)st.st_size > w->limits.file_max ||
		   (uint64_t)st.st_size > w->limits.total_max - w->total) {
		answer(w, name, what, KN_FILE_TOO_LARGE, -1);
	} else {
		w->total += (uint64_t)st.st_size;
		answer(w, name, what, KN_FILE_OK, fd);
		return;
	}
	kn_sys_close(fd);
}

/* ---- the walk ---- */

static size_t
component(const char *pattern)
{
	return strcspn(pattern, "/");
}

static bool
is_deep_star(const char *pattern, size_t n)
{
	return n == 2 && pattern[0] == '*' && pattern[1] == '*';
}

static void walk_dir(
    struct walk *w, int dir, size_t path_n, const char *pattern, int depth);

static int
open_dir(int dir, const char *name)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = BENEATH,
	};

	return kn_sys_openat2(dir, name, &how);
}

static void
enter(struct walk *w, int dir, const char *name, size_t path_n, const char *pattern,
    int depth)
{
	int fd = open_dir(dir, name);

	if (fd >= 0)
		walk_dir(w, fd, path_n, pattern, depth + 1);
	else if (fd != -ENOTDIR && fd != -ELOOP && fd != -ENOENT &&
		 has_room(w, KN_FILE_COLLECT) &&
		 !refuse_bad_name(w, w->path, KN_FILE_COLLECT))
		answer(w, w->path, KN_FILE_COLLECT, KN_FILE_IO, -1);
	kn_sys_close(fd);
}

/* One name of a folder against the rest of the pattern. */
static void
visit(struct walk *w, int dir, const char *name, size_t path_n, const char *pattern,
    int depth)
{
	size_t n = component(pattern), name_n = strlen(name);
	bool last = pattern[n] == '\0';
	size_t at = path_n + (path_n > 0);

	if (at + name_n >= sizeof w->path)
		return;
	if (path_n > 0)
		w->path[path_n] = '/';
	memcpy(w->path + at, name, name_n + 1);
	at += name_n;
	if (is_deep_star(pattern, n)) {
		/* Any folder here keeps the double star; no depth at all is tried by
		 * walk_dir. Hidden folders are for patterns that name them. */
		if (name[0] != '.')
			enter(w, dir, name, at, pattern, depth);
		if (last && name[0] != '.')
			offer(w, dir, name, w->path, KN_FILE_COLLECT, true);
	} else if (kn_glob_match(pattern, n, name)) {
		if (!last)
			enter(w, dir, name, at, pattern + n + 1, depth);
		else
			offer(w, dir, name, w->path, KN_FILE_COLLECT,
			    kn_glob_is_pattern(pattern, n));
	}
}

static _Alignas(16) char dents[DEPTH_MAX][DENTS_BYTES];

static void
walk_dir(struct walk *w, int dir, size_t path_n, const char *pattern, int depth)
{
	size_t n = component(pattern);
	long got;

	if (depth >= DEPTH_MAX || w->full || w->dead)
		return;
	if (is_deep_star(pattern, n) && pattern[n] == '/') {
		int again = open_dir(dir, ".");

		if (again >= 0)
			walk_dir(w, again, path_n, pattern + n + 1, depth + 1);
		kn_sys_close(again);
	}
	while ((got = kn_sys_getdents(dir, dents[depth], DENTS_BYTES)) > 0) {
		for (long at = 0; at < got;) {
			const struct kn_sys_dirent *d =
			    (const void *)(dents[depth] + at);

			at += d->reclen;
			if (!strcmp(d->name, ".") || !strcmp(d->name, ".."))
				continue;
			if (w->names++ >= NAMES_MAX && !w->full)
				say_full(w, KN_FILE_COLLECT);
			if (w->full || w->dead)
				return;
			visit(w, dir, d->name, path_n, pattern, depth);
		}
	}
}

static void
collect_pattern(struct walk *w, const char *pattern)
{
	int fd;

	w->pattern = pattern;
	if (!kn_glob_is_pattern(pattern, strlen(pattern))) {
		offer(w, w->root, pattern, pattern, KN_FILE_COLLECT, false);
		return;
	}
	fd = open_dir(w->root, ".");
	if (fd >= 0)
		walk_dir(w, fd, 0, pattern, 0);
	kn_sys_close(fd);
}

/* ---- all of a layer ---- */

static void walk_layer(struct walk *w, int dir, size_t path_n, int depth);

/* What is there by no name that can be opened: told, if it has one that can be said. */
static void
leave(struct walk *w, enum kn_file_refusal why)
{
	if (has_room(w, KN_FILE_OUT) && !refuse_bad_name(w, w->path, KN_FILE_OUT))
		answer(w, w->path, KN_FILE_OUT, why, -1);
}

static void
visit_layer(
    struct walk *w, int dir, const struct kn_sys_dirent *d, size_t path_n, int depth)
{
	size_t at = path_n + (path_n > 0), name_n = strlen(d->name);
	int fd;

	if (at + name_n >= sizeof w->path) {
		leave(w, KN_FILE_TOO_DEEP);
		return;
	}
	if (path_n > 0)
		w->path[path_n] = '/';
	memcpy(w->path + at, d->name, name_n + 1);
	if (d->type == DT_CHR) /* what was removed, or is denied: nothing */
		return;
	if (d->type != DT_DIR) {
		offer(w, dir, d->name, w->path, KN_FILE_OUT, false);
	} else if (depth + 1 >= DEPTH_MAX) {
		leave(w, KN_FILE_TOO_DEEP);
	} else {
		fd = open_dir(dir, d->name);
		if (fd >= 0)
			walk_layer(w, fd, at + name_n, depth + 1);
		else
			leave(w, KN_FILE_IO);
		kn_sys_close(fd);
	}
}

static void
walk_layer(struct walk *w, int dir, size_t path_n, int depth)
{
	long got;

	while ((got = kn_sys_getdents(dir, dents[depth], DENTS_BYTES)) > 0) {
		for (long at = 0; at < got;) {
			const struct kn_sys_dirent *d =
			    (const void *)(dents[depth] + at);

			at += d->reclen;
			if (!strcmp(d->name, ".") || !strcmp(d->name, ".."))
				continue;
			if (w->names++ >= NAMES_MAX && !w->full)
				say_full(w, KN_FILE_OUT);
			if (w->full || w->dead)
				return;
			w->path[path_n] = '\0';
			visit_layer(w, dir, d, path_n, depth);
		}
	}
}

static void
bring_out(struct walk *w, int layer)
{
	int fd = layer < 0 ? -1 : open_dir(layer, KN_OVERLAY_UPPER);

	/* What patterns took is theirs; that there is no more room is said anew. */
	w->pattern = ".";
	w->full = false;
	w->names = 0;
	if (fd >= 0)
		walk_layer(w, fd, 0, 0);
	kn_sys_close(fd);
}

int
kn_files_collect(int root, int layer, const struct kn_job *j,
    const struct kn_collect_limits *limits, int sock, uint32_t task, uint32_t gen,
    uint32_t *out_n)
{
	static struct batch batch;
	static uint64_t seen[SENT_MAX];
	static struct walk w;

	memset(&w, 0, sizeof w);
	w.root = root;
	w.sock = sock;
	w.task = task;
	w.gen = gen;
	w.limits = *limits;
	w.batch = &batch;
	w.seen = seen;
	batch.body = (struct kn_blob_w){ batch.bytes + sizeof(struct kn_msg),
		KN_MSG_BODY_MAX, 0 };
	batch.fd_n = 0;
	for (uint32_t i = 0; i < j->keep_n; i++) {
		w.pattern = j->keep[i];
		offer(&w, root, j->keep[i], j->keep[i], KN_FILE_KEEP, false);
	}
	for (uint32_t i = 0; i < j->collect_n && !w.dead; i++)
		collect_pattern(&w, j->collect[i]);
	bring_out(&w, layer);
	flush(&w);
	*out_n = w.sent;
	return w.dead;
}
