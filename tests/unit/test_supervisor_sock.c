/* tests/unit/test_supervisor_sock.c: a worker that lies on its socket: messages out of
 * turn, descriptors that are no files of a task, names that lead elsewhere.
 */
#include "tests/unit/supervisor_test.h"

#include "ipc/blob.h"

/* ---- liars on the socket ---- */

static void
send_msg(uint32_t type, uint32_t i, uint32_t gen, const void *body, uint32_t n, int fd)
{
	uint8_t buf[sizeof(struct kn_msg) + 512];
	struct kn_msg m = { .type = type, .task = i, .gen = gen, .bytes = n };

	memcpy(buf, &m, sizeof m);
	if (n)
		memcpy(buf + sizeof m, body, n);
	assert_int_equal(kn_fd_send(theirs, buf, sizeof m + n, &fd, fd >= 0, 1), 0);
}

static void
expect_socket(const char *field)
{
	kn_view_socket(w);
	if (!w->bad || strcmp(w->bad, field) != 0)
		fail_msg("violation \"%s\", expected \"%s\"", w->bad ? w->bad : "none",
		    field);
	w->bad = NULL;
}

static void
messages_out_of_turn(void **state)
{
	(void)state;
	send_msg(KN_MSG_FILES, 0, 5, "", 0, -1); /* before it is ready */
	expect_socket("socket.type");
	prepare();
	send_msg(KN_MSG_BOOT_FAIL, 0, 0, "", 0, -1);
	expect_socket("socket.type");
	send_msg(KN_MSG_KILL, 0, 5, "", 0, -1);
	expect_socket("socket.type");
	send_msg(0, 0, 0, "", 0, -1);
	expect_socket("socket.type");
	send_msg(KN_MSG_FILES, 1, 5, "", 0, -1);
	expect_socket("files.task");
	send_msg(KN_MSG_PTY, 0, 5, "", 0, -1); /* it has no terminal */
	expect_socket("pty.task");
	assert_int_equal(send(theirs, "", 0, 0), 0);
	expect_socket("socket.empty");
	assert_int_equal(send(theirs, "abc", 3, 0), 3);
	expect_socket("socket.type");
	assert_false(w->sock_eof);
	kn_fd_close(&theirs);
	kn_view_socket(w);
	assert_true(w->sock_eof);
	assert_null(w->bad);
}

static uint32_t
record(uint8_t *buf, const char *name, uint32_t what, uint32_t refusal)
{
	struct kn_blob_w b = { .p = buf, .cap = 400 };

	kn_blob_str(&b, name);
	kn_blob_u32(&b, what);
	kn_blob_u32(&b, refusal);
	assert_true(kn_blob_fits(&b));
	return (uint32_t)b.n;
}

static int
tmpfs_file(void)
{
	char path[64];
	int fd = memfd_create("f", MFD_CLOEXEC), ro;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	assert_int_equal(write(fd, "hello", 5), 5);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	close(fd);
	return ro;
}

/* One record with one descriptor; the descriptor is sent and closed. */
static void
send_file(const char *name, uint32_t what, uint32_t refusal, int fd)
{
	uint8_t buf[400];

	send_msg(KN_MSG_FILES, 0, 5, buf, record(buf, name, what, refusal), fd);
	kn_fd_close(&fd);
}

static void
a_kept_file_comes_through(void **state)
{
	char buf[8] = "";

	(void)state;
	prepare();
	send_file("kept", KN_FILE_KEEP, 0, tmpfs_file());
	kn_view_socket(w);
	assert_null(w->bad);
	assert_int_equal(s->entry[0].file_n, 1);
	assert_int_equal(s->entry[0].files[0].bytes, 5);
	assert_int_equal(pread(s->entry[0].files[0].fd, buf, 8, 0), 5);
	assert_string_equal(buf, "hello");
}

static void
descriptors_that_are_no_files_of_a_task(void **state)
{
	int p[2], sp[2];

	(void)state;
	prepare();
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sp), 0);
	send_file("kept", KN_FILE_KEEP, 0, p[0]);
	expect_socket("files.type");
	kn_files_drop(&s->entry[0]);
	send_file("kept", KN_FILE_KEEP, 0, memfd_create("rw", MFD_CLOEXEC));
	expect_socket("files.mode");
	kn_files_drop(&s->entry[0]);
	send_file("kept", KN_FILE_KEEP, 0, open("/etc/passwd", O_RDONLY | O_CLOEXEC));
	expect_socket("files.filesystem");
	kn_files_drop(&s->entry[0]);
	send_file("kept", KN_FILE_KEEP, 0, open("/dev", O_RDONLY | O_CLOEXEC));
	expect_socket("files.type");
	kn_files_drop(&s->entry[0]);
	send_file("kept", KN_FILE_KEEP, 0, open("/etc/passwd", O_PATH | O_CLOEXEC));
	expect_socket("files.mode");
	kn_files_drop(&s->entry[0]);
	send_file("kept", KN_FILE_KEEP, 0, sp[0]);
	expect_socket("files.mode");
	close(p[1]);
	close(sp[1]);
}

