/* cmd/report_bench.c: the figures as a table for people and as one JSON document. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "cmd/bench.h"
#include "cmd/bench_peer.h"
#include "ipc/clock.h"
#include "version.h"

static double
load_now(void)
{
	double v = -1;

	return getloadavg(&v, 1) == 1 ? v : -1;
}

/* ---- table ---- */

/* Three or four figures that mean something. */
static const char *
figure(char out[24], double v, const char *unit)
{
	int digits = v == 0 ? 0 : v >= 100 ? 0 : v >= 10 ? 1 : v >= 0.1 ? 2 : 3;

	snprintf(out, 24, "%.*f%s%s", digits, v,
	    unit[0] && strcmp(unit, "/s") != 0 ? " " : "", unit);
	return out;
}

static const char *
met_name(const struct kn_bench_row *r)
{
	if (r->met == KN_BENCH_MET)
		return "yes";
	if (r->met == KN_BENCH_MISSED)
		return "NO";
	return r->target[0] ? "?" : "-";
}

static void
table_row(FILE *f, const struct kn_bench_row *r)
{
	char ours[24] = "-", floor[24] = "-", ratio[24] = "-", spread[80] = "", low[24],
	     high[24];

	if (r->has_ours)
		figure(ours, r->ours, r->unit);
	if (r->has_floor) {
		figure(floor, r->floor, r->unit);
		figure(ratio, r->ratio, "");
	}
	fprintf(f, "%-4s %-52.52s %11s %11s %7s %8s %4s\n", r->id, r->what, ours, floor,
	    ratio, r->target[0] ? r->target : "-", met_name(r));
	if (r->has_floor && r->n > 1)
		snprintf(spread, sizeof spread, ", %zu rounds: %s to %s", r->n,
		    figure(low, r->ratio_min, ""), figure(high, r->ratio_max, ""));
	else if (r->has_ours && r->n > 1 && r->ours_min < r->ours_max)
		snprintf(spread, sizeof spread, "%s%zu values: %s to %s",
		    r->floor_name[0] ? ", " : "", r->n, figure(low, r->ours_min, ""),
		    figure(high, r->ours_max, ""));
	if (r->floor_name[0] || spread[0] || r->note[0])
		fprintf(f, "       %s%s%s%s%s\n", r->floor_name[0] ? "against " : "",
		    r->floor_name, spread,
		    r->note[0] && (r->floor_name[0] || spread[0]) ? "; " : "", r->note);
}

static void
absent_peers(FILE *f)
{
	char path[256];
	bool any = false;

	for (int i = 0; i < KN_PEER_N; i++) {
		if (kn_bench_find(kn_peer_name(i), path, sizeof path))
			continue;
		fprintf(f, "%s%s", any ? ", " : "absent here: ", kn_peer_name(i));
		any = true;
	}
	if (any)
		fputc('\n', f);
}

char *
kn_report_bench_table(const struct kn_bench *b)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	fprintf(f, "%-4s %-52s %11s %11s %7s %8s %4s\n", "id", "measure", "ours",
	    "floor", "ratio", "target", "met");
	for (size_t i = 0; i < b->row_n; i++)
		table_row(f, &b->rows[i]);
	absent_peers(f);
	fprintf(f,
	    "%u rounds%s; a ratio is the median of the rounds' ratios. %u CPUs, load "
	    "%.1f, %.0f s\n",
	    b->rounds, b->quick ? " (quick: too few to rely on)" : "", b->host.cpus,
	    load_now(), (double)(kn_clock_now() - b->start_ns) / 1e9);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- JSON ---- */

static void
set_number(json_t *o, const char *key, double v)
{
	json_object_set_new(o, key, isfinite(v) ? json_real(v) : json_null());
}

static json_t *
row_json(const struct kn_bench_row *r)
{
	json_t *o = json_object();

	json_object_set_new(o, "id", json_string(r->id));
	json_object_set_new(o, "measure", json_string(r->what));
	json_object_set_new(o, "unit", json_string(r->unit));
	json_object_set_new(o, "values", json_integer((json_int_t)r->n));
	if (r->has_ours) {
		set_number(o, "ours", r->ours);
		set_number(o, "ours_min", r->ours_min);
		set_number(o, "ours_max", r->ours_max);
	}
	if (r->floor_name[0])
		json_object_set_new(o, "floor_name", json_string(r->floor_name));
	if (r->has_floor) {
		set_number(o, "floor", r->floor);
		set_number(o, "floor_min", r->floor_min);
		set_number(o, "floor_max", r->floor_max);
		set_number(o, "ratio", r->ratio);
		set_number(o, "ratio_min", r->ratio_min);
		set_number(o, "ratio_max", r->ratio_max);
	}
	if (r->target[0])
		json_object_set_new(o, "target", json_string(r->target));
	json_object_set_new(o, "met",
	    r->met == KN_BENCH_OPEN ? json_null()
				    : json_boolean(r->met == KN_BENCH_MET));
	if (r->note[0])
		json_object_set_new(o, "note", json_string(r->note));
	return o;
}

static json_t *
machine_json(const struct kn_bench *b)
{
	json_t *o = json_object();
	struct utsname u;

	json_object_set_new(o, "cpus", json_integer(b->host.cpus));
	json_object_set_new(o, "root", json_boolean(b->host.root));
	if (uname(&u) == 0) {
		json_object_set_new(o, "kernel", json_string(u.release));
		json_object_set_new(o, "machine", json_string(u.machine));
	}
	set_number(o, "load", load_now());
	return o;
}

char *
kn_report_bench_json(const struct kn_bench *b)
{
	json_t *o = json_object(), *rows = json_array(), *peers = json_object();
	char path[256], *text;

	for (size_t i = 0; i < b->row_n; i++)
		json_array_append_new(rows, row_json(&b->rows[i]));
	for (int i = 0; i < KN_PEER_N; i++) {
		const char *at = kn_bench_find(kn_peer_name(i), path, sizeof path);

		json_object_set_new(
		    peers, kn_peer_name(i), at ? json_string(at) : json_null());
	}
	json_object_set_new(o, "version", json_string(KN_VERSION));
	json_object_set_new(o, "rounds", json_integer(b->rounds));
	json_object_set_new(o, "quick", json_boolean(b->quick));
	set_number(o, "seconds", (double)(kn_clock_now() - b->start_ns) / 1e9);
	json_object_set_new(o, "machine", machine_json(b));
	json_object_set_new(o, "peers", peers);
	json_object_set_new(o, "figures", rows);
	text = json_dumps(
	    o, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
	json_decref(o);
	return text;
}
