/* supervisor/egress_tally.c: see egress_tally.h. */
#include "supervisor/egress_tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kn_net_row *
find(struct kn_net_tally *t, const struct kn_net_end *end)
{
	for (size_t i = 0; i < t->row_n; i++) {
		struct kn_net_row *r = &t->rows[i];

		if (r->port == end->port && r->why == end->why &&
		    strcmp(r->host, end->host) == 0)
			return r;
	}
	return NULL;
}

static struct kn_net_row *
add(struct kn_net_tally *t, const struct kn_net_end *end)
{
	size_t room = t->room ? 2 * t->room : 4;
	struct kn_net_row *r;
	char *host;

	if (t->row_n == KN_NET_ROWS_MAX)
		return NULL;
	if (t->row_n == t->room) {
		r = realloc(t->rows, room * sizeof *r);
		if (!r)
			return NULL;
		t->rows = r;
		t->room = room;
	}
	host = strdup(end->host);
	if (!host)
		return NULL;
	r = &t->rows[t->row_n++];
	*r = (struct kn_net_row){ .host = host, .port = end->port, .why = end->why };
	return r;
}

void
kn_net_count(struct kn_net_tally *t, const struct kn_net_end *end)
{
	struct kn_net_row *r = find(t, end);

	t->went += end->why == KN_NET_WENT;
	t->refused += end->why != KN_NET_WENT;
	t->out_bytes += end->out_bytes;
	t->in_bytes += end->in_bytes;
	if (!r)
		r = add(t, end);
	if (!r) {
		t->unnamed++;
		return;
	}
	r->n++;
	r->out_bytes += end->out_bytes;
	r->in_bytes += end->in_bytes;
	r->sys = end->sys;
	snprintf(r->address, sizeof r->address, "%s", end->address);
}

void
kn_net_tally_fini(struct kn_net_tally *t)
{
	for (size_t i = 0; i < t->row_n; i++)
		free(t->rows[i].host);
	free(t->rows);
	memset(t, 0, sizeof *t);
}

const char *
kn_net_why_text(enum kn_net_why why, int sys, char buf[128])
{
	static const char *const text[KN_NET_WHY_N] = {
		[KN_NET_WENT] = "",
		[KN_NET_NOT_LISTED] = "not in /network/allow",
		[KN_NET_PORT] = "in /network/allow with another port",
		[KN_NET_ADDRESS] = ("the name leads to an address that is not public, "
				    "and /network/allow has not got that address"),
		[KN_NET_NO_ADDRESS] = "no address was found for the name",
		[KN_NET_UNREACHED] = "could not be reached",
		[KN_NET_BAD_ASK] = "not a request that could be read",
		[KN_NET_SLOW] = "no request came in time",
		[KN_NET_HOST_SHORT] = "the machine could not",
	};
	const char *what = (unsigned)why < KN_NET_WHY_N ? text[why] : "refused";

	if (!sys)
		return what;
	snprintf(buf, 128, "%s: %s", what, strerror(sys));
	return buf;
}