static void
names_that_lead_elsewhere(void **state)
{
	static const char *const names[] = { "../x", "/etc/passwd", "a/../../b", "",
		".", "a//b", "a/", "..", "a/." };
	char *glob = keep_of_it[0];

	(void)state;
	prepare();
	task.collect = &glob;
	task.collect_n = 1;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		send_file(names[i], KN_FILE_COLLECT, 0, tmpfs_file());
		expect_socket("files.name");
	}
	send_file("no-copy", KN_FILE_OUT, 0, tmpfs_file());
	expect_socket("files.what");
	kn_files_drop(&s->entry[0]);
	send_file("not-asked-for", KN_FILE_KEEP, 0, tmpfs_file());
	expect_socket("files.name");
	send_file("kept", KN_FILE_KEEP, 0, tmpfs_file());
	kn_view_socket(w);
	assert_null(w->bad);
	send_file("kept", KN_FILE_KEEP, 0, tmpfs_file()); /* twice */
	expect_socket("files.name");
	assert_int_equal(s->entry[0].file_n, 1);
}

/* They are told apart by their prints: comparing a thousand such names with each other
 * takes as long as a task would like. */
static void
long_names_that_begin_alike_differ_by_their_prints(void **state)
{
	char glob[] = "*", *globs = glob, name[301];
	const struct kn_entry *e = &s->entry[0];

	(void)state;
	prepare();
	task.collect = &globs;
	task.collect_n = 1;
	memset(name, 'n', sizeof name - 1);
	name[100] = name[200] = '/';
	name[300] = '\0';
	for (int i = 0; i < 40; i++) {
		name[299] = (char)('0' + i);
		send_file(name, KN_FILE_COLLECT, KN_FILE_MISSING, -1);
		kn_view_socket(w);
		assert_null(w->bad);
	}
	assert_int_equal(e->file_n, 40);
	for (size_t i = 0; i < e->file_n; i++) {
		for (size_t j = 0; j < i; j++)
			assert_true(e->files[i].print != e->files[j].print);
	}
	send_file(name, KN_FILE_COLLECT, KN_FILE_MISSING, -1);
	expect_socket("files.name");
}

static void
records_and_descriptors_that_do_not_agree(void **state)
{
	(void)state;
	prepare();
	send_file("kept", KN_FILE_KEEP, 0, -1); /* none came */
	expect_socket("files.descriptors");
	kn_files_drop(&s->entry[0]);
	send_file(
	    "kept", KN_FILE_KEEP, KN_FILE_MISSING, tmpfs_file()); /* one too many */
	expect_socket("files.descriptors");
	kn_files_drop(&s->entry[0]);
	send_file("kept", 8, 0, tmpfs_file());
	expect_socket("files.what");
	send_file("x", KN_FILE_COLLECT, 0, tmpfs_file()); /* nothing to collect */
	expect_socket("files.what");
	send_file("kept", KN_FILE_KEEP, 99, tmpfs_file());
	expect_socket("files.refusal");
	send_msg(KN_MSG_FILES, 0, 5, "\xff\xff\xff\xff", 4, -1);
	expect_socket("files.body");
	send_msg(KN_MSG_FILES, 0, 5, "", 0, -1);
	expect_socket("files.body");
}

/* No descriptor stays open, whatever came. */
static void
nothing_leaks(void **state)
{
	int before, after;

	(void)state;
	prepare();
	before = dup(0);
	close(before);
	for (int i = 0; i < 50; i++) {
		send_file("kept", KN_FILE_KEEP, 0, tmpfs_file());
		kn_view_socket(w);
		send_file("../x", KN_FILE_KEEP, 0, tmpfs_file());
		kn_view_socket(w);
		w->bad = NULL;
		kn_files_drop(&s->entry[0]);
	}
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

int
main(void)
{
#define SOCK(t) cmocka_unit_test_setup_teardown(t, start, stop)
	const struct CMUnitTest tests[] = {
		SOCK(messages_out_of_turn),
		SOCK(a_kept_file_comes_through),
		SOCK(descriptors_that_are_no_files_of_a_task),
		SOCK(names_that_lead_elsewhere),
		SOCK(long_names_that_begin_alike_differ_by_their_prints),
		SOCK(records_and_descriptors_that_do_not_agree),
		SOCK(nothing_leaks),
	};

	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
