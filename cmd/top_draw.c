/* cmd/top_draw.c: the document of a server as lines of text.
 *
 * Ids are whatever clients call their tasks: control characters are made visible, and
 * lines are cut to the width of the terminal.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/top.h"
#include "ipc/err.h"

enum { LINE = 1024, ID_SHOWN = 40 };

struct page {
	FILE *f;
	const struct kn_top_look *look;
	int row;
};

static uint64_t
number(const json_t *o, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(o, key));

	return n > 0 ? (uint64_t)n : 0;
}

static const char *
text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "?";
}

/* Bytes of the first n columns: a character of more bytes is one. */
static size_t
cut(const char *s, int columns)
{
	size_t i = 0;

	for (int n = 0; s[i]; i++) {
		if ((s[i] & 0xc0) != 0x80 && n++ == columns)
			break;
	}
	return i;
}

/* The last row of a terminal stays empty: a newline there would scroll. */
static void __attribute__((format(printf, 3, 4)))
line(struct page *p, const char *color, const char *fmt, ...)
{
	char raw[LINE], clean[LINE];
	va_list ap;
	size_t n;

	if (p->look->rows && p->row >= p->look->rows - 1)
		return;
	va_start(ap, fmt);
	vsnprintf(raw, sizeof raw, fmt, ap);
	va_end(ap);
	kn_err_printable(clean, sizeof clean, raw, (int)strlen(raw));
	n = p->look->columns ? cut(clean, p->look->columns) : strlen(clean);
	if (p->look->color && color)
		fprintf(p->f, "\033[%sm%.*s\033[0m\n", color, (int)n, clean);
	else
		fprintf(p->f, "%.*s\n", (int)n, clean);
	p->row++;
}

static void
duration(char *out, size_t n, uint64_t ms)
{
	uint64_t s = ms / 1000;

	if (ms < 1000)
		snprintf(out, n, "%llums", (unsigned long long)ms);
	else if (s < 60)
		snprintf(out, n, "%llu.%llus", (unsigned long long)s,
		    (unsigned long long)(ms % 1000 / 100));
	else if (s < 3600)
		snprintf(out, n, "%llum%02llus", (unsigned long long)(s / 60),
		    (unsigned long long)(s % 60));
	else
		snprintf(out, n, "%lluh%02llum", (unsigned long long)(s / 3600),
		    (unsigned long long)(s % 3600 / 60));
}

static void
size(char *out, size_t n, uint64_t bytes)
{
	if (bytes == 0)
		snprintf(out, n, "-");
	else if (bytes < 1 << 20)
		snprintf(out, n, "%lluK", (unsigned long long)(bytes >> 10));
	else
		snprintf(out, n, "%lluM", (unsigned long long)(bytes >> 20));
}

/* ---- the head ---- */

static void
verdicts(struct page *p, const json_t *tasks)
{
	json_t *by = json_object_get(tasks, "verdicts"), *v;
	char all[LINE] = "";
	const char *name;
	size_t at = 0;

	json_object_foreach(by, name, v)
	{
		if (at < sizeof all)
			at +=
			    (size_t)snprintf(all + at, sizeof all - at, "%s%.40s %lld",
				at ? ", " : "", name, (long long)json_integer_value(v));
	}
	if (all[0])
		line(p, NULL, "answers: %s", all);
}

static void
head(struct page *p, const json_t *doc, struct kn_top_last *last)
{
	const json_t *tasks = json_object_get(doc, "tasks");
	uint64_t up = number(doc, "uptime_ms"), answered = number(tasks, "answered");
	uint64_t live = number(tasks, "live"), running = number(tasks, "running");
	char age[32], rate[48] = "";

	duration(age, sizeof age, up);
	line(p, "1", "knit-sandbox: %s for %s, pid %llu", text(doc, "state"), age,
	    (unsigned long long)number(doc, "pid"));
	if (last->known && up > last->uptime_ms && answered >= last->answered)
		snprintf(rate, sizeof rate, " (%.1f/s)",
		    (double)(answered - last->answered) * 1000.0 /
			(double)(up - last->uptime_ms));
	line(p, NULL,
	    "tasks: %llu running, %llu waiting, %llu answered%s, %llu abandoned; "
	    "connections: %llu",
	    (unsigned long long)running,
	    (unsigned long long)(live > running ? live - running : 0),
	    (unsigned long long)answered, rate,
	    (unsigned long long)number(tasks, "abandoned"),
	    (unsigned long long)number(doc, "connections"));
	verdicts(p, tasks);
	line(p, NULL, "workers: %llu started, %llu lost, %llu launches failed",
	    (unsigned long long)number(doc, "workers_started"),
	    (unsigned long long)number(doc, "workers_lost"),
	    (unsigned long long)number(doc, "launches_failed"));
	last->answered = answered;
}

