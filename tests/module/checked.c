/* tests/module/checked.c: calls whose bytes are checked both ways, and a worker that
 * scribbles over all that it shares while they go on; see tests/fault/calls.py.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <knit/task.h>

/* What is mapped of the arena and can be written: the slice with its lanes, control
 * words and areas, and what else there may be. */
static struct {
	char *at;
	size_t n;
} shared[8];
static size_t shared_n;
static long seed; /* 0: this worker is honest */
static int threads;
static uint32_t worker;

static void
find_shared(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], perm[8];
	unsigned long from, to;

	while (f && shared_n < 8 && fgets(line, sizeof line, f)) {
		if (!strstr(line, "knit-arena") ||
		    sscanf(line, "%lx-%lx %7s", &from, &to, perm) != 3 ||
		    perm[1] != 'w')
			continue;
		shared[shared_n].at = (char *)from;
		shared[shared_n++].n = to - from;
	}
	if (f)
		fclose(f);
}

/* "scribble SEED": worker 0 does, from its first call on. "scribble SEED all": all. */
int
knit_worker_init(const struct knit_init *init)
{
	long n = 0;
	char who[8] = "";

	if (sscanf(init->text, "scribble %ld %7s", &n, who) >= 1 &&
	    (init->worker == 0 || !strcmp(who, "all")))
		seed = n;
	worker = init->worker;
	find_shared();
	return shared_n > 0 ? 0 : knit_init_fail(init, "no slice is mapped");
}

static uint64_t
next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Three words in four go to where words decide something: the control page, or the
 * slots; one in four anywhere. */
static void *
scribble(void *arg)
{
	uint64_t x = (uintptr_t)arg | 1;

	for (;;) {
		uint64_t r = next(&x), word = next(&x);
		size_t i = r >> 8 & 7, n, at;

		i = i < shared_n ? i : 0;
		n = shared[i].n;
		if ((r & 3) == 1 && n > 4096)
			n = 4096;
		else if ((r & 3) > 1 && n > 65536)
			n = 4096 + 2 * 32 * 576;
		at = (size_t)(next(&x) % n) & ~(size_t)3;
		if (r & 4)
			__atomic_store_n((uint32_t *)(void *)(shared[i].at + at),
			    r & 8 ? (uint32_t)word : (uint32_t)word & 0xff,
			    __ATOMIC_RELAXED);
		else
			__atomic_fetch_xor((uint32_t *)(void *)(shared[i].at + at),
			    1u << (word & 31), __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void
begin_to_scribble(void)
{
	struct timespec now;
	pthread_t t;

	clock_gettime(CLOCK_MONOTONIC, &now);
	for (; threads < 2; threads++)
		(void)pthread_create(&t, NULL, scribble,
		    (void *)((uintptr_t)seed * 2654435761u + (uintptr_t)now.tv_nsec +
			     (uintptr_t)threads));
}

static uint32_t
crc32(const char *p, size_t n)
{
	static uint32_t table[256];
	uint32_t c = 0xffffffff;

	if (!table[1])
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t v = i;

			for (int k = 0; k < 8; k++)
				v = v & 1 ? v >> 1 ^ 0xedb88320 : v >> 1;
			table[i] = v;
		}
	while (n--)
		c = c >> 8 ^ table[(c ^ (unsigned char)*p++) & 0xff];
	return ~c;
}

static const char *
place(const void *p)
{
	FILE *f = fopen("/proc/self/maps", "r");
	const char *found = "private";
	unsigned long from, to;
	char line[512];

	while (f && fgets(line, sizeof line, f))
		if (strstr(line, "knit-arena") &&
		    sscanf(line, "%lx-%lx", &from, &to) == 2 && (uintptr_t)p >= from &&
		    (uintptr_t)p < to)
			found = "arena";
	if (f)
		fclose(f);
	return found;
}

/* Where the argument is read, and where a result of n bytes is written. */
KNIT_TASK(where)
{
	size_t n;
	const void *arg = knit_arg_data(call, &n);
	char text[64];

	snprintf(text, sizeof text, "%s %s", place(arg),
	    place(knit_result_reserve(call, KNIT_BYTES, n)));
	return knit_result_str(call, text);
}

/* Crashes in worker 0. */
KNIT_TASK(crash_first)
{
	if (worker == 0)
		abort();
	return knit_result_str(call, "not here");
}

/* "CRC NUMBER SLEEP_US TEXT", where CRC is that of all that follows it: the same with
 * the text turned round and a checksum of its own. What comes in damaged is an error.
 */
KNIT_TASK(checked)
{
	size_t n, head = 0;
	const char *p = knit_arg_text(call, &n);
	char *room;
	int spaces = 0;

	if (!p)
		return -1;
	if (seed)
		begin_to_scribble();
	if (n < 13 || strtoul(p, NULL, 16) != crc32(p + 9, n - 9))
		return knit_fail(call, "Damaged", "the argument is not what was sent");
	for (head = 0; head < n && spaces < 3; head++)
		spaces += p[head] == ' ';
	if (strtol(strchr(p + 9, ' '), NULL, 10) > 0) {
		struct timespec t = { 0, 1000 * strtol(strchr(p + 9, ' '), NULL, 10) };

		nanosleep(&t, NULL);
	}
	room = knit_result_reserve(call, KNIT_TEXT, n);
	if (!room)
		return -1;
	memcpy(room, p, head);
	for (size_t i = head; i < n; i++)
		room[i] = p[n - 1 - (i - head)];
	/* (the checksum last: hex digits before the first space) */
	char hex[9];
	snprintf(hex, sizeof hex, "%08x", crc32(room + 9, n - 9));
	memcpy(room, hex, 8);
	return knit_result_commit(call, n);
}
