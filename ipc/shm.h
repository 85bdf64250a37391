/* ipc/shm.h: the only atomics of the project: typed loads, stores and
 * read-modify-writes on words that another process may write at any moment.
 *
 * The order is in the name, never a parameter and never omitted. There are no fences:
 * where a store must be ordered before a later load (the doorbell), both sides use a
 * seq_cst read-modify-write on one word. Each call outside this file carries the label
 * of its card in ipc/layout.h; tests/lint/atomics.sh checks that.
 *
 * Plain functions on plain integer types, so that the arena's structs stay layouts and
 * not C11 _Atomic objects; the builtins are lock-free for these sizes on every machine
 * that has a futex, which the assertions below hold us to (a lock would be private to
 * one process).
 */
#ifndef KN_IPC_SHM_H
#define KN_IPC_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__atomic_always_lock_free(4, 0), "32-bit words are lock-free");
_Static_assert(__atomic_always_lock_free(8, 0), "64-bit words are lock-free");

static inline uint32_t
kn_shm_load32_acquire(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void
kn_shm_store32_release(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* Flip the bits of mask; returns the word before. */
static inline uint32_t
kn_shm_xor32_release(uint32_t *p, uint32_t mask)
{
	return __atomic_fetch_xor(p, mask, __ATOMIC_RELEASE);
}

/* Put v in place; returns the word before. */
static inline uint32_t
kn_shm_swap32_seqcst(uint32_t *p, uint32_t v)
{
	return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
}

static inline uint32_t
kn_shm_load32_seqcst(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

/* Raise by one; returns the word before. */
static inline uint32_t
kn_shm_inc32_seqcst(uint32_t *p)
{
	return __atomic_fetch_add(p, 1, __ATOMIC_SEQ_CST);
}

/* Set the bits of mask; returns the word before. */
static inline uint32_t
kn_shm_or32_release(uint32_t *p, uint32_t mask)
{
	return __atomic_fetch_or(p, mask, __ATOMIC_RELEASE);
}

/* Clear the bits of mask; returns the word before. */
static inline uint32_t
kn_shm_and32_release(uint32_t *p, uint32_t mask)
{
	return __atomic_fetch_and(p, mask, __ATOMIC_RELEASE);
}

static inline uint64_t
kn_shm_load64_acquire(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void
kn_shm_store64_release(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* A seq_cst load after a seq_cst swap of another word: each of two who do so either
 * sees the other's swap, or comes before it. An acquire load need not. */
static inline uint64_t
kn_shm_load64_seqcst(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

/* Put v in place; returns the word before. */
static inline uint64_t
kn_shm_swap64_seqcst(uint64_t *p, uint64_t v)
{
	return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
}

/* Strong compare-exchange. On failure *expected is the word found (load acquire). */
static inline bool
kn_shm_cas64_acqrel(uint64_t *p, uint64_t *expected, uint64_t desired)
{
	return __atomic_compare_exchange_n(
	    p, expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Copy n bytes into shared memory, word by word, each a store release. dst is 8-aligned
 * and its room a multiple of 8; the rest of the last word is zeroed. */
static inline void
kn_shm_words_store_release(void *dst, const void *src, size_t n)
{
	uint64_t *to = dst, word;
	const uint8_t *from = src;

	/* Whole words apart from the last: a length that is not known is ten
	 * instructions a word. */
	for (; n >= sizeof word; n -= sizeof word, from += sizeof word) {
		memcpy(&word, from, sizeof word);
		__atomic_store_n(to++, word, __ATOMIC_RELEASE);
	}
	if (n > 0) {
		word = 0;
		memcpy(&word, from, n);
		__atomic_store_n(to, word, __ATOMIC_RELEASE);
	}
}

/* Copy n bytes out of shared memory, word by word, each loaded once and acquire. src is
 * 8-aligned and its room a multiple of 8. */
static inline void
kn_shm_words_load_acquire(void *dst, const void *src, size_t n)
{
	const uint64_t *from = src;
	uint8_t *to = dst;
	uint64_t word;

	for (; n >= sizeof word; n -= sizeof word, to += sizeof word) {
		word = __atomic_load_n(from++, __ATOMIC_ACQUIRE);
		memcpy(to, &word, sizeof word);
	}
	if (n > 0) {
		word = __atomic_load_n(from, __ATOMIC_ACQUIRE);
		memcpy(to, &word, n);
	}
}

/* A hint and no access: p's line will be written soon; have it fetched meanwhile. */
static inline void
kn_line_warm(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

#endif
