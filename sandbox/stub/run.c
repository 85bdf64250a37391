/* sandbox/stub/run.c: one exec task, from the claimed slot to the published result.
 *
 * The deadlines of a task are kept here, whatever the supervisor is doing: the hard one
 * runs from the claim. Why a cell is ended is decided once, before the kill; a task
 * that ended by itself first keeps its own end, unless it was over a limit by then.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "ipc/clock.h"
#include "ipc/err.h"
#include "ipc/payload.h"
#include "sandbox/stub/run_int.h"
#include "sandbox/stub/sys.h"

enum {
	ROOM_BYTES = 16 * 1024,	 /* to decode a job of ordinary size */
	LARGE_BYTES = 64 * 1024, /* a payload whose pages are given back */
};
#define KILL_AGAIN_NS (10 * KN_MS_NS)
#define SIGNAL_AGAIN_NS KN_MS_NS
#define SIGNAL_BIT(n) (1ull << ((n)-1))
#define STOP_BITS \
	(SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) | SIGNAL_BIT(SIGTTIN) | \
	    SIGNAL_BIT(SIGTTOU))
/* Init runs within a few milliseconds even among a hundred spinning processes. */
#define KILL_FORCE_NS (25 * KN_MS_NS)

/* ---- before the start ---- */

/* A copy, as a cell still reads them when ours are closed. */
static int
plan_resident(struct run *r)
{
	int n = r->fd_n - r->stdio_n;

	if (n < 1 || n > KN_JOB_KEPT_MAX)
		return -EBADMSG;
	memcpy(r->cell.kept, r->fds + r->stdio_n, sizeof *r->fds * (size_t)n);
	r->cell.kept_n = (uint32_t)n;
	return 0;
}

/* The job is decoded where it lies: the area is the worker's until it is freed, and the
 * supervisor, who alone could write there, is whom we take orders from. */
