/* cmd/progress.c: see progress.h. */
#include "cmd/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"

enum { TEXT_MAX = 1024 };

void
kn_progress_open(struct kn_progress *p, bool quiet, bool json, bool calls)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	*p = (struct kn_progress){
		.start_ns = kn_clock_now(), .json = json, .calls = calls
	};
	p->line = !quiet && !json && isatty(STDERR_FILENO) &&
		  (!term || strcmp(term, "dumb") != 0);
	p->color = p->line && (!no_color || no_color[0] == '\0');
	p->shown_ns = p->start_ns;
}

void
kn_progress_count(struct kn_progress *p, const struct knit_outcome *o)
{
	p->verdicts[o->verdict]++;
	p->cpu_us += o->cpu_us;
}

uint64_t
kn_progress_total(const struct kn_progress *p)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < KNIT_VERDICT_N; i++)
		n += p->verdicts[i];
	return n;
}

static void
say(const char *text)
{
	(void)kn_fd_write_all(STDERR_FILENO, text, strlen(text));
}

static int
columns(void)
{
	struct winsize ws = { 0 };

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) < 0 || ws.ws_col < 20)
		return 80;
	return ws.ws_col < TEXT_MAX / 2 ? ws.ws_col : TEXT_MAX / 2;
}

void
kn_progress_show(struct kn_progress *p, uint64_t running, uint64_t waiting)
{
	uint64_t now = kn_clock_now(), done = kn_progress_total(p);
	char text[TEXT_MAX], out[TEXT_MAX + 32];
	int n;

	if (!p->line)
		return;
	if (now > p->shown_ns) {
		double rate =
		    (double)(done - p->shown_done) * 1e9 / (double)(now - p->shown_ns);

		p->rate = p->rate > 0 ? p->rate * 0.7 + rate * 0.3 : rate;
	}
	p->shown_ns = now;
	p->shown_done = done;
	n = snprintf(text, sizeof text, "%llu done, %llu running, %llu waiting, %.0f/s",
	    (unsigned long long)done, (unsigned long long)running,
	    (unsigned long long)waiting, p->rate);
	for (unsigned i = 0; i < KNIT_VERDICT_N; i++) {
		if (p->verdicts[i] && n < TEXT_MAX / 2)
			n += snprintf(text + n, sizeof text - (size_t)n, "  %s %llu",
			    knit_verdict_name((enum knit_verdict)i),
			    (unsigned long long)p->verdicts[i]);
	}
	text[columns() - 1] = '\0'; /* a line that wraps could not be taken away */
	snprintf(out, sizeof out, "\r%s%s%s\x1b[K", p->color ? "\x1b[2m" : "", text,
	    p->color ? "\x1b[0m" : "");
	say(out);
	p->shown = true;
}

void
kn_progress_clear(struct kn_progress *p)
{
	if (p->shown)
		say("\r\x1b[K");
	p->shown = false;
}

static const char *
color_of(const struct kn_progress *p, unsigned verdict)
{
	if (!p->color)
		return "";
	return verdict == KNIT_OK ? "\x1b[32m" : "\x1b[31m";
}

/* For a reader of JSON lines, under the names of --report. */
static void
summary_json(const struct kn_progress *p, const struct knit_pool_counts *c)
{
	char text[48 * (KNIT_VERDICT_N + 8)];
	size_t n;

	n = (size_t)snprintf(text, sizeof text,
	    "{\"who\":\"knit-sandbox\",\"summary\":{\"answered\":%llu,\"verdicts\":{",
	    (unsigned long long)kn_progress_total(p));
	for (unsigned i = 0, first = 1; i < KNIT_VERDICT_N; i++) {
		if (!p->verdicts[i])
			continue;
		n += (size_t)snprintf(text + n, sizeof text - n, "%s\"%s\":%llu",
		    first ? "" : ",", knit_verdict_name((enum knit_verdict)i),
		    (unsigned long long)p->verdicts[i]);
		first = 0;
	}
	n += (size_t)snprintf(text + n, sizeof text - n, "},\"wall_ms\":%llu",
	    (unsigned long long)((kn_clock_now() - p->start_ns) / KN_MS_NS));
	if (!p->calls)
		n += (size_t)snprintf(text + n, sizeof text - n, ",\"cpu_ms\":%llu",
		    (unsigned long long)(p->cpu_us / 1000));
	snprintf(text + n, sizeof text - n,
	    ",\"workers\":%u,\"workers_lost\":%llu,\"failed_launches\":%llu}}\n",
	    c->workers, (unsigned long long)c->workers_lost,
	    (unsigned long long)c->failed_launches);
	say(text);
}

void
kn_progress_summary(struct kn_progress *p, const struct knit_pool_counts *c)
{
	double wall = (double)(kn_clock_now() - p->start_ns) / 1e9;
	uint64_t total = kn_progress_total(p);
	char text[96 * (KNIT_VERDICT_N + 4)];
	size_t n = 0;

	if (p->json) {
		summary_json(p, c);
		return;
	}
	kn_progress_clear(p);
	for (unsigned i = 0; i < KNIT_VERDICT_N; i++) {
		if (p->verdicts[i])
			n += (size_t)snprintf(text + n, sizeof text - n,
			    "  %s%-18s%s %8llu\n", color_of(p, i),
			    knit_verdict_name((enum knit_verdict)i),
			    p->color ? "\x1b[0m" : "",
			    (unsigned long long)p->verdicts[i]);
	}
	n += (size_t)snprintf(text + n, sizeof text - n,
	    "  %-18s %8llu  in %.2f s, %.0f/s", "tasks", (unsigned long long)total,
	    wall, wall > 0 ? (double)total / wall : 0.0);
	if (!p->calls)
		n += (size_t)snprintf(text + n, sizeof text - n, ", %.2f s of CPU",
		    (double)p->cpu_us / 1e6);
	n += (size_t)snprintf(text + n, sizeof text - n, ", %u worker%s\n", c->workers,
	    c->workers == 1 ? "" : "s");
	if (c->workers_lost)
		n += (size_t)snprintf(text + n, sizeof text - n, "  %-18s %8llu\n",
		    "workers lost", (unsigned long long)c->workers_lost);
	if (c->failed_launches)
		snprintf(text + n, sizeof text - n, "  %-18s %8llu\n",
		    "failed launches", (unsigned long long)c->failed_launches);
	say(text);
}
