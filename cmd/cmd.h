/* cmd/cmd.h: verbs, exit codes, and the only way to speak on stderr.
 *
 * cmd/ is the only folder that prints or exits. One verb is one file; a verb returns
 * the exit code.
 */
#ifndef KN_CMD_CMD_H
#define KN_CMD_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct kn_err;
struct knit_error;
struct knit_pool;

enum kn_exit {
	KN_EXIT_OK = 0,
	KN_EXIT_NOT_ALL_OK = 1, /* of a batch; of checks: findings */
	KN_EXIT_TIMEOUT = 124,
	KN_EXIT_OURS =
	    125, /* usage, policy, launcher, worker-lost: not the command's */
	KN_EXIT_NOT_EXECUTABLE = 126,
	KN_EXIT_NOT_FOUND = 127,
	KN_EXIT_SIGNAL = 128, /* + n */
	KN_EXIT_MEMORY = 137,
};

struct kn_verb {
	const char *name, *what;
	/* argv[0] is the verb; closed: bit per standard stream that was closed */
	int (*run)(int argc, char **argv, unsigned closed);
};

int kn_cmd_run(int argc, char **argv, unsigned closed);
int kn_cmd_policy(int argc, char **argv, unsigned closed);
int kn_cmd_doctor(int argc, char **argv, unsigned closed);
int kn_cmd_serve(int argc, char **argv, unsigned closed);
int kn_cmd_top(int argc, char **argv, unsigned closed);
int kn_cmd_bench(int argc, char **argv, unsigned closed);
int kn_cmd_version(int argc, char **argv, unsigned closed);

/* How to speak: set once from the options. */
struct kn_voice {
	bool json; /* --log-json */
	bool quiet;
};

/* "knit-sandbox: text" on stderr, made printable; as one JSON object if asked. */
void kn_say(const struct kn_voice *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* What to do about what was said before. */
void kn_say_hint(const struct kn_voice *v, const char *text);
/* The error, and its hint on a line of its own. Returns KN_EXIT_OURS. */
int kn_say_error(const struct kn_voice *v, const struct kn_err *e);
/* An error of libknit as one of ours. Returns -1. */
int kn_say_take(struct kn_err *e, const struct knit_error *from);
/* What something weaker stands in for in this pool, once it is open: nothing where the
 * kernel enforces all, or when quiet. */
void kn_say_layers(const struct kn_voice *v, const struct knit_pool *pool);
/* Write to stdout, all of it. 0, or -1 after one clear line. */
int kn_say_out(const struct kn_voice *v, const char *text, size_t n);
/* One argument, as a shell takes it. */
void kn_say_word(FILE *f, const char *word);

#endif
