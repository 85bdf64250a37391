/* cmd/bench_stat.c: series of values, rows of the result, and when to stop. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/bench.h"
#include "ipc/clock.h"

enum { ROUNDS_AT_LEAST = 3 };

/* ---- series ---- */

void
kn_series_add(struct kn_series *s, double x)
{
	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 32;
		double *v = realloc(s->v, room * sizeof *v);

		if (!v)
			return;
		s->v = v;
		s->room = room;
	}
	s->v[s->n++] = x;
}

void
kn_series_fini(struct kn_series *s)
{
	free(s->v);
	memset(s, 0, sizeof *s);
}

static int
by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The k-th smallest, from 0; NAN where there is none. */
static double
ranked(const struct kn_series *s, size_t k)
{
	double *v = s->n ? malloc(s->n * sizeof *v) : NULL, x;

	if (!v)
		return NAN;
	memcpy(v, s->v, s->n * sizeof *v);
	qsort(v, s->n, sizeof *v, by_size);
	x = v[k < s->n ? k : s->n - 1];
	free(v);
	return x;
}

double
kn_series_median(const struct kn_series *s)
{
	double x = ranked(s, s->n / 2);

	return s->n % 2 || !s->n ? x : (x + ranked(s, s->n / 2 - 1)) / 2;
}

double
kn_series_percentile(const struct kn_series *s, double p)
{
	double at = p / 100 * (double)s->n;
	size_t k = (size_t)at;

	k += (double)k < at; /* up to a whole number */
	return ranked(s, k < 1 ? 0 : k - 1);
}

double
kn_series_min(const struct kn_series *s)
{
	return ranked(s, 0);
}

double
kn_series_max(const struct kn_series *s)
{
	return ranked(s, s->n ? s->n - 1 : 0);
}

/* ---- rows ---- */

struct kn_bench_row *
kn_bench_row(struct kn_bench *b, const char *id, const char *unit, const char *fmt, ...)
{
	struct kn_bench_row *r;
	va_list ap;

	r = &b->rows[b->row_n < KN_BENCH_ROWS_MAX ? b->row_n++ : b->row_n - 1];
	*r = (struct kn_bench_row){ .id = id, .unit = unit };
	va_start(ap, fmt);
	vsnprintf(r->what, sizeof r->what, fmt, ap);
	va_end(ap);
	return r;
}

void
kn_bench_note(struct kn_bench_row *r, const char *fmt, ...)
{
	size_t n = strlen(r->note);
	va_list ap;

	if (n > 0 && n + 3 < sizeof r->note)
		n += (size_t)snprintf(r->note + n, sizeof r->note - n, "; ");
	va_start(ap, fmt);
	vsnprintf(r->note + n, sizeof r->note - n, fmt, ap);
	va_end(ap);
}

void
kn_bench_alone(struct kn_bench_row *r, const struct kn_series *ours)
{
	if (ours->n == 0)
		return;
	r->has_ours = true;
	r->ours = kn_series_median(ours);
	r->ours_min = kn_series_min(ours);
	r->ours_max = kn_series_max(ours);
	r->n = ours->n;
}

void
kn_bench_compare(struct kn_bench_row *r, const struct kn_series *ours,
    const struct kn_series *floor, const char *floor_name)
{
	struct kn_series ratio = { 0 };

	snprintf(r->floor_name, sizeof r->floor_name, "%s", floor_name);
	kn_bench_alone(r, ours);
	for (size_t i = 0; i < ours->n && i < floor->n; i++)
		if (floor->v[i] > 0)
			kn_series_add(&ratio, ours->v[i] / floor->v[i]);
	if (ratio.n > 0) {
		r->has_floor = true;
		r->floor = kn_series_median(floor);
		r->floor_min = kn_series_min(floor);
		r->floor_max = kn_series_max(floor);
		r->ratio = kn_series_median(&ratio);
		r->ratio_min = kn_series_min(&ratio);
		r->ratio_max = kn_series_max(&ratio);
		r->n = ratio.n;
	}
	kn_series_fini(&ratio);
}

static void
judge(struct kn_bench_row *r, const char *op, double x, bool less)
{
	/* with a floor named, only the ratio can meet a target */
	bool known = r->floor_name[0] ? r->has_floor : r->has_ours;
	double v = r->floor_name[0] ? r->ratio : r->ours;

	snprintf(r->target, sizeof r->target, "%s %g", op, x);
	if (known)
		r->met = (less ? v <= x : v >= x) ? KN_BENCH_MET : KN_BENCH_MISSED;
}

void
kn_bench_at_most(struct kn_bench_row *r, double x)
{
	judge(r, "<=", x, true);
}

void
kn_bench_at_least(struct kn_bench_row *r, double x)
{
	judge(r, ">=", x, false);
}

/* ---- time and signals ---- */

static void
ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

static bool
take_signal(struct kn_bench *b, const struct timespec *t)
{
	sigset_t set;
	int signo;

	ending_signals(&set);
	do
		signo = sigtimedwait(&set, NULL, t);
	while (signo < 0 && errno == EINTR);
	if (signo > 0 && !b->signal)
		b->signal = signo;
	return b->signal != 0;
}

void
kn_bench_block(struct kn_bench *b)
{
	sigset_t set;

	ending_signals(&set);
	sigprocmask(SIG_BLOCK, &set, &b->mask);
}

bool
kn_bench_ending(struct kn_bench *b)
{
	const struct timespec now = { 0, 0 };

	return b->signal || take_signal(b, &now);
}

bool
kn_bench_wait(struct kn_bench *b, unsigned ms)
{
	const struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	return !b->signal && !take_signal(b, &t);
}

bool
kn_bench_another(
    struct kn_bench *b, unsigned done, uint64_t since_ns, unsigned budget_ms)
{
	if (kn_bench_ending(b) || done >= b->rounds)
		return false;
	return done < ROUNDS_AT_LEAST ||
	       kn_clock_now() - since_ns < (uint64_t)budget_ms * KN_MS_NS;
}
