/* cmd/bench.c: knit-sandbox bench: the figures of this program on this machine. */
#include "cmd/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/delegate.h"
#include "cmd/opt.h"
#include "ipc/clock.h"
#include "ipc/fd.h"
#include "sandbox/policy.h"

/* The program of cmd/bench/task.c, embedded by the linker (Makefile). */
extern const char kn_bench_task_image[], kn_bench_task_image_end[];

extern char **environ;

enum { CLOSE_DEPTH = 8, NUMBERS_MAX = 32 };

static const struct measure {
	uint32_t numbers; /* a bit for each that it gives */
	const char *what;
	void (*run)(struct kn_bench *b);
} measures[] = {
	{ 1u << 1, "one command from nothing to its end", kn_bench_start },
	{ 1u << 2, "exec tasks a second beside a bare spawn", kn_bench_exec },
	{ 1u << 3, "the same beside one sandbox per task", kn_bench_peers },
	{ 1u << 4 | 1u << 5, "calls of a module, one at a time", kn_bench_trip },
	{ 1u << 6, "calls of a module, many under way", kn_bench_flow },
	{ 1u << 7, "bytes through a module", kn_bench_bytes },
	{ 1u << 8 | 1u << 13, "an idle pool: what it does, what it holds",
	    kn_bench_idle },
	{ 1u << 9, "how late a task is gone", kn_bench_kill },
	{ 1u << 10, "uneven tasks, with and without stealing", kn_bench_steal },
	{ 1u << 11, "memory over 20,000 tasks", kn_bench_long },
	{ 1u << 12, "start of a worker", kn_bench_cold },
	{ 1u << 14, "a policy of 400 names to BPF", kn_bench_filter },
	{ 1u << 15, "claims from a shared bank, two ways", kn_bench_claim },
	{ 1u << 15, "pools of 1 to 64 workers", kn_bench_scale },
};
enum { MEASURE_N = sizeof measures / sizeof *measures };

static const char help_text[] =
    "usage: knit-sandbox bench [OPTIONS]    the figures, here, beside what is "
    "installed\n\n"
    "  --json                 one JSON document in place of the table\n"
    "  --only M2,M3           these measures only\n"
    "  --rounds N             rounds of each, 1 to 50; 5 without it\n"
    "  --image NAME           M12 of a worker by docker too, in this image\n"
    "  --quick                one small round of each: does it run?\n"
    "  --delegate             ask systemd for a cgroup, and measure in that\n"
    "  --help                 this text\n\n"
    "M1 M12 start, M2 M3 tasks a second, M4a M4b M5 M6 M7 calls of a module,\n"
    "M8 M13 idle, M9 kills, M10 stealing,\n"
    "M11 memory, M14 filter, M15 claims. About two minutes on a quiet machine.\n"
    "Exit: 0 measured, whatever the figures are; 125 it could not begin.\n"
    "More: man knit-sandbox\n";

bool
kn_bench_wants(const struct kn_bench *b, unsigned m)
{
	return b->only >> m & 1;
}

/* ---- options ---- */

static int
parse_only(struct kn_bench *b, const char *text, struct kn_err *e)
{
	static const char hint[] =
	    "M1 M2 M3 M4 M5 M6 M7 M8 M9 M10 M11 M12 M13 M14 M15, as --only M2,M3";
	uint32_t all = 0;

	for (int i = 0; i < MEASURE_N; i++)
		all |= measures[i].numbers;
	b->only = 0;
	for (const char *p = text;; p++) {
		char *end;
		unsigned long n = *p == 'M' ? strtoul(p + 1, &end, 10) : 0;

		if (n == 4 && (*end == 'a' || *end == 'b'))
			end++; /* M4a and M4b are taken together */
		if (*p != 'M' || p[1] < '0' || p[1] > '9' || n >= NUMBERS_MAX ||
		    !(all >> n & 1) || (*end && *end != ','))
			return kn_opt_refuse(
			    e, hint, "--only: no measure in \"%.40s\"", p);
		b->only |= 1u << n;
		p = end;
		if (!*p)
			return 0;
	}
}

