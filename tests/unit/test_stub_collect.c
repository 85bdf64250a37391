/* What a task left is handed over only where it is a plain file beneath /task. The tree
 * here is as a hostile task would leave it; a test reads the stub's answers as the
 * supervisor would. */
#include "tests/unit/ipc_test.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* The stub's sources are not in the library. */
#include "ipc/glob.c"
#include "sandbox/stub/collect.c"
#include "sandbox/stub/send.c"

enum { ANSWERS_MAX = 400 };

struct answer {
	char name[300];
	uint32_t what, refusal;
	char text[32]; /* of the file behind the descriptor */
	int flags, mode;
};

static char place[] = "/tmp/knit-test-collect-XXXXXX";
static int root, pair[2];
static struct answer answers[ANSWERS_MAX];
static int answer_n, message_n;
static const struct kn_collect_limits wide = { 1 << 20, 4 << 20, 100 };

static void
put(const char *path, const char *text, unsigned mode)
{
	int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int
make_tree(void **state)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd, s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	memcpy(place + sizeof place - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(place));
	root = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(mkdirat(root, "out", 0755), 0);
	assert_int_equal(mkdirat(root, "out/deep", 0755), 0);
	assert_int_equal(mkdirat(root, "out/.hidden", 0755), 0);
	put("plain.txt", "plain", 0640);
	put("out/1.png", "one", 0644);
	put("out/deep/2.png", "two", 0644);
	put("out/.hidden/3.png", "three", 0644);
	put("bad\001name", "x", 0644);
	assert_int_equal(symlinkat("/etc/passwd", root, "passwd"), 0);
	assert_int_equal(symlinkat("out", root, "link"), 0);
	assert_int_equal(symlinkat("..", root, "up"), 0);
	assert_int_equal(mkfifoat(root, "pipe", 0644), 0);
	fd = openat(root, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	close(fd);
	snprintf(a.sun_path, sizeof a.sun_path, "%s/socket", place);
	assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof a), 0);
	close(s);
	return 0;
}

static int
remove_tree(void **state)
{
	pid_t k = fork();

	(void)state;
	if (k == 0) {
		execlp("rm", "rm", "-rf", place, (char *)NULL);
		_exit(127);
	}
	waitpid(k, NULL, 0);
	kn_fd_close(&root);
	kn_fd_close(&pair[0]);
	kn_fd_close(&pair[1]);
	return 0;
}

static void
take_answer(struct kn_blob_r *r, int *fds, int *at)
{
	struct answer *a = &answers[answer_n++];
	struct stat st;

	assert_true(answer_n < ANSWERS_MAX);
	memset(a, 0, sizeof *a);
	snprintf(a->name, sizeof a->name, "%s", kn_blob_get_str(r));
	a->what = kn_blob_get_u32(r);
	a->refusal = kn_blob_get_u32(r);
	if (a->refusal != KN_FILE_OK)
		return;
	a->flags = fcntl(fds[*at], F_GETFL);
	assert_true(pread(fds[*at], a->text, sizeof a->text - 1, 0) >= 0);
	assert_int_equal(fstat(fds[*at], &st), 0);
	a->mode = (int)(st.st_mode & 07777);
	kn_fd_close(&fds[(*at)++]);
}

static void
read_answers(void)
{
	static uint8_t buf[sizeof(struct kn_msg) + KN_MSG_BODY_MAX];
	int fds[KN_MSG_FDS_MAX], fd_n, at;
	struct kn_msg m;
	ssize_t n;

	answer_n = message_n = 0;
	while ((n = kn_fd_recv(
		    pair[1], buf, sizeof buf, fds, KN_MSG_FDS_MAX, &fd_n, 1)) > 0) {
		const uint8_t *body =
		    kn_msg_check(buf, (size_t)n, 1u << KN_MSG_FILES, &m);
		struct kn_blob_r r = { body, m.bytes, 0, false };

		assert_non_null(body);
		assert_int_equal(m.task, 7);
		assert_int_equal(m.gen, 3);
		message_n++;
		for (at = 0; r.at < r.n;)
			take_answer(&r, fds, &at);
		assert_false(r.bad);
		assert_int_equal(at, fd_n);
	}
}

static uint32_t
ask(const char *const *keep, uint32_t keep_n, const char *const *collect,
    uint32_t collect_n, const struct kn_collect_limits *limits)
{
	struct kn_job j = { .keep = keep,
		.keep_n = keep_n,
		.collect = collect,
		.collect_n = collect_n };
	uint32_t n = 0;
	int before = open_fds();

	assert_int_equal(kn_files_collect(root, -1, &j, limits, pair[0], 7, 3, &n), 0);
	read_answers();
	assert_int_equal(open_fds(), before);
	assert_int_equal(n, answer_n);
	return n;
}

static const struct answer *
answer_for(const char *name)
{
	const struct answer *found = NULL;

	for (int i = 0; i < answer_n; i++) {
		if (strcmp(answers[i].name, name) != 0)
			continue;
		assert_null(found); /* never twice */
		found = &answers[i];
	}
	return found;
}

