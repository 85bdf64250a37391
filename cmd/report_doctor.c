/* cmd/report_doctor.c: see report_doctor.h. */
#include "cmd/report_doctor.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "cmd/report.h"
#include "sandbox/doctor.h"
#include "version.h"

enum { WIDTH = 78, INDENT = 11 };

static const char *const who_name[] = {
	[KN_WHO_CALLER] = "caller",
	[KN_WHO_ROOT] = "root",
	[KN_WHO_CONTAINER] = "container",
};

enum kn_health
kn_report_doctor_verdict(const struct kn_doctor *d)
{
	enum kn_health run = d->f[KN_PROBE_RUN].health;

	if (run != KN_HEALTH_OK)
		return run;
	for (int p = 0; p < KN_PROBE_N; p++)
		if (d->f[p].health >= KN_HEALTH_DEGRADED)
			return KN_HEALTH_DEGRADED;
	return KN_HEALTH_OK;
}

/* ---- for people ---- */

static const char *const in_words[] = {
	[KN_HEALTH_OK] = "tasks can be run",
	[KN_HEALTH_UNKNOWN] = "whether tasks can be run is not known",
	[KN_HEALTH_DEGRADED] = "tasks can be run, with less than all walls and limits",
	[KN_HEALTH_REFUSED] = "no task can be run",
};

/* Words of text, broken at the width, below what is there already. */
static void
wrap(FILE *f, const char *text, size_t column)
{
	for (size_t n; *text != '\0'; text += n) {
		text += strspn(text, " ");
		n = strcspn(text, " ");
		if (column + 1 + n > WIDTH && column > INDENT) {
			fprintf(f, "\n%*s", INDENT, "");
			column = INDENT;
		} else if (column > INDENT) {
			fputc(' ', f);
			column++;
		}
		fprintf(f, "%.*s", (int)n, text);
		column += n;
	}
	fputc('\n', f);
}

/* A command is never broken: it is there to be copied. */
static void
field(FILE *f, const char *name, const char *text)
{
	if (text[0] != '\0')
		fprintf(f, "%10s %s\n", name, text);
}

static bool
same_cause(const struct kn_finding *a, const struct kn_finding *b)
{
	return a->health == b->health && a->cause == b->cause &&
	       a->cause != KN_LACK_NONE && strcmp(a->fix, b->fix) == 0;
}

/* All probes with this one's cause, once, by the first of them. */
static void
tell(FILE *f, const struct kn_doctor *d, int p)
{
	static const char *const fix_by[] = {
		[KN_WHO_CALLER] = "fix:",
		[KN_WHO_ROOT] = "as root:",
		[KN_WHO_CONTAINER] = "start it:",
	};
	const struct kn_finding *x = &d->f[p];

	for (int i = 0; i < p; i++)
		if (same_cause(&d->f[i], x))
			return;
	fprintf(f, "%-10s %s", kn_health_name(x->health), kn_probe_name(p));
	for (int i = p + 1; i < KN_PROBE_N; i++)
		if (same_cause(&d->f[i], x))
			fprintf(f, ", %s", kn_probe_name(i));
	fprintf(f, ": %s\n", x->detail);
	field(f, "lost:", kn_probe_loses(p));
	if (x->cause != KN_LACK_NONE)
		field(f, "by:", kn_lack_layer(x->cause));
	field(f, fix_by[x->who], x->fix);
}

static void
list(FILE *f, const struct kn_doctor *d, enum kn_health h)
{
	char text[2048] = "";
	size_t n = 0;

	for (int i = 0; i < KN_PROBE_N; i++) {
		if (d->f[i].health != h || n >= sizeof text)
			continue;
		n += (size_t)snprintf(
		    text + n, sizeof text - n, "%s%s", n ? ", " : "", kn_probe_name(i));
		if (h == KN_HEALTH_OK && n < sizeof text &&
		    (i == KN_PROBE_BWRAP || i == KN_PROBE_IDENTITY ||
			i == KN_PROBE_LANDLOCK || i == KN_PROBE_CG_MEMORY ||
			i == KN_PROBE_ARENA || i == KN_PROBE_AROUND ||
			i == KN_PROBE_RUNTIMES || i == KN_PROBE_NOFILE))
			n += (size_t)snprintf(
			    text + n, sizeof text - n, " (%s)", d->f[i].detail);
	}
	if (n == 0)
		return;
	fprintf(f, "%-10s ", h == KN_HEALTH_OK ? "ok" : "not tried");
	wrap(f, text, INDENT);
}

