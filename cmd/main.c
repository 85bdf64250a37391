/* cmd/main.c: the verb table. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/init.h"
#include "cmd/opt.h"
#include "ipc/err.h"
#include "ipc/fd.h"
#include "ipc/near.h"

static const struct kn_verb verbs[] = {
	{ "run", "run one command, or a batch of tasks, in sandboxes", kn_cmd_run },
	{ "serve", "a pool behind a unix socket, for many clients", kn_cmd_serve },
	{ "policy", "list, show, check policies, and more", kn_cmd_policy },
	{ "doctor", "what this machine can and cannot do, and the fix", kn_cmd_doctor },
	{ "bench", "measure it here, beside what else is installed", kn_cmd_bench },
	{ "version", "print the version", kn_cmd_version },
	{ "top", "a live view of a pool that serves", kn_cmd_top },
};
enum { VERB_N = sizeof verbs / sizeof verbs[0], STACK_LEAST = 256 << 10 };

static int
help(void)
{
	char text[2048];
	int n = snprintf(text, sizeof text,
	    "usage: knit-sandbox VERB [OPTIONS]\n"
	    "Run commands that nobody trusts, in a pool of sandboxed workers.\n\n");

	for (int i = 0; i < VERB_N; i++) {
		n += snprintf(text + n, sizeof text - (size_t)n, "  %-9s %s\n",
		    verbs[i].name, verbs[i].what);
	}
	n += snprintf(text + n, sizeof text - (size_t)n,
	    "\n  knit-sandbox run -- python3 -c 'print(6*7)'\n"
	    "  knit-sandbox run --policy judge --tasks subs.jsonl --workers 8 "
	    ">out.jsonl\n\n"
	    "knit-sandbox VERB --help has the options; man knit-sandbox the rest.\n");
	return kn_say_out(NULL, text, (size_t)n) < 0 ? KN_EXIT_OURS : KN_EXIT_OK;
}

/* A verb that was mistyped, or a command without `run --` before it. */
static int
unknown(char **argv)
{
	static const char *const options[] = { "help", "version", NULL };
	const char *names[VERB_N + 2] = { NULL }, *near;
	struct kn_err e = { 0 };
	int n = 0;

	for (; n < VERB_N; n++)
		names[n] = verbs[n].name;
	names[n++] = "help";
	if (argv[1][0] == '-') {
		kn_err_set(
		    &e, KN_EK_USAGE, "unknown option %.60s before a verb", argv[1]);
		near = kn_opt_near(options, argv[1]);
		if (near)
			kn_err_hint(&e, "did you mean --%s?", near);
		kn_err_hint(
		    &e, "options follow the verb: knit-sandbox run %.60s", argv[1]);
		return kn_say_error(NULL, &e);
	}
	near = kn_near_word(names, argv[1]);
	kn_err_set(&e, KN_EK_USAGE, "unknown verb %.100s", argv[1]);
	if (near)
		kn_err_hint(&e, "did you mean knit-sandbox %s?", near);
	kn_err_hint(&e,
	    "knit-sandbox --help lists them; a command goes after: run -- %.60s",
	    argv[1]);
	return kn_say_error(NULL, &e);
}

/* What stands in for a closed stdout would take all that is printed. `run` and `serve`
 * know what to do about it, others have nothing but that. */
static void
refuse_writes(void)
{
	KN_OWN_FD int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)dup2(fd, STDOUT_FILENO);
}

/* The kernel ends without a word who needs more than that. */
static int
check_stack(struct kn_err *e)
{
	struct rlimit stack;

	if (getrlimit(RLIMIT_STACK, &stack) < 0 || stack.rlim_cur >= STACK_LEAST)
		return 0;
	kn_err_set(e, KN_EK_HOST,
	    "RLIMIT_STACK allows %llu KiB of stack, %u are needed",
	    (unsigned long long)stack.rlim_cur / 1024, STACK_LEAST / 1024);
	kn_err_hint(e, "raise it: ulimit -s");
	return -1;
}

int
main(int argc, char **argv)
{
	struct kn_err e = { 0 };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	char dashed[] = "--help";
	unsigned closed;

	/* A file that may not grow (ulimit -f) is an error of the write, and named. */
	sigaction(SIGXFSZ, &ignore, NULL);
	kn_init_begin();
	/* Whoever starts it chooses the policy, so it must not lend anybody's rights.
	 */
	if (getuid() != geteuid() || getgid() != getegid()) {
		kn_err_set(&e, KN_EK_USAGE,
		    "is set-user-id or set-group-id: its caller would get to files and "
		    "rights that are another's");
		kn_err_hint(&e, "take that mode away (chmod ug-s), and start it as the "
				"user whose rights it shall have");
		return kn_say_error(NULL, &e);
	}
	/* A closed 0, 1 or 2 would be taken by the next descriptor we open. */
	if (kn_fd_reserve_stdio(&closed, &e) < 0)
		return kn_say_error(NULL, &e);
	if (check_stack(&e) < 0)
		return kn_say_error(NULL, &e);
	if (argc < 2) {
		kn_err_set(&e, KN_EK_USAGE, "no verb given");
		kn_err_hint(&e, "knit-sandbox run -- COMMAND, or knit-sandbox --help");
		return kn_say_error(NULL, &e);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    (strcmp(argv[1], "help") == 0 && argc < 3))
		return help();
	if (strcmp(argv[1], "help") == 0) { /* "help run" is "run --help" */
		argv[1] = argv[2];
		argv[2] = dashed;
		argc = 3;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		return kn_cmd_version(1, argv + 1, closed);
	for (int i = 0; i < VERB_N; i++) {
		if (strcmp(argv[1], verbs[i].name) != 0)
			continue;
		if (closed & 1u << STDOUT_FILENO && verbs[i].run != kn_cmd_run &&
		    verbs[i].run != kn_cmd_serve)
			refuse_writes();
		return verbs[i].run(argc - 1, argv + 1, closed);
	}
	return unknown(argv);
}
