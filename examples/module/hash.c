/* hash.c: bytes in, text out: SHA-256 (FIPS 180-4), and a salt from the init hook.
 *
 *   knit-sandbox run --module ./hash.so --call sha256 --input 'abc'
 *   knit-sandbox run --module ./hash.so --init 'pepper' --call salted --input 'abc'
 */
#include <stdlib.h>
#include <string.h>

#include <knit/task.h>

static const uint32_t k[64] = { 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5,
	0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152,
	0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
	0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624,
	0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3,
	0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2 };

struct sha256 {
	uint32_t h[8];
	uint8_t block[64];
	uint64_t n; /* bytes so far */
};

static uint32_t
ror(uint32_t x, int by)
{
	return x >> by | x << (32 - by);
}

static void
mix(uint32_t h[8], const uint8_t *p)
{
	uint32_t w[64], v[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + w[i - 7] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) +
		       (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
	}
	memcpy(v, h, sizeof v);
	for (int i = 0; i < 64; i++) {
		uint32_t a = v[0], e = v[4];
		uint32_t t1 = v[7] + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) +
			      ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
		uint32_t t2 = (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) +
			      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof v[0]);
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

static void
begin(struct sha256 *s)
{
	static const uint32_t h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->h, h, sizeof h);
	s->n = 0;
}

static void
add(struct sha256 *s, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	while (n > 0) {
		size_t at = s->n % 64, room = 64 - at, take = n < room ? n : room;

		if (at == 0 && n >= 64) { /* straight from the argument */
			mix(s->h, p);
			take = 64;
		} else {
			memcpy(s->block + at, p, take);
			if (at + take == 64)
				mix(s->h, s->block);
		}
		s->n += take;
		p += take;
		n -= take;
	}
}

static void
end(struct sha256 *s, char hex[65])
{
	static const char digit[] = "0123456789abcdef";
	uint64_t bits = s->n * 8;
	uint8_t tail[72] = { 0x80 };
	size_t pad = (s->n % 64 < 56 ? 56 : 120) - s->n % 64;

	for (int i = 0; i < 8; i++)
		tail[pad + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
	add(s, tail, pad + 8);
	for (int i = 0; i < 64; i++)
		hex[i] = digit[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
	hex[64] = '\0';
}

/* ---- what the module exports ---- */

static char *salt;
static size_t salt_n;

/* Once in each worker, before its first call. */
int
knit_worker_init(const struct knit_init *init)
{
	if (init->text_n > 1000)
		return knit_init_fail(init, "a salt of %zu bytes is too long", init->text_n);
	salt_n = init->text_n;
	salt = malloc(salt_n + 1);
	if (!salt)
		return knit_init_fail(init, "no memory for the salt");
	memcpy(salt, init->text, salt_n + 1);
	return 0;
}

static int
hash(struct knit_call *call, const void *before, size_t before_n)
{
	size_t n;
	const void *bytes = knit_arg_bytes(call, &n); /* text and JSON pass too */
	struct sha256 s;
	char hex[65];

	if (!bytes)
		return -1;
	begin(&s);
	add(&s, before, before_n);
	add(&s, bytes, n);
	end(&s, hex);
	return knit_result_str(call, hex);
}

KNIT_TASK(sha256)
{
	return hash(call, "", 0);
}

/* Of the init text and then the argument. */
KNIT_TASK(salted)
{
	if (salt_n == 0)
		return knit_fail(call, "StateError", "there is no salt: give one with --init");
	return hash(call, salt, salt_n);
}
