/* ipc/job.c: the wire form of one exec task, and of its result. */
#include "ipc/job.h"

#include <string.h>

#include "ipc/blob.h"
#include "ipc/err.h"

enum {
	JOB_VERSION = 1,
	ALL_FLAGS = KN_JOB_PTY | KN_JOB_RESIDENT,
	STR_MIN = 5,	   /* length and NUL */
	FILE_MIN = 5 + 12, /* path, mode, fd index, length of content */
	MODE_MAX = 0777,
	ERRNO_MAX = 4095,
};
/* No honest count of bytes or microseconds comes near; above it a reader that holds
 * numbers as doubles would see another value. */
#define AMOUNT_MAX (1ull << 53)

const char *
kn_exec_step_name(enum kn_exec_step s)
{
	static const char *const names[] = {
		[KN_EXEC_STARTED] = "started",
		[KN_EXEC_CELL] = "make the cell",
		[KN_EXEC_FILES] = "put files in place",
		[KN_EXEC_LIMITS] = "set limits",
		[KN_EXEC_WALL] = "build the wall",
		[KN_EXEC_CWD] = "enter the working directory",
		[KN_EXEC_LOOKUP] = "find the program",
		[KN_EXEC_EXEC] = "execute the program",
	};
	_Static_assert(
	    sizeof names / sizeof names[0] == KN_EXEC_STEP_N, "a name a step");

	return (unsigned)s < KN_EXEC_STEP_N ? names[s] : "unknown step";
}

/* ---- job ---- */

static void
put_strings(struct kn_blob_w *w, const char *const *s, uint32_t n)
{
	kn_blob_u32(w, n);
	for (uint32_t i = 0; i < n; i++)
		kn_blob_str(w, s[i]);
}

static void
put_limits(struct kn_blob_w *w, const struct kn_job_limits *l)
{
	kn_blob_u64(w, l->memory);
	kn_blob_u64(w, l->cpu_ms);
	kn_blob_u64(w, l->pids);
	kn_blob_u64(w, l->nofile);
	kn_blob_u64(w, l->fsize);
	kn_blob_u64(w, l->stack);
	kn_blob_u64(w, l->core);
	kn_blob_u64(w, l->tmp);
	kn_blob_u32(w, l->task_ms);
	kn_blob_u32(w, l->hard_ms);
	kn_blob_u32(w, l->grace_ms);
}

static void
get_limits(struct kn_blob_r *r, struct kn_job_limits *l)
{
	l->memory = kn_blob_get_u64(r);
	l->cpu_ms = kn_blob_get_u64(r);
	l->pids = kn_blob_get_u64(r);
	l->nofile = kn_blob_get_u64(r);
	l->fsize = kn_blob_get_u64(r);
	l->stack = kn_blob_get_u64(r);
	l->core = kn_blob_get_u64(r);
	l->tmp = kn_blob_get_u64(r);
	l->task_ms = kn_blob_get_u32(r);
	l->hard_ms = kn_blob_get_u32(r);
	l->grace_ms = kn_blob_get_u32(r);
}

size_t
kn_job_encode(const struct kn_job *j, void *buf, size_t cap)
{
	struct kn_blob_w w = { buf, buf ? cap : 0, 0 };

	kn_blob_u32(&w, JOB_VERSION);
	kn_blob_u32(&w, j->flags);
	put_strings(&w, j->argv, j->argv_n);
	put_strings(&w, j->env, j->env_n);
	kn_blob_str(&w, j->cwd ? j->cwd : "/task");
	kn_blob_u32(&w, j->file_n);
	for (uint32_t i = 0; i < j->file_n; i++) {
		const struct kn_job_file *f = &j->files[i];

		kn_blob_str(&w, f->path);
		kn_blob_u32(&w, f->mode);
		kn_blob_u32(&w, f->fd_index >= 0 ? (uint32_t)f->fd_index + 1 : 0);
		kn_blob_bytes(&w, f->bytes, f->fd_index >= 0 ? 0 : f->byte_n);
	}
	put_strings(&w, j->keep, j->keep_n);
	put_strings(&w, j->collect, j->collect_n);
	kn_blob_u32(&w, (uint32_t)j->rows << 16 | j->cols);
	put_limits(&w, &j->limits);
	return w.n;
}

/* A piece of the caller's memory from which arrays are cut. */
struct room {
	uint8_t *p;
	size_t n, at;
};

