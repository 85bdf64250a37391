/* sandbox/stub/watch.c: looking at a cell through /proc and the cgroup. */
#include "sandbox/stub/watch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "ipc/clock.h"
#include "sandbox/stub/below.h"
#include "sandbox/stub/cgroup.h"
#include "sandbox/stub/look.h"
#include "sandbox/stub/sys.h"
#include "sandbox/stub/text.h"

#define LOOK_CPU_MIN_NS (4 * KN_MS_NS)
#define LOOK_MEM_MIN_NS (4 * KN_MS_NS)
#define LOOK_MEM_MAX_NS (200 * KN_MS_NS)
/* Of an exact look without a pause. One process more is looked at in any case. */
#define LOOK_SLICE_NS (8 * KN_MS_NS)
/* What the first process may take, as far as anybody knows: 60,000 mappings. Less where
 * all of the time is not much more. */
#define LOOK_FIRST_NS (250 * KN_MS_NS)
/* Faster than a process touches fresh memory, on one processor. */
#define TOUCH_BYTES_PER_S (4ull << 30)

/* ---- all of them ---- */

struct look {
	struct kn_watch *w;
	int init_pid;
	uint64_t bytes;
	uint64_t begun_ns, until_ns; /* of an exact one */
	int after;		     /* where it goes on */
	bool paused;
	uint32_t read_n;
	int first_child;
};

static void
each_below(struct look *l, void (*visit)(struct look *, const char *name, int pid))
{
	const int *pids = NULL;
	size_t n = kn_below_list(l->w->proc_fd, l->init_pid, &pids);

	for (size_t i = 0; i < n; i++) {
		char name[24];
		struct kn_text t = { name, sizeof name, 0 };

		kn_text_u64(&t, (uint64_t)pids[i]);
		visit(l, name, pids[i]);
	}
}

static void
each_process(struct look *l, void (*visit)(struct look *, const char *name, int pid))
{
	static _Alignas(16) char buf[8192];
	int fd = l->w->proc_fd;
	long n;

	if (l->w->below) {
		each_below(l, visit);
		return;
	}
	if (KN_SYS3(SYS_lseek, fd, 0, 0) < 0)
		return;
	while ((n = kn_sys_getdents(fd, buf, sizeof buf)) > 0) {
		for (long at = 0; at < n;) {
			const struct kn_sys_dirent *d = (const void *)(buf + at);
			size_t used;
			uint64_t pid = kn_text_number(d->name, strlen(d->name), &used);

			at += d->reclen;
			if (used > 0 && d->name[used] == '\0' && pid > 1)
				visit(l, d->name, (int)pid);
		}
	}
}

static void
note_spent(struct look *l, const char *name, int pid)
{
	kn_spent_note(&l->w->spent, l->w->proc_fd, name, pid);
}

static void
add_memory(struct look *l, const char *name, int pid)
{
	if (pid == l->init_pid) /* its pages are the stub's */
		return;
	l->bytes += kn_look_resident(l->w->proc_fd, name);
}

/* Numbers come in rising order: a pause goes on after the last one. */
static void
add_exact(struct look *l, const char *name, int pid)
{
	uint64_t now_ns, took_ns;

	if (l->paused || pid == l->init_pid || pid <= l->after)
		return;
	now_ns = kn_clock_now();
	l->paused = (l->read_n > 0 && now_ns - l->begun_ns >= LOOK_SLICE_NS) ||
		    (l->until_ns && now_ns + l->w->exact.read_ns >= l->until_ns);
	if (l->paused)
		return;
	l->read_n++;
	l->w->exact.bytes += kn_look_exact(l->w->proc_fd, name);
	if (pid > l->w->exact.after)
		l->w->exact.after = pid;
	took_ns = kn_clock_now() - now_ns;
	if (!l->w->exact.known || took_ns > l->w->exact.read_ns)
		l->w->exact.read_ns = took_ns;
	l->w->exact.known = true;
}

static void
find_child(struct look *l, const char *name, int pid)
{
	struct kn_look_stat s;

	if (kn_look_stat(l->w->proc_fd, name, &s) && s.ppid == l->init_pid &&
	    (l->first_child == 0 || pid < l->first_child))
		l->first_child = pid;
}

static void
kill_one(struct look *l, const char *name, int pid)
{
	(void)name;
	if (pid != l->init_pid)
		(void)kn_sys_kill(pid, SIGKILL);
}

void
kn_watch_kill_crowd(struct kn_watch *w, int init_pid)
{
	struct look l = { .w = w, .init_pid = init_pid };

	/* A number could be a stranger's by the time of the signal. */
	if (!w->singly)
		each_process(&l, kill_one);
}

