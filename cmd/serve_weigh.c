/* cmd/serve_weigh.c: memory. A connection alone may hold a line of 16 MiB that has not
 * ended, 64 MiB of lines that wait, and 8 MiB of answers that it does not read. Many of
 * them together may not: beyond what is for all, who holds more than a little is not
 * read, and nothing more is begun for who does not read.
 *
 * One that holds much goes on all the same, the one that came first: lines that have
 * not ended must not wait for one another.
 */
#include <limits.h>

#include "cmd/serve_int.h"

enum {
	HELD_MOST = 128 << 20, /* by all */
	HELD_EACH = 512 << 10, /* by one, in any case: many lines, and whole reads */
};

static size_t
unread(const struct kn_client *c)
{
	return c->out.end - c->out.at;
}

void
kn_serve_weigh(struct kn_serve *s)
{
	uint64_t all = 0;

	s->first = UINT_MAX;
	for (struct kn_client *c = s->clients; c; c = c->next) {
		struct knit_batch_counts n = { .size = sizeof n };

		c->held = knit_batch_count(c->batch, &n, NULL) == 0 ? n.held : 0;
		all += c->held + unread(c);
		if (c->held > HELD_EACH && c->number < s->first && c->reading &&
		    knit_batch_wants(c->batch) && kn_out_room(&c->out))
			s->first = c->number;
	}
	s->crowded = all > HELD_MOST;
}

bool
kn_client_may_send(const struct kn_client *c)
{
	return !c->serve->crowded || c->held <= HELD_EACH ||
	       c->number == c->serve->first;
}

bool
kn_client_room(const struct kn_client *c)
{
	return kn_out_room(&c->out) && (!c->serve->crowded || unread(c) <= HELD_EACH);
}
