/* tests/module/hostile.c: a module that means harm: scribbles over all that it shares
 * with the supervisor, rings without end, moves single words on purpose.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <knit/task.h>

#include "../../ipc/layout.h"

static char *slice;
static size_t slice_n;

/* Its own slice, found as any program can: by the name of the mapping. */
static void
find_slice(void)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof line, f)) {
		unsigned long from, to;

		if (!strstr(line, "knit-arena") ||
		    sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		slice = (char *)from;
		slice_n = to - from;
	}
	if (f)
		fclose(f);
}

/* Where the words are that decide something, three times in four. */
static void
scribble_once(uint64_t *x)
{
	size_t hot = 4096 + 2 * 32 * 576, at;
	uint64_t word;

	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	at = *x % (*x & 3 ? (*x & 4 ? 4096 : hot) : slice_n);
	word = *x & 8 ? *x : *x & 0xff;
	memcpy(slice + (at & ~(size_t)7), &word, sizeof word);
}

static void *
scribble(void *seed)
{
	uint64_t x = (uint64_t)(uintptr_t)seed;

	for (;;)
		scribble_once(&x);
	return NULL;
}

/* Goes on when the call is over. */
KNIT_TASK(scribble_for_ever)
{
	pthread_t t;
	int64_t seed;

	if (knit_arg_i64(call, &seed) < 0)
		return -1;
	find_slice();
	if (!slice)
		return knit_fail(call, "Error", "no slice");
	if (pthread_create(&t, NULL, scribble, (void *)(uintptr_t)(seed * 2 + 1)) != 0)
		return knit_fail(call, "Error", "no thread");
	return 0;
}

/* One word of the control page, flipped again and again for a while. */
KNIT_TASK(flip_word)
{
	uint64_t end = knit_now_ns() + 50 * 1000000ull;
	int64_t at;

	if (knit_arg_i64(call, &at) < 0)
		return -1;
	find_slice();
	if (!slice)
		return knit_fail(call, "Error", "no slice");
	while (knit_now_ns() < end) {
		uint32_t *w = (uint32_t *)(void *)(slice + (at * 64) % 4096);

		__atomic_fetch_xor(w, (uint32_t)rand(), __ATOMIC_SEQ_CST);
	}
	return 0;
}

static void *
ring(void *none)
{
	uint64_t one = 1, sink;

	(void)none;
	for (;;) {
		for (int fd = 3; fd < 16; fd++)
			if (write(fd, &one, sizeof one) < 0)
				(void)!read(fd, &sink, sizeof sink);
	}
	return NULL;
}

KNIT_TASK(ring_for_ever)
{
	pthread_t t;

	for (int fd = 3; fd < 16; fd++)
		(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	if (pthread_create(&t, NULL, ring, NULL) != 0)
		return knit_fail(call, "Error", "no thread");
	return 0;
}

/* Writes without end to both streams. */
static void *
talk(void *none)
{
	(void)none;
	for (;;)
		if (write(1, "\033[2Jfake: ok\n", 13) < 0 || write(2, "noise\n", 6) < 0)
			break;
	return NULL;
}

KNIT_TASK(talk_for_ever)
{
	pthread_t t;

	if (pthread_create(&t, NULL, talk, NULL) != 0)
		return knit_fail(call, "Error", "no thread");
	return 0;
}

KNIT_TASK(echo)
{
	size_t n;
	const void *p = knit_arg_data(call, &n);

	return knit_arg_type(call) == KNIT_TEXT ? knit_result_text(call, p, n)
						: knit_result_bytes(call, p, n);
}

/* Says in its lane that it is ready, once more, with a payload that lies anywhere. */
KNIT_TASK(false_pong)
{
	struct kn_slot_head pong = {
		.kind = KN_REQ_PING, .task = UINT32_MAX, .gen = 1
	};
	struct kn_control *c;
	struct kn_slot *slot;
	uint64_t one = 1;
	int64_t off;

	if (knit_arg_i64(call, &off) < 0)
		return -1;
	find_slice();
	if (!slice)
		return knit_fail(call, "Error", "no slice");
	c = (void *)slice;
	slot = (void *)(slice + KN_PAGE +
			(KN_SLOTS * KN_SLOT_BYTES + KN_PAGE - 1) / KN_PAGE * KN_PAGE);
	slot += KN_SLOTS - 1;
	pong.payload_off = (uint32_t)off;
	pong.payload_len = 1 << 20;
	memcpy(&slot->head, &pong, sizeof pong);
	__atomic_fetch_xor(
	    &c->return_published, 1u << (KN_SLOTS - 1), __ATOMIC_SEQ_CST);
	if (write(5, &one, sizeof one) < 0)
		return knit_fail(call, "Error", "no bell");
	sleep(1); /* our own next answer would take the word back */
	return 0;
}

__attribute__((constructor)) static void
look_early(void)
{
	find_slice();
}

/* Answers itself with a value that is none, before anybody has seen the claim. */
KNIT_TASK(false_value)
{
	struct kn_control *c = (void *)slice;
	struct kn_slot_head h = { .kind = KN_REQ_CALL,
		.area = KN_AREA_INLINE,
		.type = KNIT_BOOL,
		.payload_len = 1 };
	struct kn_slot *slot;
	uint64_t one = 1, begun;

	if (!slice)
		return knit_fail(call, "Error", "no slice");
	slot = (void *)(slice + KN_PAGE +
			(KN_SLOTS * KN_SLOT_BYTES + KN_PAGE - 1) / KN_PAGE * KN_PAGE);
	slot += KN_SLOTS - 1;
	begun = __atomic_load_n(&c->begun, __ATOMIC_SEQ_CST);
	h.task = (uint32_t)(begun >> 32);
	h.gen = (uint32_t)begun;
	slot->inline_bytes[0] = 7;
	memcpy(&slot->head, &h, sizeof h);
	__atomic_fetch_xor(
	    &c->return_published, 1u << (KN_SLOTS - 1), __ATOMIC_SEQ_CST);
	if (write(5, &one, sizeof one) < 0)
		return knit_fail(call, "Error", "no bell");
	sleep(1);
	return 0;
}

/* ---- what the ancestor's experiments did ---- */

/* Every descriptor there is, shrunk to nothing. */
KNIT_TASK(truncate_all)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += ftruncate(fd, 0) == 0;
	return knit_result_i64(call, n);
}

/* Computes for so long and hears nothing meanwhile. */
KNIT_TASK(deaf_ms)
{
	volatile uint64_t n = 0;
	int64_t ms;

	if (knit_arg_i64(call, &ms) < 0)
		return -1;
	for (int i = 1; i < 32; i++)
		(void)sigaction(i, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	for (uint64_t end = knit_now_ns() + (uint64_t)ms * 1000000;
	     knit_now_ns() < end;)
		n++;
	return knit_result_str(call, "done");
}

KNIT_TASK(environment)
{
	const char *name = knit_arg_str(call), *value = name ? getenv(name) : NULL;

	return value ? knit_result_str(call, value) : knit_result_null(call);
}