static void *
carve(struct room *room, size_t count, size_t size)
{
	size_t at = (room->at + 15) & ~(size_t)15;

	if (at > room->n || count > (room->n - at) / size)
		return NULL;
	room->at = at + count * size;
	return room->p + at;
}

/* A path that stays below where it starts: relative, with no empty, "." or ".."
 * component. */
static bool
path_stays_below(const char *s)
{
	for (;;) {
		size_t n = strcspn(s, "/");

		if (n == 0 || (n == 1 && s[0] == '.') ||
		    (n == 2 && s[0] == '.' && s[1] == '.'))
			return false;
		if (s[n] == '\0')
			return true;
		s += n + 1;
	}
}

/* Strings as a NULL-terminated array. */
static const char *const *
get_strings(struct kn_blob_r *r, struct room *room, uint32_t *out_n)
{
	uint32_t n = kn_blob_get_count(r, STR_MIN);
	const char **s = carve(room, (size_t)n + 1, sizeof *s);

	*out_n = 0;
	if (!s) {
		r->bad = true;
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++)
		s[i] = kn_blob_get_str(r);
	s[n] = NULL;
	*out_n = n;
	return s;
}

static const char *const *
get_paths(struct kn_blob_r *r, struct room *room, uint32_t *out_n)
{
	const char *const *s = get_strings(r, room, out_n);

	for (uint32_t i = 0; i < *out_n; i++)
		if (!path_stays_below(s[i]))
			r->bad = true;
	return s;
}

static const struct kn_job_file *
get_files(struct kn_blob_r *r, struct room *room, uint32_t *out_n)
{
	uint32_t n = kn_blob_get_count(r, FILE_MIN);
	struct kn_job_file *f = carve(room, n, sizeof *f);

	*out_n = 0;
	if (!f) {
		r->bad = true;
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t fd;

		f[i].path = kn_blob_get_str(r);
		f[i].mode = kn_blob_get_u32(r);
		fd = kn_blob_get_u32(r);
		if (fd > KN_JOB_FILES_BY_FD_MAX) {
			r->bad = true;
			fd = 0;
		}
		f[i].fd_index = (int)fd - 1;
		f[i].bytes = kn_blob_get_bytes(r, &f[i].byte_n);
		if (!path_stays_below(f[i].path) || f[i].mode > MODE_MAX ||
		    (fd && f[i].byte_n))
			r->bad = true;
	}
	*out_n = n;
	return f;
}

/* A resident has neither a terminal nor files: both need what an ordinary task has. */
static bool
flags_fit(const struct kn_job *j)
{
	if (j->flags & ~(uint32_t)ALL_FLAGS)
		return false;
	return !(j->flags & KN_JOB_RESIDENT) ||
	       (!(j->flags & KN_JOB_PTY) && j->file_n + j->keep_n + j->collect_n == 0);
}

int
kn_job_decode(const void *buf, size_t n, struct kn_job *out, void *room, size_t room_n)
{
	struct kn_blob_r r = { buf, n, 0, false };
	struct room left = { room, room_n, 0 };
	struct kn_job j;
	uint32_t size;

	memset(&j, 0, sizeof j);
	if (kn_blob_get_u32(&r) != JOB_VERSION)
		return -1;
	j.flags = kn_blob_get_u32(&r);
	j.argv = get_strings(&r, &left, &j.argv_n);
	j.env = get_strings(&r, &left, &j.env_n);
	j.cwd = kn_blob_get_str(&r);
	j.files = get_files(&r, &left, &j.file_n);
	j.keep = get_paths(&r, &left, &j.keep_n);
	j.collect = get_paths(&r, &left, &j.collect_n);
	size = kn_blob_get_u32(&r);
	j.rows = (uint16_t)(size >> 16);
	j.cols = (uint16_t)size;
	get_limits(&r, &j.limits);
	if (!kn_blob_done(&r) || !flags_fit(&j) || j.argv_n < 1 || j.cwd[0] != '/')
		return -1;
	*out = j;
	return 0;
}

/* ---- result ---- */

