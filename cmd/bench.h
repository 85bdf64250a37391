/* cmd/bench.h: what the measures of `bench` share.
 *
 * Each figure is taken beside its floor, its peer or its target on this machine, in
 * this run, in rounds that take turns: what disturbs one disturbs the other. A ratio
 * is the median of the rounds' ratios, and its spread stands beside it. What cannot be
 * measured here says why, and no number is made up for it.
 */
#ifndef KN_CMD_BENCH_H
#define KN_CMD_BENCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "ipc/err.h"
#include "sandbox/host.h"
#include "supervisor/task_env.h"

struct kn_outcome;
struct kn_policy;

enum {
	KN_BENCH_ROUNDS = 5,
	KN_BENCH_ROUNDS_MAX = 50,
	KN_BENCH_ROWS_MAX = 96,
};

/* ---- numbers (bench_stat.c) ---- */

/* Values of one thing, in the order in which they came. Zero value: empty. */
struct kn_series {
	double *v;
	size_t n, room;
};
void kn_series_add(struct kn_series *s, double x); /* out of memory: leaves it out */
void kn_series_fini(struct kn_series *s);
double kn_series_median(const struct kn_series *s);
/* p in 0..100: the value that at least p percent do not exceed. */
double kn_series_percentile(const struct kn_series *s, double p);
double kn_series_min(const struct kn_series *s);
double kn_series_max(const struct kn_series *s);

/* ---- figures (bench_stat.c) ---- */

enum kn_bench_met { KN_BENCH_OPEN, KN_BENCH_MET, KN_BENCH_MISSED };

struct kn_bench_row {
	const char *id, *unit;
	char what[96];
	char floor_name[48];
	bool has_ours, has_floor;
	double ours, ours_min, ours_max;
	double floor, floor_min, floor_max;
	double ratio, ratio_min, ratio_max;
	char target[24]; /* "" where there is none */
	enum kn_bench_met met;
	size_t n; /* rounds, or samples */
	char note[240];
};

struct kn_bench {
	/* asked for */
	bool json, quick;
	unsigned rounds;
	uint32_t only;	   /* 1 << number of the measure */
	const char *image; /* of docker's worker; NULL: none is measured */
	/* the world */
	char exe[64];  /* of this program, for exec from any child of ours */
	sigset_t mask; /* as it was at the start, for what we run */
	struct kn_host host;
	struct kn_policy *plain;  /* preset default */
	struct kn_policy *policy; /* the same with the task's program bound */
	struct kn_env env;
	char dir[64];	/* ours, private */
	int lock_fd;	/* of dir */
	char task[80];	/* the task's program there; inside it is KN_BENCH_TASK */
	uid_t drop_uid; /* as root: what a sandbox of ours would run as; else 0 */
	int signal;	/* that asked us to end, 0: none */
	/* the result */
	struct kn_bench_row rows[KN_BENCH_ROWS_MAX];
	size_t row_n;
	uint64_t start_ns;
};
#define KN_BENCH_TASK "/bench-task"

