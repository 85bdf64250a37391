/* tests/unit/test_module_examples.c: the modules of examples/module do what they say,
 * in the real process. */
#include "tests/unit/module_resident.h"

static struct resident R;
static uint8_t file[1 << 20];

static bool
open_example(const char *name, const char *init)
{
	static char path[PATH_MAX + 128];
	struct resident_opts o = { .module = path, .init = init };

	snprintf(path, sizeof path, "%s/../../examples/%s", module_path(""), name);
	if (access(path, R_OK) < 0)
		return false;
	resident_start(&R, &o);
	assert_int_equal(resident_ping(&R).flags, 0);
	return true;
}

static void
must_open(const char *name, const char *init)
{
	if (!open_example(name, init))
		fail_msg("%s was not built", name);
}

static void
is_text(const char *name, const char *arg, const char *want)
{
	struct kn_slot_head h =
	    resident_call(&R, 1000 + R.next, name, KN_TYPE_TEXT, arg, strlen(arg));

	assert_int_equal(h.type, KN_TYPE_TEXT);
	assert_int_equal(h.payload_len, strlen(want));
	assert_memory_equal(R.result, want, strlen(want));
}

static void
upper_makes_capitals(void **state)
{
	(void)state;
	must_open("upper.so", "");
	is_text("upper", "azAZ 09 \xc3\xa9", "AZAZ 09 \xc3\xa9");
	is_text("upper", "", "");
	resident_close(&R);
}

static void
hash_is_sha256(void **state)
{
	static uint8_t million[1000000];
	struct kn_slot_head h;

	(void)state;
	must_open("hash.so", "");
	is_text("sha256", "abc",
	    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	is_text("sha256", "",
	    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	is_text("sha256", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	memset(million, 'a', sizeof million);
	h = resident_call(&R, 1, "sha256", KN_TYPE_BYTES, million, sizeof million);
	assert_int_equal(h.payload_len, 64);
	assert_memory_equal(R.result,
	    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", 64);
	h = resident_call(&R, 2, "salted", KN_TYPE_TEXT, "c", 1);
	assert_string_equal(resident_error(&R, &h).link[0].name, "StateError");
	resident_close(&R);
	must_open("hash.so", "ab");
	is_text("salted", "c",
	    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	resident_close(&R);
}

static void
primes_are_prime(void **state)
{
	static const int32_t below_30[] = { 2, 3, 5, 7, 11, 13, 17, 19, 23, 29 };
	struct kn_slot_head h;

	(void)state;
	must_open("primes.so", "");
	h = resident_call_i64(&R, 1, "primes", 30);
	assert_int_equal(h.type, KN_TYPE_I32S);
	assert_int_equal(h.payload_len, sizeof below_30);
	assert_memory_equal(R.result, below_30, sizeof below_30);
	for (int64_t n = 0; n <= 2; n++) {
		h = resident_call_i64(&R, 1, NULL, n);
		assert_int_equal(h.payload_len, 0);
	}
	h = resident_call_i64(&R, 2, "count_primes", 1000000);
	assert_int_equal(resident_i64(&R, &h), 78498);
	h = resident_call_i64(&R, 2, NULL, -1);
	assert_string_equal(resident_error(&R, &h).link[0].name, "RangeError");
	resident_close(&R);
}

static void
a_thumbnail_is_a_small_png_file(void **state)
{
	static const uint8_t magic[] = { 0x89, 'P', 'N', 'G' };
	struct kn_slot_head h;
	char path[PATH_MAX + 128];
	size_t n;
	FILE *f;

	(void)state;
	if (!open_example("thumbnail.so", "")) {
		print_message("left out: thumbnail.so was not built (no libpng)\n");
		return;
	}
	snprintf(path, sizeof path, "examples/module/mandelbrot.png");
	f = fopen(path, "re");
	assert_non_null(f);
	n = fread(file, 1, sizeof file, f);
	fclose(f);
	assert_true(n > 1000);
	h = resident_call(&R, 1, "thumbnail", KN_TYPE_BYTES, file, n);
	assert_int_equal(h.type, KN_TYPE_BYTES);
	assert_true(h.payload_len < n / 2);
	assert_memory_equal(R.result, magic, sizeof magic);
	/* IHDR: 640 by 400 became 128 by 80. */
	assert_memory_equal(R.result + 16, "\0\0\0\x80\0\0\0\x50", 8);
	/* A damaged file is an error with the library's own words as its cause. */
	memset(file + n / 2, 0, n / 2);
	h = resident_call(&R, 1, NULL, KN_TYPE_BYTES, file, n);
	assert_string_equal(resident_error(&R, &h).link[0].name, "ImageError");
	assert_string_equal(resident_error(&R, &h).link[1].name, "PngError");
	h = resident_call(&R, 1, NULL, KN_TYPE_BYTES, "no png", 6);
	assert_string_equal(resident_error(&R, &h).link[0].name, "ImageError");
	resident_close(&R);
}

static void
a_module_in_cxx_is_one_too(void **state)
{
	struct resident_opts o = { .module = module_path("plus.so") };
	struct kn_slot_head h;

	(void)state;
	if (access(o.module, R_OK) < 0) {
		print_message("left out: no compiler for C++\n");
		return;
	}
	resident_start(&R, &o);
	assert_int_equal(resident_ping(&R).flags, 0);
	is_text("reverse", "abc", "cba");
	h = resident_call(&R, 1, "is_null", KN_TYPE_NULL, NULL, 0);
	assert_int_equal(h.type, KN_TYPE_BOOL);
	assert_int_equal(R.result[0], 1);
	resident_close(&R);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(upper_makes_capitals),
		cmocka_unit_test(hash_is_sha256),
		cmocka_unit_test(primes_are_prime),
		cmocka_unit_test(a_thumbnail_is_a_small_png_file),
		cmocka_unit_test(a_module_in_cxx_is_one_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