static void
assert_refused(const char *name, uint32_t refusal)
{
	const struct answer *a = answer_for(name);

	if (!a)
		fail_msg("no answer for %s", name);
	else if (a->refusal != refusal)
		fail_msg("%s: refusal %u, not %u", name, a->refusal, refusal);
}

static void
assert_file(const char *name, const char *text)
{
	const struct answer *a = answer_for(name);

	assert_refused(name, KN_FILE_OK);
	assert_string_equal(a->text, text);
	assert_int_equal(a->flags & O_ACCMODE, O_RDONLY);
}

/* ---- tests ---- */

static void
only_plain_files_are_handed_over(void **state)
{
	static const char *const keep[] = { "plain.txt", "passwd", "pipe", "socket",
		"out", "absent", "link/1.png", "up/x", "plain.txt/x" };

	(void)state;
	ask(keep, 9, NULL, 0, &wide);
	assert_file("plain.txt", "plain");
	assert_int_equal(answer_for("plain.txt")->mode, 0640);
	assert_int_equal(answer_for("plain.txt")->what, KN_FILE_KEEP);
	assert_refused("passwd", KN_FILE_SYMLINK);
	assert_refused("pipe", KN_FILE_NOT_REGULAR);
	assert_refused("socket", KN_FILE_NOT_REGULAR);
	assert_refused("out", KN_FILE_NOT_REGULAR);
	assert_refused("absent", KN_FILE_MISSING);
	assert_refused("link/1.png", KN_FILE_SYMLINK);
	assert_refused("up/x", KN_FILE_SYMLINK);
	assert_refused("plain.txt/x", KN_FILE_MISSING);
}

static void
patterns_reach_down_but_not_through_links(void **state)
{
	static const char *const globs[] = { "**/*.png", "out/*", "link/*", "*" };

	(void)state;
	ask(NULL, 0, globs, 4, &wide);
	assert_file("out/1.png", "one");
	assert_file("out/deep/2.png", "two");
	assert_null(answer_for("out/.hidden/3.png")); /* not named: not meant */
	assert_null(answer_for("link/1.png"));
	assert_refused("passwd", KN_FILE_SYMLINK);
	assert_refused("sparse", KN_FILE_TOO_LARGE);
	assert_null(answer_for("out")); /* a folder that a star met needs no word */
}

static void
a_hidden_folder_is_reached_when_named(void **state)
{
	static const char *const globs[] = { "out/.hidden/*.png" };

	(void)state;
	ask(NULL, 0, globs, 1, &wide);
	assert_file("out/.hidden/3.png", "three");
}