static int
decode(struct run *r, const uint8_t *inline_bytes)
{
	static _Alignas(16) uint8_t small[ROOM_BYTES];
	const struct kn_slot_head *h = r->head;
	const uint8_t *bytes = inline_bytes;
	size_t need = KN_JOB_ROOM(h->payload_len);

	if (h->area == KN_AREA_INLINE) {
		if (h->payload_len > KN_INLINE_MAX)
			return -EBADMSG;
	} else {
		uint64_t max = r->s->slice.submit_area_bytes;

		if (h->area >= KN_AREAS || h->payload_off > max ||
		    h->payload_len > max - h->payload_off)
			return -EBADMSG;
		bytes = r->area = r->s->slice.submit_area + h->payload_off;
	}
	r->room = small;
	if (need > sizeof small) {
		void *p = mmap(NULL, need, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return -ENOMEM;
		r->room = p;
		r->room_n = need;
	}
	if (kn_job_decode(bytes, h->payload_len, &r->job, r->room,
		r->room_n ? r->room_n : sizeof small) < 0)
		return -EBADMSG;
	r->stdio_n = r->job.flags & KN_JOB_PTY ? 0 : 3;
	if (r->fd_n < r->stdio_n || (uint32_t)r->fd_n != h->fd_n)
		return -EBADMSG;
	return r->job.flags & KN_JOB_RESIDENT ? plan_resident(r) : 0;
}

/* The template's file systems, as they were made, where nothing of the job itself goes
 * in and no bind stands below. */
static void
share(struct run *r)
{
	struct kn_stub *s = r->s;
	const struct kn_job *j = &r->job;
	const bool may[KN_FRESH_N] = { !j->limits.tmp, true,
		j->file_n + j->keep_n + j->collect_n == 0 };
	const char *const opts[KN_FRESH_N] = { s->tmp_opts, s->shm_opts, s->task_opts };
	uint64_t rules;

	if (!s->may_share || s->covered.n > 0)
		return;
	rules = kn_fresh_share(s->fresh, may, opts, r->shared);
	r->cell.land_prepared = rules != 0;
	if (rules != 0)
		kn_wall_land_prepare(&s->land, rules);
}

static void
plan_cell(struct run *r)
{
	struct kn_stub *s = r->s;
	struct kn_cell *c = &r->cell;

	c->argv = r->job.argv;
	c->env = r->job.env;
	c->cwd = r->job.cwd;
	c->proc_fd = s->watch.proc_fd;
	/* With a next task at hand it costs more than it gives. */
	c->told_fd = kn_submit_pending(&s->slice) == 0 ? s->told_fd : -1;
	c->hold_fd = s->sock;
	c->land = &s->land;
	c->bpf = s->cell_bpf;
	c->bpf_n = s->cell_bpf_n;
	c->mounts.task_fd = r->task_fs;
	c->mounts.covered = &s->covered;
	c->mounts.overlays = &s->overlays;
	if (r->job.limits.tmp)
		kn_mounts_opts(c->mounts.tmp, r->job.limits.tmp, s->tmp_inodes, "1777");
	else if (!r->shared[KN_FRESH_TMP])
		memcpy(c->mounts.tmp, s->tmp_opts, sizeof c->mounts.tmp);
	if (!r->shared[KN_FRESH_SHM])
		memcpy(c->mounts.shm, s->shm_opts, sizeof c->mounts.shm);
	kn_rlimits_plan(c, s, &r->job.limits);
}

static int
make_terminal(struct run *r)
{
	int err = kn_pty_give(r->s, r->head, r->job.rows, r->job.cols, &r->slave);

	r->cell.pty = true;
	for (int i = 0; i < 3; i++)
		r->cell.stdio[i] = r->slave;
	return err;
}

/* Everything up to the running cell; 0 if there is one. */
static int
start(struct run *r, const uint8_t *inline_bytes)
{
	struct kn_stub *s = r->s;
	const char *what = NULL;
	int err = decode(r, inline_bytes);

	if (err < 0) {
		kn_run_fail(r, KN_EXEC_CELL, err, "job record");
		return -1;
	}
	r->hard_ns = kn_clock_after_ms(r->res.begun_ns, r->job.limits.hard_ms);
	r->soft_ns = kn_clock_after_ms(r->res.begun_ns, r->job.limits.task_ms);
	err = kn_cg_begin(&s->cg, &r->job.limits, &what);
	if (err < 0) {
		kn_run_fail(r, KN_EXEC_LIMITS, err, what);
		return -1;
	}
	share(r);
	if (s->direct.place)
		r->task_fs = kn_direct_task_fs(&s->direct);
	else if (!r->shared[KN_FRESH_TASK])
		r->task_fs = kn_mounts_task_fs(s->task_bytes, s->task_inodes);
	err = kn_overlays_begin(&s->overlays);
	if (err < 0 || (r->task_fs < 0 && !r->shared[KN_FRESH_TASK])) {
		kn_run_fail(
		    r, KN_EXEC_CELL, err < 0 ? err : r->task_fs, "/task, or a copy");
		return -1;
	}
	err = kn_files_put(r->task_fs, &r->job, r->fds + r->stdio_n,
	    (uint32_t)(r->fd_n - r->stdio_n), r->hard_ns, &what);
	if (err < 0) {
		if (err == -ETIMEDOUT)
			r->res.cause = KN_CAUSE_HARD;
		kn_run_fail(r, KN_EXEC_FILES, err, what);
		return -1;
	}
	if (r->area && r->head->payload_len >= LARGE_BYTES)
		kn_shed_job(s, r->area, r->head->payload_len);
	if (r->job.flags & KN_JOB_PTY) {
		err = make_terminal(r);
		if (err < 0) {
			kn_run_fail(r, KN_EXEC_CELL, err, "terminal");
			return -1;
		}
	} else {
		memcpy(r->cell.stdio, r->fds, sizeof r->cell.stdio);
	}
	plan_cell(r);
	err = s->direct.place ? kn_direct_plan(&s->direct, &r->job, &r->cell) : 0;
	if (err < 0) {
		kn_run_fail(r, KN_EXEC_CELL, err, "environment");
		return -1;
	}
	err = kn_cell_start(&r->cell);
	if (err < 0)
		kn_run_fail(
		    r, KN_EXEC_CELL, err, s->direct.place ? "fork" : "namespaces");
	return err < 0 ? -1 : 0;
}

static void
close_fds(struct run *r)
{
	/* Not the plan's copies: a cell reads them at this moment. */
	kn_sys_close_at(&r->slave);
	for (int i = 0; i < r->fd_n; i++)
		kn_sys_close_at(&r->fds[i]);
	r->fd_n = 0;
}

/* ---- while it runs ---- */

/* The first cause stands, and none if the task ended before it. */
static void
decide(struct run *r, enum kn_cause cause)
{
	if (r->res.cause == KN_CAUSE_NONE && !kn_cell_has_ended(&r->cell))
		r->res.cause = cause;
}

static void
kill_cell(struct run *r, uint64_t now_ns)
{
	if (!r->killing)
		r->force_ns = now_ns + KILL_FORCE_NS;
	r->killing = true;
	if (kn_cell_kill(&r->cell, now_ns >= r->force_ns))
		kn_control_over(r->s->slice.control, r->head->task, r->head->gen);
	kn_watch_kill_crowd(&r->s->watch, r->cell.pid);
	r->kill_ns = now_ns + KILL_AGAIN_NS;
}

/* Ask first: SIGTERM to all (init does not hear it), SIGKILL after grace_ms. */
static void
end_cell(struct run *r, enum kn_cause cause, uint64_t now_ns)
{
	if (r->killing || r->grace_ns)
		return;
	decide(r, cause);
	kn_watch_term_all(&r->s->watch, r->cell.pid);
	r->grace_ns = kn_clock_after_ms(now_ns, r->job.limits.grace_ms);
	if (r->grace_ns == 0)
		kill_cell(r, now_ns);
}

static uint64_t
sooner(uint64_t a, uint64_t b)
{
	return a && (b == 0 || a < b) ? a : b;
}

/* What has to be done next, looks apart. */
static uint64_t
due_ns(const struct run *r)
{
	return sooner(r->grace_ns ? r->grace_ns : r->soft_ns, r->hard_ns);
}

static void
act_on_time(struct run *r, uint64_t now_ns)
{
	const struct kn_watched cell = { r->cell.pid, r->cell.init_cpu_ns, due_ns(r) };
	enum kn_cause passed;

	if (kn_serve_stopping(r->s))
		end_cell(r, KN_CAUSE_STOP, now_ns);
	if (r->killing) {
		if (now_ns >= r->kill_ns)
			kill_cell(r, now_ns);
		return;
	}
	if (r->hard_ns && now_ns >= r->hard_ns) {
		decide(r, KN_CAUSE_HARD);
		kill_cell(r, now_ns);
		return;
	}
	passed = kn_watch_look(&r->s->watch, &r->s->cg, &cell, now_ns);
	if (passed != KN_CAUSE_NONE) {
		decide(r, passed);
		kill_cell(r, now_ns);
		return;
	}
	if (r->grace_ns && now_ns >= r->grace_ns)
		kill_cell(r, now_ns);
	else if (r->soft_ns && now_ns >= r->soft_ns)
		end_cell(r, KN_CAUSE_SOFT, now_ns);
}

/* What came while the cell was made waits for the task's program: its process before
 * that is ours, and there may be none. */
static void
pass_signals(struct run *r)
{
	int pid;

	if (!kn_cell_is_executed(&r->cell)) {
		r->signal_ns = kn_clock_now() + SIGNAL_AGAIN_NS;
		return;
	}
	pid = kn_watch_task_pid(&r->s->watch, r->cell.pid);
	for (int n = 1; pid > 1 && n <= 64; n++) {
		if (!(r->signals & SIGNAL_BIT(n)))
			continue;
		/* A module with threads of its own has something to do. */
		if (n != SIGSTOP || !(r->job.flags & KN_JOB_RESIDENT) ||
		    kn_watch_is_single(&r->s->watch, r->cell.pid))
			kn_watch_signal(&r->s->watch, r->cell.pid, pid, n);
	}
	r->signals = r->signal_ns = 0;
	kn_watch_again(&r->s->watch, kn_clock_now());
}

/* As the kernel has it, one that stops and one that goes on do not wait together. */
static void
keep_signal(struct run *r, int signo)
{
	if (signo == SIGCONT)
		r->signals &= ~STOP_BITS;
	else if (SIGNAL_BIT(signo) & STOP_BITS)
		r->signals &= ~SIGNAL_BIT(SIGCONT);
	r->signals |= SIGNAL_BIT(signo);
}

static void
take_message(struct run *r)
{
	struct kn_order o = { KN_CAUSE_NONE, 0 };

	kn_serve_message(r->s, false, r->head->task, r->head->gen, &o);
	if (o.kill != KN_CAUSE_NONE) {
		decide(r, o.kill);
		kill_cell(r, kn_clock_now());
	} else if (o.signo) {
		keep_signal(r, o.signo);
		pass_signals(r);
	}
}

static uint64_t
next_ns(const struct run *r)
{
	uint64_t look_ns = sooner(r->s->watch.next_ns, r->signal_ns);

	return r->killing ? r->kill_ns : sooner(due_ns(r), look_ns);
}

static void
wait_for_cell(struct run *r)
{
	struct pollfd p[3] = { { .fd = r->cell.pidfd, .events = POLLIN },
		{ .fd = r->s->sock, .events = POLLIN },
		{ .fd = r->cell.told_fd, .events = POLLIN } };

	r->s->watch.told = r->cell.told_fd >= 0;
	r->s->watch.resident = r->job.flags & KN_JOB_RESIDENT;
	kn_watch_begin(&r->s->watch, &r->s->cg, &r->job.limits, r->res.begun_ns);
	for (;;) {
		uint64_t now = kn_clock_now(), next;
		struct timespec t = { 0, 0 };

		act_on_time(r, now);
		if (r->signal_ns && now >= r->signal_ns)
			pass_signals(r);
		now = kn_clock_now(); /* a look takes its time */
		next = next_ns(r);
		if (next > now) {
			t.tv_sec = (time_t)((next - now) / KN_S_NS);
			t.tv_nsec = (long)((next - now) % KN_S_NS);
		}
		if (kn_sys_ppoll(p, 3, next ? &t : NULL) < 0)
			continue;
		if (p[0].revents || (p[2].revents && kn_cell_heard(&r->cell)))
			return;
		if (p[2].revents)
			kn_watch_again(&r->s->watch, kn_clock_now());
		if (p[1].revents)
			take_message(r);
	}
}

void
kn_run(struct kn_stub *s, const struct kn_slot_head *head,
    const uint8_t inline_bytes[KN_INLINE_MAX], int *fds, int fd_n)
{
	static struct run run;
	struct run *r = &run;
	bool started;

	memset(r, 0, offsetof(struct run, cell));
	memset(&r->cell, 0, offsetof(struct kn_cell, path));
	memset(&r->res, 0, sizeof *r - offsetof(struct run, res));
	r->s = s;
	r->head = head;
	r->fds = fds;
	r->fd_n = fd_n;
	r->task_fs = r->slave = -1;
	r->res.begun_ns = kn_clock_now();
	r->res.wait_status = SIGKILL;
	kn_control_begin(s->slice.control, head->task, head->gen, r->res.begun_ns);
	started = start(r, inline_bytes) == 0;
	close_fds(r);
	if (started)
		wait_for_cell(r);
	/* What is left to do is ours, and the supervisor waits for it. */
	kn_control_over(s->slice.control, head->task, head->gen);
	r->res.ended_ns = kn_clock_now(); /* settle() knows better */
	if (started) {
		kn_run_settle(r);
		kn_run_collect(r);
	}
	kn_sys_close_at(&r->task_fs);
	kn_overlays_end(&s->overlays);
	r->unclean |= s->direct.place && kn_direct_clear(&s->direct) < 0;
	if (r->room_n)
		munmap(r->room, r->room_n);
	kn_run_answer(r);
	kn_control_end(s->slice.control);
	if ((started && kn_cell_reap(&r->cell) < 0) || r->unclean)
		kn_serve_abandon(s);
	kn_fresh_check(s->fresh, r->shared);
	if ((s->flags & KN_BOOT_NEW_IPC) && kn_ipcns_renew(&s->ipcns) < 0)
		kn_serve_abandon(s);
	kn_serve_rest(s, r->res.file_n > 0);
}
