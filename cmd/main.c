/* cmd/main.c: the verb table. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/init.h"
#include "ipc/err.h"
#include "ipc/fd.h"

static const struct kn_verb verbs[] = {
	{ "run", "run one command, or a batch of tasks, in sandboxes", kn_cmd_run },
	{ "serve", "a pool behind a unix socket, for many clients", kn_cmd_serve },
	{ "policy", "list, show, check policies, and more", kn_cmd_policy },
	{ "doctor", "what this machine can and cannot do, and the fix", kn_cmd_doctor },
	{ "bench", "measure it here, beside what else is installed", kn_cmd_bench },
	{ "version", "print the version", kn_cmd_version },
	{ "top", "a live view of a pool that serves", kn_cmd_top },
};
enum { VERB_N = sizeof verbs / sizeof verbs[0] };

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

int
main(int argc, char **argv)
{
	struct kn_err e = { 0 };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
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
	if (argc < 2) {
		kn_err_set(&e, KN_EK_USAGE, "no verb given");
		kn_err_hint(&e, "knit-sandbox run -- COMMAND, or knit-sandbox --help");
		return kn_say_error(NULL, &e);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return help();
	if (strcmp(argv[1], "--version") == 0)
		return kn_cmd_version(1, argv + 1, closed);
	for (int i = 0; i < VERB_N; i++) {
		if (strcmp(argv[1], verbs[i].name) != 0)
			continue;
		return verbs[i].run(argc - 1, argv + 1, closed);
	}
	kn_err_set(&e, KN_EK_USAGE, "unknown verb %s", argv[1]);
	kn_err_hint(&e, "knit-sandbox --help lists them; a command goes after: run --");
	return kn_say_error(NULL, &e);
}