void
kn_watch_signal(struct kn_watch *w, int init_pid, int pid, int signo)
{
	struct kn_look_stat s;
	char name[24];
	struct kn_text t = { name, sizeof name, 0 };
	int fd;

	if (!w->singly) {
		/* Another process of that number by now is one of this cell, or out of
		 * our reach. */
		(void)kn_sys_kill(pid, signo);
		return;
	}
	kn_text_u64(&t, (uint64_t)pid);
	fd = (int)KN_SYS2(SYS_pidfd_open, pid, 0);
	if (fd >= 0 && kn_look_stat(w->proc_fd, name, &s) && s.ppid == init_pid)
		(void)KN_SYS4(SYS_pidfd_send_signal, fd, signo, NULL, 0);
	kn_sys_close(fd);
}

void
kn_watch_term_all(struct kn_watch *w, int init_pid)
{
	int pid;

	if (!w->singly) {
		(void)kn_sys_kill(-1, SIGTERM);
		return;
	}
	pid = kn_watch_task_pid(w, init_pid);
	if (pid > 1)
		kn_watch_signal(w, init_pid, pid, SIGTERM);
}

int
kn_watch_task_pid(struct kn_watch *w, int init_pid)
{
	struct look l = { .w = w, .init_pid = init_pid };

	each_process(&l, find_child);
	return l.first_child;
}

/* The only process of the cell, if it has no more than one. */
struct only {
	struct look l;
	int n;
	struct kn_look_stat stat;
};

static void
see_only(struct look *l, const char *name, int pid)
{
	struct only *o = (void *)((char *)l - offsetof(struct only, l));

	if (pid != l->init_pid &&
	    (++o->n > 1 || !kn_look_stat(l->w->proc_fd, name, &o->stat)))
		o->n = 2;
}

static bool
has_only_one(struct kn_watch *w, int init_pid, struct kn_look_stat *out)
{
	struct only o = { .l = { .w = w, .init_pid = init_pid } };

	each_process(&o.l, see_only);
	*out = o.stat;
	return o.n == 1 && o.stat.ppid == init_pid;
}

bool
kn_watch_is_single(struct kn_watch *w, int init_pid)
{
	struct kn_look_stat s;

	return has_only_one(w, init_pid, &s) && s.threads == 1;
}

/* Nothing of it runs, and init will tell if it does again: its parent is told. */
static bool
rests(struct kn_watch *w, int init_pid)
{
	struct kn_look_stat s;

	return w->told && has_only_one(w, init_pid, &s) && s.state == 'T';
}

/* ---- deciding ---- */

static uint64_t
soonest(uint64_t now_ns, uint64_t in_ns, uint64_t min_ns, uint64_t max_ns)
{
	return now_ns + (in_ns < min_ns ? min_ns : in_ns > max_ns ? max_ns : in_ns);
}

static void
set_next(struct kn_watch *w, uint64_t at_ns)
{
	if (w->next_ns == 0 || at_ns < w->next_ns)
		w->next_ns = at_ns;
}

static void
plan_cpu(struct kn_watch *w, uint64_t used_ns, uint64_t now_ns)
{
	uint64_t left = w->cpu_limit_ns - used_ns;

	set_next(w, soonest(now_ns, left / w->cpus, LOOK_CPU_MIN_NS, UINT64_MAX / 4));
}

static void
plan_memory(struct kn_watch *w, uint64_t used, uint64_t now_ns)
{
	uint64_t left = w->memory_limit - used;
	uint64_t in_ns = left / (TOUCH_BYTES_PER_S / KN_MS_NS * w->cpus) * 1000;

	w->memory_ns = soonest(now_ns, in_ns, LOOK_MEM_MIN_NS, LOOK_MEM_MAX_NS);
}

void
kn_watch_begin(struct kn_watch *w, const struct kn_cg *g, const struct kn_job_limits *l,
    uint64_t now_ns)
{
	w->cpu_limit_ns = l->cpu_ms < UINT64_MAX / KN_MS_NS ? l->cpu_ms * KN_MS_NS : 0;
	w->memory_limit = kn_cg_holds_memory(g) ? 0 : l->memory;
	w->counts = !w->resident && !kn_cg_counts_cpu(g);
	w->next_ns = 0;
	memset(&w->exact, 0, sizeof w->exact);
	w->exact.read_ns = l->hard_ms && l->hard_ms * KN_MS_NS / 8 < LOOK_FIRST_NS
			       ? l->hard_ms * KN_MS_NS / 8
			       : LOOK_FIRST_NS;
	if (w->cpu_limit_ns)
		plan_cpu(w, 0, now_ns);
	kn_spent_begin(&w->spent, now_ns);
	if (w->counts)
		set_next(w, kn_spent_next(&w->spent, now_ns));
	if (w->memory_limit) {
		plan_memory(w, 0, now_ns);
		set_next(w, w->memory_ns);
	}
}

void
kn_watch_again(struct kn_watch *w, uint64_t now_ns)
{
	if (w->next_ns == 0 && (w->cpu_limit_ns || w->memory_limit || w->counts))
		w->next_ns = now_ns + LOOK_MEM_MIN_NS;
}

