/* tests/unit/test_supervisor_log.c: debug lines and trace events, whatever is in them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "supervisor/log.h"
#include "supervisor/trace.h"

static const char nasty[] = "a\"b\\c\n\x1b[31m\x7f\xff\xc3\xa4";

static char *
content(int fd)
{
	char *text = NULL;
	size_t n;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(kn_fd_read_all(fd, 1 << 24, &text, &n, NULL), 0);
	return text;
}

static void
names_make_a_mask(void **state)
{
	const char *bad;
	uint32_t m;
	int n;

	(void)state;
	assert_int_equal(kn_log_mask("lifecycle,policy", &m, &bad, &n), 0);
	assert_int_equal(m, 1u << KN_NS_LIFECYCLE | 1u << KN_NS_POLICY);
	assert_int_equal(kn_log_mask("*", &m, &bad, &n), 0);
	assert_int_equal(m, (1u << KN_NS_N) - 1);
	assert_int_equal(kn_log_mask("", &m, &bad, &n), 0);
	assert_int_equal(m, 0);
	assert_int_equal(kn_log_mask("host,lifecycles", &m, &bad, &n), -1);
	assert_int_equal(n, 10);
	assert_memory_equal(bad, "lifecycles", 10);
}

static unsigned evaluated;

static int
costs(void)
{
	evaluated++;
	return 41;
}

static void
a_line_is_one_line_and_off_costs_nothing(void **state)
{
	struct kn_log l = { .mask = 1u << KN_NS_LIFECYCLE, .start_ns = kn_clock_now() };
	unsigned ms, tenth;
	char *text, tail[64];

	(void)state;
	l.fd = memfd_create("log", MFD_CLOEXEC);
	KN_LOG(&l, KN_NS_LIFECYCLE, 0, "ready pid=%d", costs());
	KN_LOG(&l, KN_NS_POLICY, 0, "never %d", costs());
	KN_LOG(&l, KN_NS_LIFECYCLE, KN_LOG_POOL, "task %s", nasty);
	assert_int_equal(evaluated, 1);
	text = content(l.fd);
	assert_int_equal(
	    sscanf(text, "[w0 +%u.%ums lifecycle] %63[^\n]", &ms, &tenth, tail), 3);
	assert_string_equal(tail, "ready pid=41");
	assert_non_null(strstr(text, "[pool +"));
	assert_null(strchr(text, '\x1b'));
	assert_ptr_equal(strchr(strchr(text, '\n') + 1, '\n') + 1, text + strlen(text));
	free(text);
	close(l.fd);
}

static void
json_lines_are_json(void **state)
{
	struct kn_log l = { .mask = ~0u, .json = true, .start_ns = kn_clock_now() };
	json_t *j;
	char *text;

	(void)state;
	l.fd = memfd_create("log", MFD_CLOEXEC);
	KN_LOG(&l, KN_NS_SANDBOX, 3, "x %s", nasty);
	text = content(l.fd);
	j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "who")), "w3");
	assert_string_equal(json_string_value(json_object_get(j, "ns")), "sandbox");
	json_decref(j);
	free(text);
	close(l.fd);
}

static void
a_trace_is_one_json_array(void **state)
{
	struct kn_trace t;
	int fd = memfd_create("trace", MFD_CLOEXEC);
	size_t ran = 0, begun = 0, ended = 0, i;
	char *text, longer[4000];
	json_t *j, *ev;

	(void)state;
	memset(longer, 'y', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	kn_trace_open(&t, fd, 1000, 2);
	for (i = 0; i < 500; i++) {
		const char *id = i % 2 ? "a\"b\\c\n\x1b" : longer;

		kn_trace_queued(&t, id, i, 1000 + i, 2000 + i);
		kn_trace_ran(&t, id, (int)(i % 2), 2000 + i, 5000 + i, "ok");
	}
	kn_trace_instant(&t, "taken back", "x", 1, 9000);
	kn_trace_instant(&t, "odd", "\xff\xc3\xa9\xed\xa0\x80", 1, 9000); /* no UTF-8 */
	assert_int_equal(kn_trace_close(&t), 0);
	text = content(fd);
	assert_non_null(strstr(text, "odd \\\\xff\xc3\xa9\\\\xed\\\\xa0\\\\x80"));
	j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_true(json_is_array(j));
	json_array_foreach(j, i, ev)
	{
		const char *ph = json_string_value(json_object_get(ev, "ph"));

		assert_non_null(ph);
		ran += *ph == 'X';
		begun += *ph == 'b';
		ended += *ph == 'e';
		if (*ph == 'X')
			assert_true(json_real_value(json_object_get(ev, "dur")) == 3.0);
	}
	assert_int_equal(ran, 500);
	assert_int_equal(begun, 500);
	assert_int_equal(ended, 500);
	json_decref(j);
	free(text);
	close(fd);
}

static void
a_trace_that_could_not_be_written_says_so(void **state)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct kn_trace t;

	(void)state;
	assert_true(fd >= 0);
	kn_trace_open(&t, fd, 0, 1);
	assert_int_equal(kn_trace_close(&t), -1);
	kn_trace_open(&t, -1, 0, 1); /* off */
	kn_trace_ran(&t, "x", 0, 1, 2, "ok");
	assert_int_equal(kn_trace_close(&t), 0);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_make_a_mask),
		cmocka_unit_test(a_line_is_one_line_and_off_costs_nothing),
		cmocka_unit_test(json_lines_are_json),
		cmocka_unit_test(a_trace_is_one_json_array),
		cmocka_unit_test(a_trace_that_could_not_be_written_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