/* As overlayfs leaves it: what was written is in a folder of its own. */
static void
a_layer_is_handed_over_whole_and_what_was_removed_is_nothing(void **state)
{
	const struct kn_job none = { .keep_n = 0 };
	uint32_t n = 0;
	int fd;

	(void)state;
	assert_int_equal(mkdirat(root, "upper", 0755), 0);
	assert_int_equal(mkdirat(root, "upper/.d", 0755), 0);
	fd = openat(root, "upper/.d/.x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "hidden", 6), 6);
	close(fd);
	assert_int_equal(mknodat(root, "upper/gone", S_IFCHR, 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", root, "upper/link"), 0);
	assert_int_equal(mkfifoat(root, "upper/pipe", 0644), 0);
	assert_int_equal(
	    kn_files_collect(root, root, &none, &wide, pair[0], 7, 3, &n), 0);
	read_answers();
	assert_int_equal(answer_n, n);
	assert_int_equal(n, 3);
	assert_file(".d/.x", "hidden");
	assert_int_equal(answer_for(".d/.x")->what, KN_FILE_OUT);
	assert_refused("link", KN_FILE_SYMLINK);
	assert_refused("pipe", KN_FILE_NOT_REGULAR);
}

static void
a_name_unfit_for_a_record_is_refused_in_a_form_that_is(void **state)
{
	static const char *const globs[] = { "bad*" };

	(void)state;
	put("bad\\x01name", "the other", 0644); /* looks the same once printable */
	ask(NULL, 0, globs, 1, &wide);
	assert_int_equal(answer_n, 1);
}

static void
more_than_the_limit_is_said_once(void **state)
{
	static const char *const globs[] = { "m*", "out/*.png" };
	const struct kn_collect_limits few = { 1 << 20, 4 << 20, 10 };
	char name[32];

	(void)state;
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof name, "m%d", i);
		put(name, name, 0644);
	}
	assert_int_equal(ask(NULL, 0, globs, 2, &few), 10);
	assert_refused("m*", KN_FILE_TOO_MANY);
	/* Over many messages: each holds at most what one datagram can carry. */
	for (int i = 50; i < 150; i++) {
		snprintf(name, sizeof name, "m%d", i);
		put(name, name, 0644);
	}
	ask(NULL, 0, globs, 1, &(struct kn_collect_limits){ 1 << 20, 4 << 20, 1000 });
	assert_int_equal(answer_n, 150);
	assert_true(message_n >= 3);
	assert_file("m149", "m149");
}

static void
the_total_is_bounded_too(void **state)
{
	static const char *const keep[] = { "plain.txt", "out/1.png",
		"out/deep/2.png" };

	(void)state;
	ask(keep, 3, NULL, 0, &(struct kn_collect_limits){ 100, 8, 100 });
	assert_file("plain.txt", "plain"); /* five of eight bytes */
	assert_file("out/1.png", "one");
	assert_refused("out/deep/2.png", KN_FILE_TOO_LARGE);
}

static void
a_deep_tree_ends_the_walk_and_not_the_stub(void **state)
{
	static const char *const globs[] = { "**/x" };
	int at = dup(root);

	(void)state;
	for (int i = 0; i < 200; i++) {
		int next;

		assert_int_equal(mkdirat(at, "d", 0755), 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(at);
		at = next;
	}
	close(at);
	ask(NULL, 0, globs, 1, &wide);
	assert_int_equal(answer_n, 0);
}

enum { OTHERS_UID = 64321, LIMIT = 120, FLIGHTS = 3 };

/* Somebody reads, a little later. */
static void *
land(void *sock)
{
	const struct timespec nap = { 0, 50000000 };
	int fds[KN_MSG_FDS_MAX], n;
	char c;

	nanosleep(&nap, NULL);
	for (int i = 0; i < FLIGHTS; i++) {
		if (kn_fd_recv(*(int *)sock, &c, 1, fds, KN_MSG_FDS_MAX, &n, 0) < 0)
			_exit(3);
		for (int k = 0; k < n; k++)
			close(fds[k]);
	}
	return NULL;
}

/* As a user without privilege, of whom others have more descriptors on their way than
 * this process may have open. 0 if the kernel refused one more, and all the same the
 * files were handed over. */
static int
collect_among_others(void)
{
	static const char *const keep[] = { "out/1.png" };
	const struct rlimit low = { LIMIT, LIMIT };
	struct kn_job j = { .keep = keep, .keep_n = 1 };
	int others[2], same[KN_MSG_FDS_MAX];
	uint32_t n = 0;
	pthread_t t;

	if ((geteuid() == 0 && fchown(root, OTHERS_UID, OTHERS_UID) < 0) ||
	    (geteuid() == 0 && setresuid(OTHERS_UID, OTHERS_UID, OTHERS_UID) < 0) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, others) < 0)
		return 10;
	for (int i = 0; i < KN_MSG_FDS_MAX; i++)
		same[i] = 0;
	for (int i = 0; i < FLIGHTS; i++)
		if (kn_fd_send(others[0], "", 1, same, KN_MSG_FDS_MAX, 1) < 0)
			return 11;
	if (setrlimit(RLIMIT_NOFILE, &low) < 0)
		return 12;
	if (kn_fd_send(pair[0], "", 1, same, 1, 1) == 0 || errno != ETOOMANYREFS)
		return 13;
	if (pthread_create(&t, NULL, land, &others[1]) != 0)
		return 14;
	if (kn_files_collect(root, -1, &j, &wide, pair[0], 7, 3, &n) != 0 || n != 1)
		return 15;
	pthread_join(t, NULL);
	return 0;
}

static void
files_come_when_others_have_many_descriptors_on_their_way(void **state)
{
	pid_t k = fork();
	int st = 0;

	(void)state;
	if (k == 0) {
		child_defaults();
		_exit(collect_among_others());
	}
	assert_int_equal(waitpid(k, &st, 0), k);
	assert_int_equal(st, 0);
	read_answers();
	assert_int_equal(answer_n, 1);
	assert_string_equal(answers[0].text, "one");
}

/* Nobody is left to send to. */
static void
files_for_a_supervisor_that_is_gone_are_let_go(void **state)
{
	static const char *const keep[] = { "plain.txt" };
	struct kn_job j = { .keep = keep, .keep_n = 1 };
	uint32_t n = 0;
	int before;

	(void)state;
	kn_fd_close(&pair[1]);
	before = open_fds();
	assert_int_equal(
	    kn_files_collect(root, -1, &j, &wide, pair[0], 7, 3, &n), -EPIPE);
	assert_int_equal(open_fds(), before);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, make_tree, remove_tree)
	const struct CMUnitTest tests[] = {
		T(only_plain_files_are_handed_over),
		T(patterns_reach_down_but_not_through_links),
		T(a_hidden_folder_is_reached_when_named),
		T(a_layer_is_handed_over_whole_and_what_was_removed_is_nothing),
		T(a_name_unfit_for_a_record_is_refused_in_a_form_that_is),
		T(more_than_the_limit_is_said_once),
		T(the_total_is_bounded_too),
		T(a_deep_tree_ends_the_walk_and_not_the_stub),
		T(files_come_when_others_have_many_descriptors_on_their_way),
		T(files_for_a_supervisor_that_is_gone_are_let_go),
	};

	return cmocka_run_group_tests_name("stub/collect", tests, NULL, NULL);
}