size_t
kn_job_result_encode(const struct kn_job_result *r, void *buf, size_t cap)
{
	struct kn_blob_w w = { buf, buf ? cap : 0, 0 };
	char detail[sizeof r->detail];

	/* A name from the task's world must not make an honest result a lie. */
	kn_err_printable(detail, sizeof detail, r->detail,
	    (int)strnlen(r->detail, sizeof r->detail));
	kn_blob_u32(&w, JOB_VERSION);
	kn_blob_u32(&w, (uint32_t)r->cause);
	kn_blob_u32(&w, (uint32_t)r->step);
	kn_blob_u32(&w, r->sys);
	kn_blob_str(&w, detail);
	kn_blob_u32(&w, (uint32_t)r->wait_status);
	kn_blob_u64(&w, r->begun_ns);
	kn_blob_u64(&w, r->ended_ns);
	kn_blob_u64(&w, r->user_us);
	kn_blob_u64(&w, r->system_us);
	kn_blob_u64(&w, r->max_rss);
	kn_blob_u64(&w, r->memory_peak);
	kn_blob_u64(&w, r->pids_peak);
	kn_blob_u32(&w, r->oom_kills);
	kn_blob_u32(&w, r->oom_outside);
	kn_blob_u32(&w, r->file_n);
	return w.n;
}

/* Exited: the code in the second byte, nothing else. Signaled: a signal number and
 * perhaps the core bit. Stopped, continued and anything the kernel never makes: no. */
static bool
wait_status_plausible(uint32_t s)
{
	uint32_t signo = s & 0x7f;

	if (signo == 0)
		return (s & ~0xff00u) == 0;
	return (s & ~0xffu) == 0 && signo <= 64;
}

static bool
all_printable(const char *s)
{
	char again[sizeof((struct kn_job_result *)0)->detail * 4];
	int n = (int)strlen(s);

	return kn_err_printable(again, sizeof again, s, n) == n &&
	       !memcmp(again, s, (size_t)n);
}

/* The name of the first field that no honest worker sends, or NULL. */
static const char *
bad_field(const struct kn_job_result *r, uint32_t cause, uint32_t step)
{
	if (cause >= KN_CAUSE_N)
		return "cause";
	if (step >= KN_EXEC_STEP_N)
		return "step";
	if (r->sys > ERRNO_MAX)
		return "sys";
	if (!wait_status_plausible((uint32_t)r->wait_status))
		return "wait_status";
	if (r->begun_ns > r->ended_ns)
		return "ended_ns";
	if (r->user_us > AMOUNT_MAX)
		return "user_us";
	if (r->system_us > AMOUNT_MAX)
		return "system_us";
	if (r->max_rss > AMOUNT_MAX)
		return "max_rss";
	if (r->memory_peak > AMOUNT_MAX)
		return "memory_peak";
	if (r->pids_peak > AMOUNT_MAX)
		return "pids_peak";
	if (r->oom_outside > (r->oom_kills > 0))
		return "oom_outside";
	return NULL;
}

int
kn_job_result_decode(
    const void *buf, size_t n, struct kn_job_result *out, const char **out_field)
{
	struct kn_blob_r r = { buf, n, 0, false };
	struct kn_job_result res;
	uint32_t version = kn_blob_get_u32(&r), cause = kn_blob_get_u32(&r),
		 step = kn_blob_get_u32(&r);
	const char *detail, *field;

	memset(&res, 0, sizeof res);
	res.sys = kn_blob_get_u32(&r);
	detail = kn_blob_get_str(&r);
	res.wait_status = (int32_t)kn_blob_get_u32(&r);
	res.begun_ns = kn_blob_get_u64(&r);
	res.ended_ns = kn_blob_get_u64(&r);
	res.user_us = kn_blob_get_u64(&r);
	res.system_us = kn_blob_get_u64(&r);
	res.max_rss = kn_blob_get_u64(&r);
	res.memory_peak = kn_blob_get_u64(&r);
	res.pids_peak = kn_blob_get_u64(&r);
	res.oom_kills = kn_blob_get_u32(&r);
	res.oom_outside = kn_blob_get_u32(&r);
	res.file_n = kn_blob_get_u32(&r);
	if (!kn_blob_done(&r))
		field = "length";
	else if (version != JOB_VERSION)
		field = "version";
	else if (strlen(detail) >= sizeof res.detail || !all_printable(detail))
		field = "detail";
	else
		field = bad_field(&res, cause, step);
	if (field) {
		*out_field = field;
		return -1;
	}
	res.cause = (enum kn_cause)cause;
	res.step = (enum kn_exec_step)step;
	memcpy(res.detail, detail, strlen(detail) + 1);
	*out = res;
	return 0;
}
