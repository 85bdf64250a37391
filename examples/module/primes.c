/* primes.c: a number in, numbers out; two tasks in one module; a task that gives up.
 *
 *   knit-sandbox run --module ./primes.so --call primes --input 100
 *   knit-sandbox run --module ./primes.so --call count_primes --input 10000000
 */
#include <string.h>

#include <knit/task.h>

enum { MOST = 100 * 1000 * 1000 };

/* One byte a number: 1 if it is composite. NULL after the call's error was set. */
static unsigned char *
sieve(struct knit_call *call, int64_t below)
{
	unsigned char *composite;

	if (below < 0 || below > MOST) {
		knit_fail(call, "RangeError", "%lld is not within 0 to %d",
		    (long long)below, MOST);
		return NULL;
	}
	composite = knit_alloc(call, (size_t)below + 2); /* gone after the call */
	if (!composite)
		return NULL;
	memset(composite, 0, (size_t)below + 2);
	composite[0] = composite[1] = 1;
	for (int64_t p = 2; p * p < below; p++) {
		if (composite[p])
			continue;
		if (knit_aborted()) { /* cancelled, or out of time */
			knit_fail(call, "AbortError", "given up at %lld", (long long)p);
			return NULL;
		}
		for (int64_t i = p * p; i < below; i += p)
			composite[i] = 1;
	}
	return composite;
}

static int64_t
count(const unsigned char *composite, int64_t below)
{
	int64_t n = 0;

	for (int64_t i = 2; i < below; i++)
		n += !composite[i];
	return n;
}

/* The primes below the argument. */
KNIT_TASK(primes)
{
	unsigned char *composite;
	int64_t below, n = 0;
	int32_t *out;

	if (knit_arg_i64(call, &below) < 0)
		return -1;
	composite = sieve(call, below);
	if (!composite)
		return -1;
	out = knit_result_reserve(
	    call, KNIT_I32S, sizeof *out * (size_t)count(composite, below));
	if (!out)
		return -1; /* too many for one result: the error says how many bytes */
	for (int64_t i = 2; i < below; i++)
		if (!composite[i])
			out[n++] = (int32_t)i;
	return knit_result_commit(call, sizeof *out * (size_t)n);
}

/* How many there are. */
KNIT_TASK(count_primes)
{
	unsigned char *composite;
	int64_t below;

	if (knit_arg_i64(call, &below) < 0)
		return -1;
	composite = sieve(call, below);
	return composite ? knit_result_i64(call, count(composite, below)) : -1;
}