/* ---- workers ---- */

static void
running(char *out, size_t n, const json_t *w)
{
	json_t *list = json_object_get(w, "tasks"), *t;
	uint64_t all = number(w, "running");
	size_t at = 0, i;
	char age[32];

	*out = '\0';
	json_array_foreach(list, i, t)
	{
		if (i == 3 || at >= n)
			break;
		duration(age, sizeof age, number(t, "ms"));
		at += (size_t)snprintf(out + at, n - at, "%s%.*s %s", i ? ", " : "",
		    ID_SHOWN, text(t, "id"), age);
	}
	if (all > 3 && at < n)
		snprintf(
		    out + at, n - at, " and %llu more", (unsigned long long)(all - 3));
}

static void
cpu(char *out, size_t n, const json_t *w, struct kn_top_last *last, size_t slot,
    uint64_t passed_ms)
{
	int64_t pid = (int64_t)number(w, "pid");
	uint64_t now = number(w, "cpu_ms"), was;

	snprintf(out, n, "-");
	if (slot >= sizeof last->worker / sizeof last->worker[0])
		return;
	was = last->worker[slot].cpu_ms;
	if (last->known && pid && last->worker[slot].pid == pid && now >= was &&
	    passed_ms > 0)
		snprintf(out, n, "%llu%%",
		    (unsigned long long)((now - was) * 100 / passed_ms));
	last->worker[slot].pid = pid;
	last->worker[slot].cpu_ms = now;
}

static void
worker(struct page *p, const json_t *w, struct kn_top_last *last, size_t slot,
    uint64_t passed_ms)
{
	char age[32] = "-", mem[32], use[32], what[LINE / 2];
	const char *state = text(w, "state"), *color = NULL;

	if (number(w, "pid"))
		duration(age, sizeof age, number(w, "age_ms"));
	size(mem, sizeof mem, number(w, "memory"));
	cpu(use, sizeof use, w, last, slot, passed_ms);
	running(what, sizeof what, w);
	if (strcmp(state, "busy") == 0)
		color = "32";
	else if (strcmp(state, "idle") != 0)
		color = "33";
	line(p, color, "%-6.8s %-8.10s %8llu %8s %9llu %5llu %6s %7s  %s",
	    text(w, "worker"), state, (unsigned long long)number(w, "pid"), age,
	    (unsigned long long)number(w, "answered"),
	    (unsigned long long)number(w, "waiting"), use, mem, what);
}

static void
pool(struct page *p, const json_t *o, struct kn_top_last *last, size_t *slot,
    uint64_t passed_ms)
{
	json_t *list = json_object_get(o, "workers"), *w;
	size_t i;

	line(p, NULL, "%s", "");
	line(p, NULL, "policy %.80s, %llu connections%s", text(o, "policy"),
	    (unsigned long long)number(o, "clients"),
	    json_is_true(json_object_get(o, "current"))
		? ""
		: ": of before a reload, until they end");
	line(p, "7", "%-6s %-8s %8s %8s %9s %5s %6s %7s  %s", "WORKER", "STATE", "PID",
	    "AGE", "ANSWERED", "NEXT", "CPU", "MEMORY", "RUNNING");
	json_array_foreach(list, i, w) worker(p, w, last, (*slot)++, passed_ms);
}

char *
kn_top_draw(json_t *doc, struct kn_top_last *last, const struct kn_top_look *look,
    size_t *out_n)
{
	json_t *pools = json_object_get(doc, "pools"), *o;
	uint64_t up = number(doc, "uptime_ms");
	uint64_t passed = up > last->uptime_ms ? up - last->uptime_ms : 0;
	struct page p = { .look = look };
	char *out = NULL;
	size_t i, slot = 0;

	p.f = open_memstream(&out, out_n);
	if (!p.f)
		return NULL;
	head(&p, doc, last);
	json_array_foreach(pools, i, o) pool(&p, o, last, &slot, passed);
	last->uptime_ms = up;
	last->known = true;
	if (fclose(p.f) == 0)
		return out;
	free(out);
	return NULL;
}