/* NULL never: beyond the last row that one is used again. */
struct kn_bench_row *kn_bench_row(struct kn_bench *b, const char *id, const char *unit,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void kn_bench_note(struct kn_bench_row *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Round i of ours beside round i of floor. */
void kn_bench_compare(struct kn_bench_row *r, const struct kn_series *ours,
    const struct kn_series *floor, const char *floor_name);
void kn_bench_alone(struct kn_bench_row *r, const struct kn_series *ours);
/* The ratio (or ours, if there is no floor) is to be at most, or at least, this. */
void kn_bench_at_most(struct kn_bench_row *r, double x);
void kn_bench_at_least(struct kn_bench_row *r, double x);
void kn_bench_block(struct kn_bench *b); /* signals that end us wait until asked for */
/* True when one has come. */
bool kn_bench_ending(struct kn_bench *b);
/* A round was run; whether there is time for another: not past budget_ms, unless the
 * median would have less than three. */
bool kn_bench_another(
    struct kn_bench *b, unsigned done, uint64_t since_ns, unsigned budget_ms);
/* Sleep; false if a signal came. */
bool kn_bench_wait(struct kn_bench *b, unsigned ms);

/* ---- bare processes, side by side (bench_spawn.c) ---- */

struct kn_bench_cmd {
	const char *path;
	const char *const *argv;
	int lane_arg;		 /* this argument gets a value per lane: */
	const char *lane_prefix; /* then lane_first, lane_first + 1 ...; NULL: none */
	int lane_first;
	const int *rewind; /* descriptors to be passed on, each read from its start */
	size_t rewind_n;
	uid_t uid; /* of the lanes; 0: ours */
	int lanes; /* processes at one time */
	int n;	   /* in all */
};
/* By posix_spawn and waitpid. Each must exit with 0. out_ms: from the start shot to
 * the end of the last one. */
int kn_bench_spawn(
    struct kn_bench *b, const struct kn_bench_cmd *c, double *out_ms, struct kn_err *e);
/* PATH; NULL if there is none. out: room for it. */
const char *kn_bench_find(const char *name, char *out, size_t n);

/* ---- our pool in this process (bench_pool.c) ---- */

struct kn_bench_pool {
	const struct kn_policy *policy;
	uint32_t workers;
	bool no_steal, no_cgroups;
	int warm, n; /* tasks before, and while, the clock runs */
	bool one_by_one;
	/* Fills argv of task i, -1 for one of the warm-up; returns its hard_ms, 0: the
	 * policy's. */
	uint32_t (*task)(void *ctx, int i, const char *argv[4]);
	/* NULL: every task must be ok. us: from the submission to the answer. */
	void (*answer)(void *ctx, int i, const struct kn_outcome *o, double us);
	void *ctx;
	/* out */
	double ms; /* from the first submission after the warm-up to the last answer */
	uint64_t stolen;
	bool had_cgroups;
};
int kn_bench_pool(struct kn_bench *b, struct kn_bench_pool *p, struct kn_err *e);

/* ---- this program as a child (bench_child.c) ---- */

struct kn_bench_child {
	bool module; /* calls of the bench's module in place of commands */
	int pid, in, out;
	char buf[65536];
	size_t at, end;
};
/* The module that is called, as a file. */
int kn_bench_module_file(struct kn_bench *b, char *out, size_t n, struct kn_err *e);
/* run --tasks - */
int kn_bench_child_start(
    struct kn_bench *b, struct kn_bench_child *c, unsigned workers, struct kn_err *e);
/* Feed n tasks of argv (JSON; of a module: the name and what follows it), ids from
 * `from` on, and await their results, which must be ok. out_workers, if not NULL, gets
 * a bit for each worker that answered. */
int kn_bench_child_tasks(struct kn_bench_child *c, const char *argv, unsigned from,
    unsigned n, uint32_t *out_workers, struct kn_err *e);
/* End its input, await it. Accepts one that never started. */
int kn_bench_child_end(struct kn_bench_child *c, struct kn_err *e);
/* One command with debug lines, in that image unless it is NULL; what it says on stderr
 * goes to out. */
int kn_bench_child_lifecycle(struct kn_bench *b, const char *launcher,
    const char *image, char *out, size_t n, struct kn_err *e);

/* ---- looking at processes (bench_proc.c) ---- */

/* The number after key in a file of /proc/PID; -1 if it cannot be had. */
long kn_bench_proc_number(int pid, const char *file, const char *key);
/* All processes below pid, itself first. Returns how many. */
size_t kn_bench_proc_tree(int pid, int *out, size_t max);
struct kn_bench_ran { /* of one process or of many */
	double cpu_ms;
	long switches_voluntary, switches_other;
};
/* False: it is gone. */
bool kn_bench_proc_ran(int pid, struct kn_bench_ran *out);

/* ---- the measures ---- */

void kn_bench_start(struct kn_bench *b);  /* M1 */
void kn_bench_exec(struct kn_bench *b);	  /* M2 */
void kn_bench_peers(struct kn_bench *b);  /* M3 */
void kn_bench_trip(struct kn_bench *b);	  /* M4a, M4b and M5 */
void kn_bench_flow(struct kn_bench *b);	  /* M6 */
void kn_bench_bytes(struct kn_bench *b);  /* M7 */
void kn_bench_idle(struct kn_bench *b);	  /* M8 and M13 */
void kn_bench_kill(struct kn_bench *b);	  /* M9 */
void kn_bench_steal(struct kn_bench *b);  /* M10 */
void kn_bench_long(struct kn_bench *b);	  /* M11 */
void kn_bench_cold(struct kn_bench *b);	  /* M12 */
void kn_bench_filter(struct kn_bench *b); /* M14 */
void kn_bench_claim(struct kn_bench *b);  /* M15 */
void kn_bench_scale(struct kn_bench *b);  /* M15 */
bool kn_bench_wants(const struct kn_bench *b, unsigned m);

/* ---- the report (report_bench.c) ---- */

/* Fresh text; NULL when out of memory. */
char *kn_report_bench_table(const struct kn_bench *b);
char *kn_report_bench_json(const struct kn_bench *b);
/* Other sandboxes that are looked for. NULL-terminated. */
extern const char *const kn_bench_peer_names[];

#endif
