/* sandbox/stub/watch.c: looking at a cell through /proc and the cgroup. */
#include "sandbox/stub/watch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "ipc/clock.h"
#include "sandbox/stub/cgroup.h"
#include "sandbox/stub/sys.h"
#include "sandbox/stub/text.h"

enum {
	TICK_HZ = 100,	     /* USER_HZ, the same on every machine we know */
	STAT_BYTES = 1024,   /* /proc/<pid>/stat */
	ROLLUP_BYTES = 2048, /* /proc/<pid>/smaps_rollup */
	PAGE_BYTES = 4096,
};
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

/* ---- one process ---- */

struct stat_fields {
	char state;
	int ppid;
	uint64_t threads;
	uint64_t waited_ticks; /* user and system time of children it waited for */
};

static long
read_file(int proc_fd, const char *pid, const char *name, char *buf, size_t n)
{
	char path[64];
	struct kn_text t = { path, sizeof path, 0 };
	long got;
	int fd;

	kn_text_str(&t, pid);
	kn_text_str(&t, "/");
	kn_text_str(&t, name);
	fd = kn_sys_openat(proc_fd, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	got = kn_sys_read(fd, buf, n);
	kn_sys_close(fd);
	return got;
}

/* The fields follow the last ')': a command's name may hold anything. */
static bool
read_stat(int proc_fd, const char *pid, struct stat_fields *out)
{
	char buf[STAT_BYTES];
	long n = read_file(proc_fd, pid, "stat", buf, sizeof buf);
	const char *p, *end;
	size_t used;

	if (n <= 0)
		return false;
	end = buf + n;
	p = memrchr(buf, ')', (size_t)n);
	if (!p)
		return false;
	memset(out, 0, sizeof *out);
	/* Field 3 (state) comes next; numbers may be negative. */
	for (int field = 3; field <= 20; field++) {
		uint64_t v;

		p = memchr(p, ' ', (size_t)(end - p));
		if (!p)
			return false;
		p++;
		v = kn_text_number(p, (size_t)(end - p), &used);
		if (field == 3)
			out->state = p < end ? *p : '\0';
		else if (field == 4)
			out->ppid = (int)v;
		else if (field == 20)
			out->threads = v;
		else if (field == 16 || field == 17)
			out->waited_ticks += v;
	}
	return true;
}

/* Processor time of a process, all threads, from its own clock: exact where the numbers
 * in /proc are rounded down to ticks. */
static uint64_t
process_cpu_ns(int pid)
{
	return kn_sys_clock_ns((int)((~(unsigned)pid << 3) | 2));
}

/* Resident pages that are not of files: upper bound, shared ones count each time. */
static uint64_t
resident_bytes(int proc_fd, const char *pid)
{
	char buf[128];
	long n = read_file(proc_fd, pid, "statm", buf, sizeof buf);
	uint64_t v[3] = { 0, 0, 0 };
	size_t at = 0, used;

	for (int i = 0; i < 3 && n > 0 && at < (size_t)n; i++) {
		v[i] = kn_text_number(buf + at, (size_t)n - at, &used);
		at += used + 1;
	}
	/* resident counts shared memory too, and so do we: /dev/shm and memfd are
	 * memory. Mapped files come with it; the exact look takes them out. */
	return v[1] * PAGE_BYTES;
}

static uint64_t
rollup_kib(const char *buf, size_t n, const char *key)
{
	size_t key_n = strlen(key), used;
	const char *p = memmem(buf, n, key, key_n);

	if (!p)
		return 0;
	p += key_n;
	while (p < buf + n && *p == ' ')
		p++;
	return kn_text_number(p, (size_t)(buf + n - p), &used);
}

/* Its share of the pages, each page counted once over all processes; where the process
 * does not let itself be read, all of them. */
static uint64_t
exact_bytes(int proc_fd, const char *pid)
{
	char buf[ROLLUP_BYTES];
	long n = read_file(proc_fd, pid, "smaps_rollup", buf, sizeof buf);

	if (n <= 0)
		return resident_bytes(proc_fd, pid);
	return (rollup_kib(buf, (size_t)n, "Pss_Anon:") +
		   rollup_kib(buf, (size_t)n, "Pss_Shmem:")) *
	       1024;
}

/* ---- all of them ---- */

struct look {
	struct kn_watch *w;
	int init_pid;
	uint64_t cpu_ns, bytes;
	uint64_t begun_ns, until_ns; /* of an exact one */
	int after;		     /* where it goes on */
	bool paused;
	uint32_t read_n;
	int first_child;
};

static void
each_process(struct look *l, void (*visit)(struct look *, const char *name, int pid))
{
	static _Alignas(16) char buf[8192];
	int fd = l->w->proc_fd;
	long n;

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
add_cpu(struct look *l, const char *name, int pid)
{
	struct stat_fields s;

	l->cpu_ns += process_cpu_ns(pid);
	if (read_stat(l->w->proc_fd, name, &s))
		l->cpu_ns += s.waited_ticks * (KN_S_NS / TICK_HZ);
}

static void
add_memory(struct look *l, const char *name, int pid)
{
	if (pid == l->init_pid) /* its pages are the stub's */
		return;
	l->bytes += resident_bytes(l->w->proc_fd, name);
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
	l->w->exact.bytes += exact_bytes(l->w->proc_fd, name);
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
	struct stat_fields s;

	if (read_stat(l->w->proc_fd, name, &s) && s.ppid == l->init_pid &&
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

	each_process(&l, kill_one);
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
	struct stat_fields stat;
};

static void
see_only(struct look *l, const char *name, int pid)
{
	struct only *o = (void *)((char *)l - offsetof(struct only, l));

	if (pid != l->init_pid &&
	    (++o->n > 1 || !read_stat(l->w->proc_fd, name, &o->stat)))
		o->n = 2;
}

static bool
has_only_one(struct kn_watch *w, int init_pid, struct stat_fields *out)
{
	struct only o = { .l = { .w = w, .init_pid = init_pid } };

	each_process(&o.l, see_only);
	*out = o.stat;
	return o.n == 1 && o.stat.ppid == init_pid;
}

bool
kn_watch_is_single(struct kn_watch *w, int init_pid)
{
	struct stat_fields s;

	return has_only_one(w, init_pid, &s) && s.threads == 1;
}

/* Nothing of it runs, and init will tell if it does again: its parent is told. */
static bool
rests(struct kn_watch *w, int init_pid)
{
	struct stat_fields s;

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

	set_next(w, soonest(now_ns, in_ns, LOOK_MEM_MIN_NS, LOOK_MEM_MAX_NS));
}

void
kn_watch_begin(struct kn_watch *w, const struct kn_cg *g, const struct kn_job_limits *l,
    uint64_t now_ns)
{
	w->cpu_limit_ns = l->cpu_ms < UINT64_MAX / KN_MS_NS ? l->cpu_ms * KN_MS_NS : 0;
	w->memory_limit = kn_cg_holds_memory(g) ? 0 : l->memory;
	w->next_ns = 0;
	memset(&w->exact, 0, sizeof w->exact);
	w->exact.read_ns = l->hard_ms && l->hard_ms * KN_MS_NS / 8 < LOOK_FIRST_NS
			       ? l->hard_ms * KN_MS_NS / 8
			       : LOOK_FIRST_NS;
	if (w->cpu_limit_ns)
		plan_cpu(w, 0, now_ns);
	if (w->memory_limit)
		plan_memory(w, 0, now_ns);
}

void
kn_watch_again(struct kn_watch *w, uint64_t now_ns)
{
	if (w->next_ns == 0 && (w->cpu_limit_ns || w->memory_limit))
		w->next_ns = now_ns + LOOK_MEM_MIN_NS;
}

static uint64_t
cpu_used_ns(struct kn_watch *w, const struct kn_cg *g, uint64_t init_cpu_ns)
{
	struct look l = { .w = w };

	if (kn_cg_counts_cpu(g))
		l.cpu_ns = kn_cg_cpu_ns(g);
	else
		each_process(&l, add_cpu);
	return l.cpu_ns > init_cpu_ns ? l.cpu_ns - init_cpu_ns : 0;
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
		set_next(
		    w, now_ns + (took_ns > LOOK_SLICE_NS ? took_ns : LOOK_SLICE_NS));
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
	set_next(w, kn_clock_now() + LOOK_SLICE_NS);
	return KN_CAUSE_NONE;
}

enum kn_cause
kn_watch_look(struct kn_watch *w, const struct kn_cg *g, const struct kn_watched *cell,
    uint64_t now_ns)
{
	uint64_t used;

	if (w->next_ns == 0 || now_ns < w->next_ns)
		return KN_CAUSE_NONE;
	w->next_ns = 0;
	if (rests(w, cell->init_pid))
		return KN_CAUSE_NONE;
	if (w->cpu_limit_ns) {
		used = cpu_used_ns(w, g, cell->init_cpu_ns);
		if (used >= w->cpu_limit_ns)
			return KN_CAUSE_CPU;
		plan_cpu(w, used, now_ns);
	}
	return w->memory_limit ? look_memory(w, cell, now_ns) : KN_CAUSE_NONE;
}
