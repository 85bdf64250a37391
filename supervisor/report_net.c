/* supervisor/report_net.c: see report_net.h. Hosts were read by sandbox/net_rule.h, so
 * they are letters, digits, dots, dashes and colons.
 */
#include "supervisor/report_net.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/egress_tally.h"

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

/* The words that would allow it. */
static json_t *
remedy(const struct kn_net_row *r)
{
	const char *b = strchr(r->host, ':') ? "[" : "";
	char text[320];

	snprintf(
	    text, sizeof text, "--allow %s%s%s:%u", b, r->host, *b ? "]" : "", r->port);
	return json_string(text);
}

static json_t *
row(const struct kn_net_row *r)
{
	json_t *o = json_object();
	char buf[128];
	int rc = 0;

	rc |= set(o, "host", json_string(r->host));
	rc |= set(o, "port", json_integer(r->port));
	if (r->why == KN_NET_WENT) {
		rc |= set(o, "address", json_string(r->address));
		rc |= set(o, "connections", number(r->n));
		rc |= set(o, "bytes_out", number(r->out_bytes));
		rc |= set(o, "bytes_in", number(r->in_bytes));
	} else {
		rc |= set(o, "refused", number(r->n));
		rc |=
		    set(o, "reason", json_string(kn_net_why_text(r->why, r->sys, buf)));
	}
	if (r->why == KN_NET_NOT_LISTED || r->why == KN_NET_PORT)
		rc |= set(o, "allow", remedy(r));
	if (rc == 0)
		return o;
	json_decref(o);
	return NULL;
}

json_t *
kn_report_net(const struct kn_net_tally *t)
{
	json_t *o = json_object(), *hosts = json_array();
	int rc = 0;

	rc |= set(o, "connections", number(t->went));
	rc |= set(o, "refused", number(t->refused));
	rc |= set(o, "bytes_out", number(t->out_bytes));
	rc |= set(o, "bytes_in", number(t->in_bytes));
	for (size_t i = 0; i < t->row_n; i++)
		rc |= json_array_append_new(hosts, row(&t->rows[i]));
	rc |= set(o, "hosts", hosts);
	if (t->unnamed)
		rc |= set(o, "unnamed", number(t->unnamed));
	if (rc == 0)
		return o;
	json_decref(o);
	return NULL;
}

char *
kn_report_net_text(const struct kn_net_tally *t)
{
	json_t *o = kn_report_net(t);
	char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	return text;
}
