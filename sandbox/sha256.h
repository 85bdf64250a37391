/* sandbox/sha256.h: SHA-256 of a buffer, for the hash of a policy. Not for secrets. */
#ifndef KN_SANDBOX_SHA256_H
#define KN_SANDBOX_SHA256_H

#include <stddef.h>
#include <stdint.h>

void kn_sha256(const void *p, size_t n, uint8_t out[32]);

#endif