static int
parse_rounds(struct kn_bench *b, const char *text, struct kn_err *e)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n < 1 || n > KN_BENCH_ROUNDS_MAX)
		return kn_opt_refuse(e, "a number from 1 to 50",
		    "--rounds: \"%.40s\" is not a number of rounds", text);
	b->rounds = (unsigned)n;
	return 0;
}

struct asked {
	bool help, delegate;
};

static int
parse_value(struct kn_bench *b, int argc, char **argv, int *i, bool *out_rounds,
    struct kn_err *e)
{
	static const char *const names[] = { "json", "only", "rounds", "quick", "image",
		"delegate", "help", NULL };
	const char *v = NULL;
	int rc = kn_opt_take("bench", "--only", argc, argv, i, &v, e);

	if (rc > 0)
		return parse_only(b, v, e);
	if (rc == 0)
		rc = kn_opt_take("bench", "--image", argc, argv, i, &b->image, e);
	if (rc > 0 && !*b->image)
		return kn_opt_refuse(e, "as docker names it: debian:bookworm-slim",
		    "--image: the name is empty");
	if (rc > 0)
		return 0;
	if (rc == 0)
		rc = kn_opt_take("bench", "--rounds", argc, argv, i, &v, e);
	if (rc == 0)
		return kn_opt_unknown(e, "bench", argv[*i], names);
	*out_rounds = true;
	return rc < 0 ? -1 : parse_rounds(b, v, e);
}

static int
parse(struct kn_bench *b, int argc, char **argv, struct asked *out, struct kn_err *e)
{
	bool rounds = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			out->help = true;
			return 0;
		}
		if (strcmp(argv[i], "--delegate") == 0)
			out->delegate = true;
		else if (strcmp(argv[i], "--json") == 0)
			b->json = true;
		else if (strcmp(argv[i], "--quick") == 0)
			b->quick = true;
		else if (parse_value(b, argc, argv, &i, &rounds, e) < 0)
			return -1;
	}
	if (b->image && !kn_bench_wants(b, 12))
		return kn_opt_refuse(e, "leave it out, or add M12 to --only",
		    "--image: it is for M12, which --only leaves out");
	if (b->quick && !rounds)
		b->rounds = 1;
	return 0;
}

