/* tests/unit/test_batch_files.c: files of a batch that come from elsewhere: kept by an
 * earlier task, or the caller's, and nothing but those.
 */
#include "tests/unit/batch_world.h"

static int
memfd_with(const char *text)
{
	struct kn_err e;
	int fd = kn_fd_sealed("x", text, strlen(text), 0, &e);

	assert_true(fd >= 0);
	return fd;
}

static void
answer_keeping(size_t i, const char *name, const char *text, uint32_t mode)
{
	struct kn_outcome o = { .verdict = KN_V_OK, .started = true, .file_n = 1 };

	o.files = calloc(1, sizeof *o.files);
	o.files[0] = (struct kn_outcome_file){ .name = strdup(name),
		.what = KN_FILE_KEEP,
		.fd = memfd_with(text),
		.bytes = strlen(text),
		.mode = mode };
	answer(&w.sup, i, &o);
}

static void
kept_files_reach_the_followers_only_as_asked(void **state)
{
	char got[16] = { 0 };

	(void)state;
	open_batch(8, false, NULL);
	line("{\"id\":\"../c\",\"argv\":[\"cc\"],\"keep\":[\"bin/main\",\"gone\"]}");
	line("{\"id\":\"t1\",\"argv\":[\"t\"],\"after\":[\"../c\"],"
	     "\"files\":{\"m\":{\"from\":\"../c/bin/main\"}}}");
	line("{\"id\":\"t2\",\"argv\":[\"t\"],\"after\":[\"../c\"],"
	     "\"files\":{\"m\":{\"from\":\"../c/gone\"}}}");
	line("{\"id\":\"evil\",\"argv\":[\"t\"],\"keep\":[\"ok\"]}");
	line("{\"id\":\"t3\",\"argv\":[\"t\"],\"after\":[\"evil\"],"
	     "\"files\":{\"m\":{\"from\":\"evil/other\"}}}");
	begin();
	read_all_possible();
	assert_int_equal(w.sup.n, 2);
	answer_keeping(0, "bin/main", "program", 0755);
	assert_int_equal(w.sup.n, 2);
	assert_string_equal(w.sup.running[1]->id, "t1");
	assert_int_equal(w.sup.running[1]->files[0].mode, 0755);
	assert_int_equal(pread(w.sup.running[1]->files[0].fd, got, 15, 0), 7);
	assert_string_equal(got, "program");
	expect("t2", KN_V_SKIPPED, "not kept");
	answer_keeping(0, "other", "not asked for", 0644);
	expect("t3", KN_V_SKIPPED, "not kept");
	run_to_end();
	close_batch();
}

static void
paths_stay_below_the_roots_and_follow_no_link(void **state)
{
	char name[128];
	int fd;

	(void)state;
	open_batch(8, false, NULL);
	snprintf(name, sizeof name, "%s/x", w.root);
	fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0640);
	assert_int_equal(write(fd, "data", 4), 4);
	close(fd);
	snprintf(name, sizeof name, "%s/link", w.root);
	assert_int_equal(symlink("/etc/passwd", name), 0);
#define PATH_TASK(id, p) \
	"{\"id\":\"" id "\",\"argv\":[\"t\"],\"files\":{\"f\":{\"path\":\"" p "\"}}}"
	line(PATH_TASK("good", "%s/./x"), w.root);
	line(PATH_TASK("link", "%s/link"), w.root);
	line(PATH_TASK("out", "%s/../../etc/passwd"), w.root);
	line(PATH_TASK("near", "%s-other/x"), w.root);
	line(PATH_TASK("none", "%s/none"), w.root);
	line(PATH_TASK("dir", "%s/"), w.root);
	begin();
	read_all_possible();
	assert_int_equal(w.sup.n, 1);
	assert_string_equal(w.sup.running[0]->id, "good");
	assert_int_equal(w.sup.running[0]->files[0].mode, 0640);
	expect("link", KN_V_INVALID, "/files/f/path: link: a symbolic link");
	expect("out", KN_V_INVALID, "not below");
	expect("near", KN_V_INVALID, "not below");
	expect("none", KN_V_INVALID, "No such file");
	expect("dir", KN_V_INVALID, "not below");
	run_to_end();
	close_batch();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_files_reach_the_followers_only_as_asked),
		cmocka_unit_test(paths_stay_below_the_roots_and_follow_no_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
