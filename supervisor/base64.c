/* supervisor/base64.c: see base64.h. One spelling per byte string: a text that decodes
 * here re-encodes to itself, so nothing can hide in unused bits.
 */
#include "supervisor/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t
kn_base64_length(size_t n)
{
	return (n + 2) / 3 * 4;
}

void
kn_base64_encode_to(char *out, const void *p, size_t n)
{
	const uint8_t *in = p;
	char *at = out;

	for (; n >= 3; n -= 3, in += 3) {
		*at++ = alphabet[in[0] >> 2];
		*at++ = alphabet[(in[0] & 3) << 4 | in[1] >> 4];
		*at++ = alphabet[(in[1] & 15) << 2 | in[2] >> 6];
		*at++ = alphabet[in[2] & 63];
	}
	if (n > 0) {
		uint8_t second = n > 1 ? in[1] : 0;

		*at++ = alphabet[in[0] >> 2];
		*at++ = alphabet[(in[0] & 3) << 4 | second >> 4];
		*at++ = n > 1 ? alphabet[(second & 15) << 2] : '=';
		*at++ = '=';
	}
}

char *
kn_base64_encode(const void *p, size_t n)
{
	char *text;

	if (n > SIZE_MAX / 4 * 3 - 8 || !(text = malloc(kn_base64_length(n) + 1)))
		return NULL;
	kn_base64_encode_to(text, p, n);
	text[kn_base64_length(n)] = '\0';
	return text;
}

size_t
kn_base64_decoded_max(size_t n)
{
	return n / 4 * 3;
}

static int
value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int
kn_base64_decode(const char *text, size_t n, void *out, size_t *out_n)
{
	size_t pad = 0, i;
	uint8_t *at = out;
	uint32_t word = 0;

	if (n % 4 != 0) {
		*out_n = n;
		return -1;
	}
	while (pad < 2 && pad < n && text[n - 1 - pad] == '=')
		pad++;
	for (i = 0; i < n - pad; i++) {
		int v = value_of(text[i]);

		if (v < 0) {
			*out_n = i;
			return -1;
		}
		word = word << 6 | (uint32_t)v;
		if (i % 4 == 3) {
			*at++ = (uint8_t)(word >> 16);
			*at++ = (uint8_t)(word >> 8);
			*at++ = (uint8_t)word;
			word = 0;
		}
	}
	if ((pad == 1 && word & 3) || (pad == 2 && word & 15)) {
		*out_n = i - 1;
		return -1;
	}
	if (pad == 1) {
		*at++ = (uint8_t)(word >> 10);
		*at++ = (uint8_t)(word >> 2);
	} else if (pad == 2) {
		*at++ = (uint8_t)(word >> 4);
	}
	*out_n = (size_t)(at - (uint8_t *)out);
	return 0;
}