/* ---- what all measures need ---- */

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void
remove_dir(const char *path)
{
	nftw(path, remove_one, CLOSE_DEPTH, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* What a bench left that was killed outright: its directory is ours, and not locked. */
static void
sweep(const char *tmp)
{
	char pattern[80];
	glob_t g;

	snprintf(pattern, sizeof pattern, "%s/knit-bench.??????", tmp);
	if (glob(pattern, GLOB_NOSORT, NULL, &g) != 0)
		return;
	for (size_t i = 0; i < g.gl_pathc; i++) {
		KN_OWN_FD int fd = open(
		    g.gl_pathv[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
		    flock(fd, LOCK_EX | LOCK_NB) == 0)
			remove_dir(g.gl_pathv[i]);
	}
	globfree(&g);
}

static int
make_dir(struct kn_bench *b, struct kn_err *e)
{
	const char *tmp = getenv("TMPDIR");

	if (!tmp || tmp[0] != '/' || strlen(tmp) > 40)
		tmp = "/tmp";
	sweep(tmp);
	snprintf(b->dir, sizeof b->dir, "%s/knit-bench.XXXXXX", tmp);
	if (!mkdtemp(b->dir)) {
		b->dir[0] = '\0';
		return kn_err_sys(e, KN_EK_HOST, "make a directory in %s", tmp);
	}
	/* held to the end: says that somebody is there */
	b->lock_fd = open(b->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b->lock_fd < 0 || flock(b->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return kn_err_sys(e, KN_EK_HOST, "lock %s", b->dir);
	/* other sandboxes run as other users, and have to find the program */
	if (chmod(b->dir, 0755) < 0)
		return kn_err_sys(e, KN_EK_HOST, "open %s to others", b->dir);
	snprintf(b->task, sizeof b->task, "%s/task", b->dir);
	KN_OWN_FD int fd = open(b->task, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (fd < 0 || fchmod(fd, 0755) < 0 ||
	    kn_fd_write_all(fd, kn_bench_task_image,
		(size_t)(kn_bench_task_image_end - kn_bench_task_image)) < 0)
		return kn_err_sys(e, KN_EK_HOST, "write %s", b->task);
	return 0;
}

static int
load_policies(struct kn_bench *b, struct kn_err *e)
{
	const struct kn_policy_src bind = { .type = KN_SRC_MOUNT,
		.text = b->task,
		.at = KN_BENCH_TASK,
		.label = "bench" };

	if (kn_policy_load(NULL, 0, &b->plain, e) < 0 ||
	    kn_policy_load(&bind, 1, &b->policy, e) < 0)
		return -1;
	return kn_env_build(&b->env, b->plain, (const char *const *)environ, e);
}

static int
prepare(struct kn_bench *b, struct kn_err *e)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	b->start_ns = kn_clock_now();
	snprintf(b->exe, sizeof b->exe, "/proc/self/exe");
	kn_bench_block(b);
	sigaction(SIGPIPE, &ignore, NULL);
	if (kn_host_probe(&b->host, e) < 0)
		return -1;
	b->drop_uid = b->host.root ? b->host.worker_uid_base : 0;
	return make_dir(b, e) < 0 || load_policies(b, e) < 0 ? -1 : 0;
}

static void
end(struct kn_bench *b)
{
	if (b->dir[0])
		remove_dir(b->dir);
	kn_fd_close(&b->lock_fd);
	kn_env_fini(&b->env);
	kn_policy_free(b->policy);
	kn_policy_free(b->plain);
}

/* ---- the verb ---- */

static void
tell(const struct measure *m)
{
	char line[128];
	int n;

	if (!isatty(STDERR_FILENO))
		return;
	n = snprintf(line, sizeof line, "bench: %s\n", m->what);
	(void)kn_fd_write_all(STDERR_FILENO, line, (size_t)n);
}

static int
print(const struct kn_bench *b)
{
	char *text = b->json ? kn_report_bench_json(b) : kn_report_bench_table(b);
	int rc = KN_EXIT_OURS;

	if (!text)
		kn_say(NULL, "bench: out of memory");
	else if (kn_say_out(NULL, text, strlen(text)) == 0 &&
		 (!b->json || kn_say_out(NULL, "\n", 1) == 0))
		rc = KN_EXIT_OK;
	free(text);
	return rc;
}

static int
run(struct kn_bench *b)
{
	struct kn_err e = { 0 };

	if (prepare(b, &e) < 0)
		return kn_say_error(NULL, &e);
	for (int i = 0; i < MEASURE_N && !kn_bench_ending(b); i++) {
		if (!(b->only & measures[i].numbers))
			continue;
		tell(&measures[i]);
		measures[i].run(b);
	}
	if (b->signal)
		return KN_EXIT_SIGNAL + b->signal;
	return print(b);
}

int
kn_cmd_bench(int argc, char **argv, unsigned closed)
{
	static struct kn_bench b = {
		.rounds = KN_BENCH_ROUNDS, .only = UINT32_MAX, .lock_fd = -1
	};
	struct kn_err e = { 0 };
	struct asked asked = { 0 };
	int rc;

	if (parse(&b, argc, argv, &asked, &e) < 0)
		return kn_say_error(NULL, &e);
	if (asked.help)
		return kn_say_out(NULL, help_text, strlen(help_text)) < 0 ? KN_EXIT_OURS
									  : KN_EXIT_OK;
	if (kn_delegate(asked.delegate, argv, closed, &e) < 0)
		return kn_say_error(NULL, &e);
	rc = run(&b);
	end(&b);
	return rc;
}
