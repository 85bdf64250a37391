/* sandbox/stub/cgroup.c: per-task limits and figures of the worker's cgroup. */
#include "sandbox/stub/cgroup.h"

#include <errno.h>
#include <string.h>

#include "sandbox/stub/sys.h"
#include "sandbox/stub/text.h"

enum {
	FILE_MAX_BYTES = 1024,
	SMALL_BYTES = 1 << 20, /* of a charge: not worth to wait for */
	/* The kernel sums its statistics up when a processor's part has changed by this
	 * much (64 pages). */
	STAT_LAG_BYTES = 64 * 4096,
	OOM_SLACK_BYTES = 1 << 20, /* of a limit: that much may have been free */
};
#define NO_LIMIT UINT64_MAX

void
kn_cg_init(struct kn_cg *g, const struct kn_boot *b, const int fd[KN_BOOT_FD_N])
{
	memset(g, 0, sizeof *g);
	memcpy(g->fd, fd, sizeof g->fd);
	g->v2_mem = b->flags & KN_BOOT_CGROUP_V2_MEM;
	g->v2_cpu = b->flags & KN_BOOT_CGROUP_V2_CPU;
	g->may_swap = b->flags & KN_BOOT_SWAP;
	g->mem_overhead = b->mem_overhead;
	g->worker_mem = b->worker_mem;
	g->pids_overhead = b->pids_overhead;
	g->shmem_slack = SMALL_BYTES;
}

bool
kn_cg_holds_memory(const struct kn_cg *g)
{
	return g->fd[KN_BOOT_FD_MEM_LIMIT] >= 0;
}

bool
kn_cg_holds_pids(const struct kn_cg *g)
{
	return g->fd[KN_BOOT_FD_PIDS_MAX] >= 0;
}

bool
kn_cg_counts_cpu(const struct kn_cg *g)
{
	return g->fd[KN_BOOT_FD_CPU_USAGE] >= 0;
}

/* ---- files ---- */

/* The number after `key` (a whole word at the start of a line), or of the whole file
 * where key is NULL. false if it cannot be had. */
static bool
read_number(int fd, const char *key, uint64_t *out)
{
	char buf[FILE_MAX_BYTES];
	long n = fd < 0 ? -EBADF : kn_sys_pread(fd, buf, sizeof buf, 0);
	size_t used, key_n = key ? strlen(key) : 0;

	if (n <= 0)
		return false;
	for (const char *p = buf, *end = buf + n; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t line = (size_t)((nl ? nl : end) - p);

		if (line > key_n && !memcmp(p, key ? key : "", key_n)) {
			uint64_t v = kn_text_number(p + key_n, line - key_n, &used);
			if (used > 0) {
				*out = v;
				return true;
			}
		}
		p += line + 1;
	}
	return false;
}

static int
write_limit(int fd, uint64_t v, const char *none)
{
	char buf[24];
	struct kn_text t = { buf, sizeof buf, 0 };
	long r;

	if (v == NO_LIMIT)
		kn_text_str(&t, none);
	else
		kn_text_u64(&t, v);
	r = kn_sys_pwrite(fd, buf, t.n, 0);
	return r < 0 ? (int)r : 0;
}

/* ---- limits ---- */

static uint64_t
sum(uint64_t a, uint64_t b)
{
	return a > NO_LIMIT - b ? NO_LIMIT : a + b;
}

static int
set_mem(struct kn_cg *g, uint64_t limit)
{
	int r;

	if (limit == g->limit)
		return 0;
	r = write_limit(g->fd[KN_BOOT_FD_MEM_LIMIT], limit, g->v2_mem ? "max" : "-1");
	if (r == 0)
		g->limit = limit;
	return r;
}

/* v1 counts memory and swap together and wants it no lower than memory alone; v2 counts
 * swap by itself, and a task gets none. */
static int
set_swap(struct kn_cg *g, uint64_t limit)
{
	uint64_t want = g->v2_mem ? 0 : limit;
	int r;

	if (g->fd[KN_BOOT_FD_MEM_SWAP] < 0 || (g->swap == want && g->limit))
		return 0;
	r = write_limit(g->fd[KN_BOOT_FD_MEM_SWAP], want, "-1");
	if (r == 0)
		g->swap = want;
	return r;
}

static int
set_memory(struct kn_cg *g, uint64_t ask)
{
	uint64_t limit = NO_LIMIT;
	int r;

	if (ask && g->worker_mem && ask > g->worker_mem)
		ask = g->worker_mem;
	if (ask || g->worker_mem)
		limit = sum(ask ? ask : g->worker_mem, g->mem_overhead);
	if (g->v2_mem || (g->limit && limit > g->limit)) {
		r = set_swap(g, limit);
		return r < 0 ? r : set_mem(g, limit);
	}
	r = set_mem(g, limit);
	return r < 0 ? r : set_swap(g, limit);
}

static int
set_pids(struct kn_cg *g, uint64_t ask)
{
	uint64_t limit = ask ? sum(ask, g->pids_overhead) : NO_LIMIT;
	int r;

	if (limit == g->pids)
		return 0;
	r = write_limit(g->fd[KN_BOOT_FD_PIDS_MAX], limit, "max");
	if (r == 0)
		g->pids = limit;
	return r;
}

/* ---- counters ---- */

static uint64_t
cpu_now(const struct kn_cg *g)
{
	uint64_t v = 0;

	if (!read_number(
		g->fd[KN_BOOT_FD_CPU_USAGE], g->v2_cpu ? "usage_usec " : NULL, &v))
		return 0;
	return g->v2_cpu ? v * 1000 : v;
}

