/* supervisor/base64.h: bytes in JSON: RFC 4648 section 4, strict. */
#ifndef KN_SUPERVISOR_BASE64_H
#define KN_SUPERVISOR_BASE64_H

#include <stddef.h>

/* Fresh NUL-terminated text, NULL when out of memory. */
char *kn_base64_encode(const void *p, size_t n);
/* Characters that n bytes become. */
size_t kn_base64_length(size_t n);
/* Write just these, not terminated. */
void kn_base64_encode_to(char *out, const void *p, size_t n);
/* Room that kn_base64_decode() needs for n characters. */
size_t kn_base64_decoded_max(size_t n);
/* Decode n characters: no line breaks, padding required, unused bits zero. Returns 0
 * and the length, or -1 with *out_n the position of the first wrong character. */
int kn_base64_decode(const char *text, size_t n, void *out, size_t *out_n);

#endif
