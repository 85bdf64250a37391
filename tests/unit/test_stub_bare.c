/* tests/unit/test_stub_bare.c: the stub's own strings and printf say what libc's say.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* bare_text.c under other names, beside the ones that it stands in for. Fortified
 * headers offer some of these as macros of their own. */
#undef vsnprintf
#undef snprintf
#define memcpy bare_memcpy
#define memmove bare_memmove
#define memset bare_memset
#define memcmp bare_memcmp
#define bcmp bare_bcmp
#define memchr bare_memchr
#define memrchr bare_memrchr
#define memmem bare_memmem
#define strlen bare_strlen
#define strnlen bare_strnlen
#define strncmp bare_strncmp
#define strcmp bare_strcmp
#define strchr bare_strchr
#define strcspn bare_strcspn
#define vsnprintf bare_vsnprintf
#define snprintf bare_snprintf
void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
void *memchr(const void *p, int c, size_t n);
void *memrchr(const void *p, int c, size_t n);
void *memmem(const void *hay, size_t hay_n, const void *needle, size_t n);
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t max);
int strncmp(const char *a, const char *b, size_t n);
int strcmp(const char *a, const char *b);
char *strchr(const char *s, int c);
size_t strcspn(const char *s, const char *stop);
int vsnprintf(char *restrict buf, size_t cap, const char *restrict fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
int snprintf(char *restrict buf, size_t cap, const char *restrict fmt, ...)
    __attribute__((format(printf, 3, 4)));
#include "sandbox/stub/bare_text.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef memchr
#undef memrchr
#undef memmem
#undef strlen
#undef strnlen
#undef strncmp
#undef strcmp
#undef strchr
#undef strcspn
#undef vsnprintf
#undef snprintf

enum { AREA = 64, ROUNDS = 20000 };

static unsigned char a[AREA], b[AREA];

/* Few different bytes, so that equal runs are common. */
static void
fill(unsigned char *p)
{
	for (int i = 0; i < AREA; i++)
		p[i] = (unsigned char)"ab\0\xff"[rand() % 4];
}

static int
sign(int v)
{
	return (v > 0) - (v < 0);
}

static void
memory_is_moved_as_libc_moves_it(void **state)
{
	(void)state;
	srand(1);
	for (int i = 0; i < ROUNDS; i++) {
		size_t from = (size_t)(rand() % AREA), to = (size_t)(rand() % AREA);
		size_t n = (size_t)rand() % (AREA - (from > to ? from : to) + 1);

		fill(a);
		memcpy(b, a, AREA);
		assert_ptr_equal(bare_memmove(a + to, a + from, n), a + to);
		memmove(b + to, b + from, n);
		assert_memory_equal(a, b, AREA);
		fill(b);
		assert_ptr_equal(bare_memcpy(b + to, a + to, n), b + to);
		assert_memory_equal(b + to, a + to, n);
		assert_ptr_equal(bare_memset(a + to, 0x1fe, n), a + to);
		memset(b + to, 0xfe, n);
		assert_memory_equal(a + to, b + to, n);
	}
}

static void
bytes_are_found_as_libc_finds_them(void **state)
{
	(void)state;
	srand(2);
	for (int i = 0; i < ROUNDS; i++) {
		size_t n = (size_t)(rand() % AREA), k = (size_t)(rand() % 5);
		int c = "ab\0\xff"[rand() % 4];

		fill(a);
		fill(b);
		assert_int_equal(sign(bare_memcmp(a, b, n)), sign(memcmp(a, b, n)));
		assert_int_equal(bare_memcmp(a, a, n), 0);
		assert_ptr_equal(bare_memchr(a, c, n), memchr(a, c, n));
		assert_ptr_equal(bare_memrchr(a, c, n), memrchr(a, c, n));
		assert_ptr_equal(bare_memmem(a, n, b, k), memmem(a, n, b, k));
	}
}

static void
strings_are_compared_as_libc_compares_them(void **state)
{
	(void)state;
	srand(3);
	for (int i = 0; i < ROUNDS; i++) {
		const char *s = (const char *)a, *t = (const char *)b;
		size_t n = (size_t)(rand() % AREA);

		fill(a);
		fill(b);
		a[AREA - 1] = b[AREA - 1] = 0;
		assert_int_equal(bare_strlen(s), strlen(s));
		assert_int_equal(bare_strnlen(s, n), strnlen(s, n));
		assert_int_equal(sign(bare_strcmp(s, t)), sign(strcmp(s, t)));
		assert_int_equal(sign(bare_strncmp(s, t, n)), sign(strncmp(s, t, n)));
		assert_ptr_equal(bare_strchr(s, 'b'), strchr(s, 'b'));
		assert_ptr_equal(bare_strchr(s, 0), strchr(s, 0));
		assert_int_equal(bare_strcspn(s, "b\xff"), strcspn(s, "b\xff"));
	}
}

#define SAME(...) \
	do { \
		char ours[40], libc[40]; \
		memset(ours, 'x', sizeof ours); \
		memset(libc, 'x', sizeof libc); \
		for (size_t cap = 0; cap <= sizeof ours; cap++) { \
			int n = bare_snprintf(ours, cap, __VA_ARGS__); \
			assert_int_equal(n, snprintf(libc, cap, __VA_ARGS__)); \
			assert_memory_equal(ours, libc, sizeof ours); \
		} \
	} while (0)

static void
text_is_made_as_libc_makes_it(void **state)
{
	(void)state;
	SAME("plain");
	SAME("slice %u of %u", 3u, 31u);
	SAME("%d %d %d", 0, -1, INT32_MIN);
	SAME("%ld %lld", -5l, (long long)INT64_MIN);
	SAME("%llu bytes, %zu", (unsigned long long)UINT64_MAX, (size_t)7);
	SAME("%x %lx", 0xdeadbeefu, 0xful);
	SAME("%5d|%05d|%5u|%05x", -42, -42, 42u, 0xau);
	SAME("%s: %.*s|%10s|%.2s", "worker", 3, "abcdef", "w", "long");
	SAME("%c%c 100%%", 'o', 'k');
}

static void
an_errno_is_told_by_its_number(void **state)
{
	char text[40];

	(void)state;
	errno = ENOMEM;
	assert_int_equal(bare_snprintf(text, sizeof text, "map: %m"), 13);
	assert_string_equal(text, "map: error 12");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_moved_as_libc_moves_it),
		cmocka_unit_test(bytes_are_found_as_libc_finds_them),
		cmocka_unit_test(strings_are_compared_as_libc_compares_them),
		cmocka_unit_test(text_is_made_as_libc_makes_it),
		cmocka_unit_test(an_errno_is_told_by_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
