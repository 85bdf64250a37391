/* supervisor/capture.c: head and tail of a stream, see capture.h.
 *
 * Byte i of the stream lives at i while i < cap, and at head + (i - head) % tail after
 * that: the linear buffer turns into a ring without a byte being moved.
 */
#include "supervisor/capture.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/task.h"

enum { FIRST_ROOM = 512 };

void
kn_cap_init(struct kn_cap *c, uint64_t cap)
{
	memset(c, 0, sizeof *c);
	c->cap = cap;
}

void
kn_cap_fini(struct kn_cap *c)
{
	free(c->p);
	memset(c, 0, sizeof *c);
}

static uint64_t
head_n(const struct kn_cap *c)
{
	return c->cap / 2;
}

/* Room for `want` bytes and a NUL, at most the cap. */
static void
grow(struct kn_cap *c, uint64_t want)
{
	size_t room = c->room ? c->room : FIRST_ROOM;
	char *p;

	if (want > c->cap)
		want = c->cap;
	if (c->p && want < c->room)
		return;
	while (room <= want && room < SIZE_MAX / 4)
		room *= 2;
	if (room > want && c->cap < room)
		room = (size_t)c->cap + 1;
	p = realloc(c->p, room);
	if (p) {
		c->p = p;
		c->room = room;
	} else {
		/* what has come so far is below the new cap, so the mapping of bytes
		 * to places stays what it was */
		c->cap = c->room ? c->room - 1 : 0;
	}
}

/* Longest run that can be copied at once for byte `at` of the stream. */
static size_t
place(const struct kn_cap *c, uint64_t at, size_t *out_off)
{
	uint64_t head = head_n(c), tail = c->cap - head;

	if (at < c->cap) {
		*out_off = (size_t)at;
		return (size_t)(c->cap - at < SIZE_MAX ? c->cap - at : SIZE_MAX);
	}
	*out_off = (size_t)(head + (at - head) % tail);
	return (size_t)(c->cap - *out_off);
}

void
kn_cap_put(struct kn_cap *c, const char *p, size_t n)
{
	if (c->total < c->cap)
		grow(c, c->total + n);
	/* of a piece larger than the ring only the end can stay */
	while (n > 0 && c->cap > 0) {
		size_t off, run = place(c, c->total, &off);

		if (run > n)
			run = n;
		memcpy(c->p + off, p, run);
		p += run;
		n -= run;
		c->total += run;
	}
	c->total += n;
}

static void
reverse(char *p, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		char t = p[i];

		p[i] = p[n - 1 - i];
		p[n - 1 - i] = t;
	}
}

void
kn_cap_take(struct kn_cap *c, struct kn_capture *out)
{
	memset(out, 0, sizeof *out);
	out->total = c->total;
	out->truncated = c->total > c->cap;
	out->n = (size_t)(out->truncated ? c->cap : c->total);
	out->head_n = out->n;
	if (out->truncated && c->cap > 0) {
		size_t head = (size_t)head_n(c), tail = (size_t)c->cap - head;
		size_t from = (size_t)((c->total - head) % tail);

		out->head_n = head;
		/* rotate left by `from`: three reversals, no second buffer */
		reverse(c->p + head, from);
		reverse(c->p + head + from, tail - from);
		reverse(c->p + head, tail);
	}
	if (!c->p)
		c->p = malloc(1); /* an empty stream is an empty string */
	if (c->p)
		c->p[out->n] = '\0';
	out->bytes = c->p;
	memset(c, 0, sizeof *c);
}
