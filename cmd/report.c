/* cmd/report.c: see report.h. */
#include "cmd/report.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"

static int
set(json_t *o, const char *key, json_t *v)
{
	return json_object_set_new(o, key, v);
}

static json_t *
number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* One line, which may name what is not UTF-8. */
static json_t *
message(const char *text)
{
	char clean[1024];

	kn_err_printable(clean, sizeof clean, text, (int)strnlen(text, 1000));
	return json_string(clean);
}

/* How waiting tasks got to idle workers, and why so. */
static json_t *
steal(const struct knit_pool *pool)
{
	json_t *o = json_object();
	const char *claim = knit_pool_fact(pool, "claim");
	int r;

	r = set(o, "mode", json_string(knit_pool_fact(pool, "steal")));
	r |= set(o, "reason", json_string(knit_pool_fact(pool, "steal-why")));
	if (claim) {
		const char *lanes = knit_pool_fact(pool, "region-lanes");

		r |= set(o, "claim", json_string(claim));
		r |= set(
		    o, "claim_reason", json_string(knit_pool_fact(pool, "claim-why")));
		r |= set(o, "region_lanes", number(strtoul(lanes, NULL, 10)));
	}
	if (r == 0)
		return o;
	json_decref(o);
	return NULL;
}

static json_t *
layers(const struct knit_pool *pool)
{
	json_t *o = json_object();
	const char *name;
	int r = 0;

	for (size_t i = 0; (name = knit_layer_name(i)); i++)
		r |= set(o, name, json_string(knit_pool_layer(pool, name)));
	if (r == 0)
		return o;
	json_decref(o);
	return NULL;
}

/* What goes without those that do not hold; NULL: nothing. */
static json_t *
lacks(const struct knit_pool *pool)
{
	json_t *o = json_object();
	const char *name;

	for (size_t i = 0; (name = knit_layer_name(i)); i++) {
		char fact[64];
		const char *text;

		snprintf(fact, sizeof fact, "lacks-%s", name);
		text = knit_pool_fact(pool, fact);
		if (text)
			set(o, name, json_string(text));
	}
	if (json_object_size(o) > 0)
		return o;
	json_decref(o);
	return NULL;
}

char *
kn_report_line(json_t *root, size_t flags, size_t *out_n)
{
	char *text = json_dumps(root, flags), *line;

	json_decref(root);
	if (!text)
		return NULL;
	*out_n = strlen(text);
	line = realloc(text, *out_n + 2);
	if (!line) {
		free(text);
		return NULL;
	}
	memcpy(line + *out_n, "\n", 2);
	*out_n += 1;
	return line;
}

char *
kn_report_summary(const struct kn_report_batch *b, size_t *out_n)
{
	json_t *root = json_object(), *verdicts = json_object(), *less;
	uint64_t total = 0;
	int r = 0;

	for (unsigned i = 0; i < KNIT_VERDICT_N; i++) {
		total += b->verdicts[i];
		if (b->verdicts[i])
			r |= set(verdicts, knit_verdict_name((enum knit_verdict)i),
			    number(b->verdicts[i]));
	}
	r |= set(root, "answered", number(total));
	r |= set(root, "verdicts", verdicts);
	r |= set(root, "wall_ms", number(b->wall_ms));
	if (!b->calls)
		r |= set(root, "cpu_ms", number(b->cpu_ms));
	r |= set(root, "workers", number(b->workers));
	r |= set(root, "workers_lost", number(b->workers_lost));
	r |= set(root, "failed_launches", number(b->failed_launches));
	r |= set(root, "doorbell_missed", number(b->doorbell_missed));
	r |= set(root, "signal", b->signal ? json_integer(b->signal) : json_null());
	r |= set(root, "error", b->error[0] ? message(b->error) : json_null());
	if (b->policy)
		r |= set(root, "policy", json_string(b->policy));
	if (b->pool) {
		r |= set(root, "steal", steal(b->pool));
		r |= set(root, "layers", layers(b->pool));
		less = lacks(b->pool);
		if (less)
			r |= set(root, "lacks", less);
	}
	if (b->network)
		r |= set(root, "network", json_loads(b->network, 0, NULL));
	if (r < 0) {
		json_decref(root);
		return NULL;
	}
	return kn_report_line(
	    root, JSON_COMPACT | (b->ascii ? JSON_ENSURE_ASCII : 0), out_n);
}
