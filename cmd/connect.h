/* cmd/connect.h: run --connect: a client of `serve`, and the lines that it speaks. */
#ifndef KN_CMD_CONNECT_H
#define KN_CMD_CONNECT_H

#include <knit/pool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/run_int.h"

/* ---- connect_input.c ---- */

/* What goes to a command as its standard input: all of --stdin or of the caller's,
 * waited for, and said so; nothing for a call, or of a terminal. *out is fresh, or NULL
 * where there is none. */
int kn_connect_input(
    const struct kn_run *r, char **out, size_t *out_n, struct kn_err *e);

/* ---- connect_line.c ---- */

/* The task line of the command or call that the options name, with that input; fresh,
 * NULL with e. */
char *kn_connect_line(const struct kn_run_opts *o, const char *input, size_t input_n,
    size_t *out_n, struct kn_err *e);

/* How many answers the lines must have that are sent. All zero to begin with. */
struct kn_connect_count {
	uint64_t lines; /* that must be answered */
	size_t n;	/* bytes of the line that has not ended */
	bool text;	/* it is not blank */
	char head[4096];
};
/* Bytes of task lines, in their order. */
void kn_connect_count(struct kn_connect_count *c, const char *bytes, size_t n);
/* There are no more: a line needs no newline at the end. */
void kn_connect_count_end(struct kn_connect_count *c);

/* One result line, as far as it is needed here. */
struct kn_connect_answer {
	/* verdict, exit_code, signal, error, out, err; of a call value_type, and value:
	 * text and bytes as they are, others as JSON */
	struct knit_outcome outcome;
	char *own;  /* such JSON */
	void *json; /* what the texts are part of */
};
/* The server's word, which may be anything: 0, or -1 with e. */
int kn_connect_read(
    const char *line, size_t n, struct kn_connect_answer *a, struct kn_err *e);
/* As `run` would; the exit status. */
int kn_connect_print(const struct kn_run *r, const struct kn_connect_answer *a);
void kn_connect_forget(struct kn_connect_answer *a);

#endif
