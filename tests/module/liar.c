/* tests/module/liar.c: a claimant that lies to the supervisor and to its peers in the
 * bank that they share: with the words that are its own, since it can write no others.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <knit/task.h>

#include "../../ipc/region.h"

static struct kn_own *own;
static char *bank, *bank_end;
static uint32_t worker;

int
knit_worker_init(const struct knit_init *init)
{
	worker = init->worker;
	return 0;
}

/* The bank is what is mapped read-only, our own page the one that can be written in the
 * midst of it; our words stand further in the later we come. Of several banks, and with
 * cas-mask, the last page that can be written is ours. */
static void
find_own(uint32_t per_bank)
{
	char line[512], mode[8];
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to, before = 0;

	while (f && fgets(line, sizeof line, f)) {
		if (!strstr(line, "knit-arena") ||
		    sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3)
			continue;
		if (mode[1] != 'w') {
			if (from != before || !bank)
				bank = bank ? bank : (char *)from;
			bank_end = (char *)to;
		} else if (to - from <= 2 * KN_PAGE) {
			own = (void *)(to - KN_PAGE + (worker % per_bank) * KN_LINE);
		}
		before = to;
	}
	if (f)
		fclose(f);
}

/* It wants a region, and never lets go. */
static void
hold_regions(uint32_t which)
{
	uint64_t word = __atomic_load_n(&own->word, __ATOMIC_SEQ_CST);

	for (;;) {
		__atomic_store_n(&own->word, (uint64_t)which << 32 | (uint32_t)word,
		    __ATOMIC_SEQ_CST);
		nanosleep(&(struct timespec){ 0, 10000 }, NULL);
	}
}

/* Two of them keep two regions, and swap them: neither word stays as it is. */
static void
swap_regions(void)
{
	uint64_t ack = (uint32_t)__atomic_load_n(&own->word, __ATOMIC_SEQ_CST);
	struct timespec t;

	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		__atomic_store_n(&own->word,
		    1ull << (32 + ((uint32_t)t.tv_nsec / 7000000 + worker) % 2) | ack,
		    __ATOMIC_SEQ_CST);
	}
}

static void
lie(int how, uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	switch (how) {
	case 0: /* acks of what was not offered, or is another's */
		__atomic_fetch_xor(&own->word, 1ull << *x % 32, __ATOMIC_SEQ_CST);
		break;
	case 1: /* acks, and names of publications that never were */
		__atomic_store_n(
		    &own->taken[*x % 32], *x >> 8 & 0xff, __ATOMIC_SEQ_CST);
		__atomic_fetch_xor(&own->word, 1ull << *x % 32, __ATOMIC_SEQ_CST);
		break;
	case 2: /* areas that are another's */
		__atomic_fetch_xor(&own->freed, 1u << *x % 32, __ATOMIC_SEQ_CST);
		break;
	case 3: /* anything anywhere */
		((uint64_t *)own)[*x % (sizeof *own / 8)] = *x;
		break;
	case 4: /* all that is offered, as if it had been claimed, and none of it
		   answered */
		for (uint32_t s = 0; s < KN_SLOTS; s++) {
			struct kn_slot *slot =
			    (void *)(bank + KN_BANK_SLOTS_OFF + s * KN_SLOT_BYTES);
			uint64_t seq =
			    __atomic_load_n(&slot->head.seq, __ATOMIC_SEQ_CST);

			if (own->taken[s] == seq)
				continue;
			own->taken[s] = seq;
			__atomic_fetch_xor(&own->word, 1ull << s, __ATOMIC_SEQ_CST);
		}
		break;
	default:
		break;
	}
}

static void *
go_on(void *arg)
{
	int how = (int)(intptr_t)arg;
	uint64_t x = 88172645463325252ull + worker;

	if (how == 5)
		hold_regions(1);
	if (how == 6)
		hold_regions(0xffffffff);
	for (;;) {
		lie(how, &x);
		if (how == 4)
			nanosleep(&(struct timespec){ 0, 100000 }, NULL);
	}
	return NULL;
}

/* Argument: how, and by how many workers the bank is shared, as how * 100 + workers.
 * The call is answered, the lies go on. */
KNIT_TASK(lie_for_ever)
{
	pthread_t t;
	int64_t how;

	if (knit_arg_i64(call, &how) < 0)
		return -1;
	find_own((uint32_t)how % 100);
	if (!own)
		return knit_fail(call, "Error", "no words of our own");
	fprintf(stderr, "lies\n");
	if (how / 100 == 7) /* in the call itself, which never ends */
		hold_regions(1);
	if (how / 100 == 8)
		swap_regions();
	if (pthread_create(&t, NULL, go_on, (void *)(intptr_t)(how / 100)) != 0)
		return knit_fail(call, "Error", "no thread");
	return 0;
}

/* Argument: offset in the bank. A word of it that is not ours is written: the MMU's no.
 */
KNIT_TASK(write_bank)
{
	int64_t at;

	if (knit_arg_i64(call, &at) < 0)
		return -1;
	find_own(1);
	if (!bank || bank + at >= bank_end)
		return knit_fail(call, "Error", "no bank");
	*(volatile uint64_t *)(void *)(bank + at) ^= 1;
	return 0;
}

KNIT_TASK(echo)
{
	size_t n;
	const void *p = knit_arg_data(call, &n);

	return knit_arg_type(call) == KNIT_TEXT ? knit_result_text(call, p, n)
						: knit_result_bytes(call, p, n);
}
