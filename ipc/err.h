/* ipc/err.h: an error by value: whose fault, what was attempted, what to try.
 *
 * One convention everywhere: a function returns 0 on success and -1 on failure
 * with *e filled. The struct lives on the caller's stack, owns nothing, and can be
 * written to a pipe as it is. The failing call says what was attempted on what;
 * each boundary adds one prefix with kn_err_wrap(); only cmd/ prints.
 * A NULL e is allowed everywhere and loses the text.
 */
#ifndef KN_IPC_ERR_H
#define KN_IPC_ERR_H

/* Whose fault it is. The exit code of the program is a function of this. */
enum kn_ek {
	KN_EK_NONE,
	KN_EK_USAGE,  /* the command line */
	KN_EK_CONFIG, /* a policy or a task document */
	KN_EK_HOST,   /* this machine cannot: kernel, limits, missing program */
	KN_EK_LAUNCH, /* a worker could not be started */
	KN_EK_TASK,   /* the task itself */
	KN_EK_TIMEOUT,
	KN_EK_PROTOCOL, /* a worker lied or spoke out of turn */
	KN_EK_BUG,
	KN_EK_N
};

struct kn_err {
	enum kn_ek kind;
	int sys;	/* errno at the failing call, 0 if none */
	char msg[256];	/* one line, no trailing newline; truncated with "..." */
	char hint[256]; /* what to try next, or "" */
};

/* All return -1, so that `return kn_err_set(e, ...)` reads naturally. */
int kn_err_set(struct kn_err *e, enum kn_ek kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* As kn_err_set, with errno taken first, stored in sys and ": strerror" appended. */
int kn_err_sys(struct kn_err *e, enum kn_ek kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Prefix "<text>: ". Keeps kind, sys and hint. */
int kn_err_wrap(struct kn_err *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Set the hint unless one is set already (the deepest knows best). */
void kn_err_hint(struct kn_err *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void kn_err_clear(struct kn_err *e);

/* Copy src to dst (n bytes, always terminated) with control bytes, DEL and invalid
 * UTF-8 written as \xNN, so that hostile text can stand in a message or on a
 * terminal. Returns the length written. */
int kn_err_printable(char *dst, int n, const char *src, int src_n);

#endif