char *
kn_report_doctor_text(const struct kn_doctor *d, size_t *out_n)
{
	struct utsname u = { 0 };
	char *text = NULL;
	FILE *f = open_memstream(&text, out_n);

	if (!f)
		return NULL;
	uname(&u);
	fprintf(f, "knit-sandbox %s, Linux %s %s: %s\n", KN_VERSION, u.release,
	    u.machine, in_words[kn_report_doctor_verdict(d)]);
	for (int h = KN_HEALTH_REFUSED; h >= KN_HEALTH_DEGRADED; h--)
		for (int p = 0; p < KN_PROBE_N; p++)
			if ((int)d->f[p].health == h)
				tell(f, d, p);
	if (d->last_resort[0] != '\0') {
		fputs(
		    "last resort run --launcher direct works here, and is weaker. ", f);
		fputs("Without namespaces", f);
		wrap(f, d->last_resort, WIDTH);
	}
	list(f, d, KN_HEALTH_UNKNOWN);
	list(f, d, KN_HEALTH_OK);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

/* ---- for machines ---- */

static int
set(json_t *o, const char *key, json_t *v)
{
	return json_object_set_new(o, key, v);
}

static json_t *
or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *
probe(const struct kn_finding *f, int p)
{
	json_t *o = json_object();
	int r = 0;

	r |= set(o, "probe", json_string(kn_probe_name(p)));
	r |= set(o, "status", json_string(kn_health_name(f->health)));
	r |= set(o, "detail", json_string(f->detail));
	if (f->health != KN_HEALTH_OK) {
		r |= set(o, "loses", json_string(kn_probe_loses(p)));
		r |= set(o, "cause",
		    f->cause ? json_string(kn_lack_name(f->cause)) : json_null());
		r |= set(o, "layer", or_null(kn_lack_layer(f->cause)));
		r |= set(o, "fix", or_null(f->fix));
		r |= set(o, "fix_by",
		    f->fix[0] ? json_string(who_name[f->who]) : json_null());
	}
	if (r == 0)
		return o;
	json_decref(o);
	return NULL;
}

char *
kn_report_doctor_json(const struct kn_doctor *d, size_t *out_n)
{
	json_t *root = json_object(), *probes = json_array();
	struct utsname u = { 0 };
	int r = 0, count[KN_HEALTH_REFUSED + 1] = { 0 };

	uname(&u);
	for (int p = 0; p < KN_PROBE_N; p++) {
		r |= json_array_append_new(probes, probe(&d->f[p], p));
		count[d->f[p].health]++;
	}
	r |= set(root, "version", json_integer(1));
	r |= set(root, "knit_sandbox", json_string(KN_VERSION));
	r |= set(root, "kernel", json_string(u.release));
	r |= set(root, "machine", json_string(u.machine));
	r |= set(root, "uid", json_integer(d->host.uid));
	r |= set(root, "container", json_string(kn_inside_name(d->around.inside)));
	r |= set(
	    root, "verdict", json_string(kn_health_name(kn_report_doctor_verdict(d))));
	r |= set(root, "refused", json_integer(count[KN_HEALTH_REFUSED]));
	r |= set(root, "degraded", json_integer(count[KN_HEALTH_DEGRADED]));
	r |= set(root, "unknown", json_integer(count[KN_HEALTH_UNKNOWN]));
	r |= set(root, "last_resort", or_null(d->last_resort));
	r |= set(root, "probes", probes);
	if (r < 0) {
		json_decref(root);
		return NULL;
	}
	return kn_report_line(root, JSON_INDENT(2), out_n);
}