static uint64_t
cpu_used_ns(struct kn_watch *w, const struct kn_cg *g, const struct kn_watched *cell,
    uint64_t now_ns)
{
	const struct kn_spent_init init = { cell->init_pid, cell->init_cpu_ns };
	struct look l = { .w = w, .init_pid = cell->init_pid };
	uint64_t ns;

	if (kn_cg_counts_cpu(g)) {
		ns = kn_cg_cpu_ns(g);
		return ns > cell->init_cpu_ns ? ns - cell->init_cpu_ns : 0;
	}
	kn_spent_look(&w->spent);
	each_process(&l, note_spent);
	ns = kn_spent_sum(&w->spent, w->proc_fd, &init, w->cpus, now_ns);
	if (w->counts)
		set_next(w, kn_spent_next(&w->spent, kn_clock_now()));
	return ns;
}

static enum kn_cause
look_cpu(struct kn_watch *w, const struct kn_cg *g, const struct kn_watched *cell,
    uint64_t now_ns)
{
	uint64_t used_ns = cpu_used_ns(w, g, cell, now_ns);

	if (!w->cpu_limit_ns)
		return KN_CAUSE_NONE;
	if (used_ns >= w->cpu_limit_ns)
		return KN_CAUSE_CPU;
	plan_cpu(w, used_ns, now_ns);
	return KN_CAUSE_NONE;
}

void
kn_watch_add_unwaited(const struct kn_watch *w, struct kn_job_result *r)
{
	uint64_t known_us = r->user_us + r->system_us;

	if (w->counts && w->spent.told_ns / 1000 > known_us)
		r->user_us += w->spent.told_ns / 1000 - known_us;
}

/* Go on counting. True: done, and *out_bytes is what they use. */
static bool
look_closely(struct kn_watch *w, const struct kn_watched *cell, uint64_t *out_bytes)
{
	struct look l = { .w = w,
		.init_pid = cell->init_pid,
		.begun_ns = kn_clock_now(),
		.until_ns = cell->until_ns,
		.after = w->exact.after };
	uint64_t now_ns, took_ns;

	each_process(&l, add_exact);
	now_ns = kn_clock_now();
	took_ns = now_ns - l.begun_ns;
	w->exact.spent_ns += took_ns;
	if (l.paused) {
		w->exact.sliced = true;
		w->memory_ns =
		    now_ns + (took_ns > LOOK_SLICE_NS ? took_ns : LOOK_SLICE_NS);
		return false;
	}
	*out_bytes = w->exact.bytes;
	return true;
}

static void
begin_exact(struct kn_watch *w)
{
	w->exact.on = true;
	w->exact.sliced = false;
	w->exact.after = 0;
	w->exact.bytes = w->exact.spent_ns = 0;
}

static enum kn_cause
look_memory(struct kn_watch *w, const struct kn_watched *cell, uint64_t now_ns)
{
	struct look l = { .w = w, .init_pid = cell->init_pid };
	uint64_t used;

	if (!w->exact.on) {
		each_process(&l, add_memory);
		if (l.bytes <= w->memory_limit) {
			w->exact.over_row = 0;
			plan_memory(w, l.bytes, now_ns);
			return KN_CAUSE_NONE;
		}
		/* What forked processes share was counted several times. */
		begin_exact(w);
	}
	if (!look_closely(w, cell, &used))
		return KN_CAUSE_NONE;
	w->exact.on = false;
	if (used <= w->memory_limit) {
		w->exact.over_row = 0;
		plan_memory(w, used, kn_clock_now() + w->exact.spent_ns);
		return KN_CAUSE_NONE;
	}
	/* Between slices processes come and go, and what moved may be in it twice. */
	if (!w->exact.sliced || ++w->exact.over_row >= 2)
		return KN_CAUSE_MEMORY;
	begin_exact(w);
	w->memory_ns = kn_clock_now() + LOOK_SLICE_NS;
	return KN_CAUSE_NONE;
}

enum kn_cause
kn_watch_look(struct kn_watch *w, const struct kn_cg *g, const struct kn_watched *cell,
    uint64_t now_ns)
{
	enum kn_cause cause = KN_CAUSE_NONE;

	if (w->next_ns == 0 || now_ns < w->next_ns)
		return KN_CAUSE_NONE;
	w->next_ns = 0;
	if (rests(w, cell->init_pid)) {
		w->memory_ns = 0;
		return KN_CAUSE_NONE;
	}
	if (w->cpu_limit_ns || w->counts)
		cause = look_cpu(w, g, cell, now_ns);
	if (!w->memory_limit || cause != KN_CAUSE_NONE)
		return cause;
	if (now_ns >= w->memory_ns)
		cause = look_memory(w, cell, now_ns);
	set_next(w, w->memory_ns);
	return cause;
}