static uint32_t
event_now(const struct kn_cg *g, const char *key)
{
	uint64_t v = 0;

	(void)read_number(g->fd[KN_BOOT_FD_MEM_EVENTS], key, &v);
	return (uint32_t)v;
}

/* Whether a kill for want of memory may have been for our own limit. Of v2 the kernel
 * says so: "oom" counts only what met the limit of this group, "oom_kill" those of a
 * group around it and of the machine too. Of v1 the peak says that it was not, as the
 * kernel kills when a few pages do not fit; where there is swap, what a task had
 * swapped out counts towards the limit, and is in no peak. */
static bool
met_own_limit(const struct kn_cg *g, uint64_t peak)
{
	if (g->v2_mem)
		return event_now(g, "oom ") != g->met0;
	if (g->limit == NO_LIMIT)
		return false;
	return g->may_swap || !peak || sum(peak, OOM_SLACK_BYTES) >= g->limit;
}

static void
note_counters(struct kn_cg *g)
{
	int peak = g->fd[KN_BOOT_FD_MEM_PEAK];

	/* After a reset the peak is what is charged now: our part, and page cache of
	 * earlier tasks that the kernel gives up under pressure. */
	g->peak_reset = peak >= 0 && kn_sys_pwrite(peak, "0", 1, 0) > 0;
	g->peak0 = g->pids_peak0 = 0;
	(void)read_number(peak, NULL, &g->peak0);
	(void)read_number(g->fd[KN_BOOT_FD_PIDS_PEAK], NULL, &g->pids_peak0);
	g->oom0 = event_now(g, "oom_kill ");
	g->met0 = event_now(g, "oom ");
	if (kn_cg_counts_cpu(g)) {
		g->cpu0_ns = cpu_now(g);
		g->own0_ns = kn_sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	}
}

int
kn_cg_begin(struct kn_cg *g, const struct kn_job_limits *l, const char **out_what)
{
	int r;

	if (kn_cg_holds_memory(g)) {
		*out_what = "memory limit of the cgroup";
		r = set_memory(g, l->memory);
		if (r < 0)
			return r;
	}
	if (kn_cg_holds_pids(g)) {
		*out_what = "process limit of the cgroup";
		r = set_pids(g, l->pids);
		if (r < 0)
			return r;
	}
	note_counters(g);
	return 0;
}

void
kn_cg_rest_is_now(struct kn_cg *g, uint32_t cpus)
{
	g->shmem_slack = SMALL_BYTES + (uint64_t)cpus * STAT_LAG_BYTES;
	if (!read_number(g->fd[KN_BOOT_FD_MEM_STAT], "shmem ", &g->shmem_rest))
		g->shmem_rest = 0;
}

bool
kn_cg_at_rest(const struct kn_cg *g)
{
	uint64_t now;

	return g->grew <= SMALL_BYTES ||
	       !read_number(g->fd[KN_BOOT_FD_MEM_STAT], "shmem ", &now) ||
	       now <= sum(g->shmem_rest, g->shmem_slack);
}

uint64_t
kn_cg_cpu_ns(const struct kn_cg *g)
{
	uint64_t all, own;

	if (!kn_cg_counts_cpu(g))
		return 0;
	all = cpu_now(g) - g->cpu0_ns;
	own = kn_sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - g->own0_ns;
	return all > own ? all - own : 0;
}

void
kn_cg_add_unwaited(const struct kn_cg *g, struct kn_job_result *r, uint64_t init_cpu_ns)
{
	uint64_t counted_us = kn_cg_cpu_ns(g) / 1000;
	uint64_t known_us = r->user_us + r->system_us + init_cpu_ns / 1000;

	/* Below a millisecond it is the launcher, or the clock. */
	if (counted_us > known_us + 1000)
		r->user_us += counted_us - known_us;
}

void
kn_cg_end(struct kn_cg *g, struct kn_job_result *r)
{
	uint64_t peak = 0, pids = 0;

	(void)read_number(g->fd[KN_BOOT_FD_MEM_PEAK], NULL, &peak);
	g->grew = !g->peak_reset ? UINT64_MAX : peak > g->peak0 ? peak - g->peak0 : 0;
	/* The kernel charges in batches: a small task may live on what is charged
	 * already. A peak that cannot be reset tells only when it rose. */
	if (g->peak_reset)
		r->memory_peak = peak > g->peak0 ? peak - g->peak0 : KN_PAGE;
	else if (peak > g->peak0)
		r->memory_peak = peak;
	if (read_number(g->fd[KN_BOOT_FD_PIDS_PEAK], NULL, &pids) &&
	    pids > g->pids_peak0 && pids > g->pids_overhead)
		r->pids_peak = pids - g->pids_overhead;
	r->oom_kills = event_now(g, "oom_kill ") - g->oom0;
	r->oom_outside = r->oom_kills && !met_own_limit(g, peak);
	/* What earlier tasks had left in the page cache, and the kernel gave up for
	 * this one, is missing above: but who met its limit had all of it. */
	if (r->oom_kills && !r->oom_outside && r->memory_peak && g->limit != NO_LIMIT &&
	    g->limit > g->mem_overhead && peak >= g->limit - g->mem_overhead &&
	    r->memory_peak < g->limit - g->mem_overhead)
		r->memory_peak = g->limit - g->mem_overhead;
}
