/* cmd/policy_explain.c: knit-sandbox policy explain: a policy in words, or who decides
 * about one system call (--call), asked of the programs that the kernel would run.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "cmd/policy.h"
#include "cmd/policy_words.h"
#include "ipc/err.h"
#include "sandbox/filter_explain.h"
#include "sandbox/policy.h"

enum { ARGS_MAX = 6, NAMES_MAX = 200 };

struct call {
	const char *name; /* NULL: none is asked about; "-": those of stdin */
	const char *args[ARGS_MAX];
	int arg_n;
};

static bool
is_number(const char *s, uint64_t *out)
{
	char *end;
	bool minus = *s == '-';
	if (!(s[minus] >= '0' && s[minus] <= '9'))
		return false;
	errno = 0;
	*out = minus ? (uint64_t)strtoll(s, &end, 0) : strtoull(s, &end, 0);
	return !errno && !*end;
}

/* Take --call NAME [ARG...] out of argv. */
static int
take_call(int *argc, char **argv, struct call *c, struct kn_err *e)
{
	uint64_t v;
	int to = 1;
	*c = (struct call){ 0 };
	for (int i = 1; i < *argc; i++) {
		if (strncmp(argv[i], "--call=", 7) == 0)
			c->name = argv[i] + 7;
		else if (strcmp(argv[i], "--call") == 0)
			c->name = i + 1 < *argc ? argv[++i] : "";
		else {
			argv[to++] = argv[i];
			continue;
		}
		if (!*c->name)
			return kn_opt_refuse(e, "--call openat, --call ioctl 0 0x5412",
			    "policy explain: --call needs the name of a system call");
		while (i + 1 < *argc && is_number(argv[i + 1], &v)) {
			if (c->arg_n == ARGS_MAX)
				return kn_opt_refuse(e, NULL,
				    "policy explain: a system call has six arguments");
			c->args[c->arg_n++] = argv[++i];
		}
	}
	*argc = to;
	return 0;
}

/* ---- one call ---- */

static int
put(const char *text, size_t n)
{
	return kn_say_out(NULL, text, n) < 0 ? KN_EXIT_OURS : KN_EXIT_OK;
}

static int
print_answer(const struct kn_answer *a, bool alone, struct kn_err *e)
{
	char *text = NULL;
	int n = asprintf(&text, "%s%s%s%s%s%s\n    %s\n%s%s%s", alone ? a->call : "",
	    alone ? ": " : "  ", a->when[0] && !alone ? "if " : "",
	    alone ? "" : a->when,
	    a->when[0] && !alone ? ": "
	    : !alone		 ? "else: "
				 : "",
	    a->does, a->by, a->why[0] ? "    " : "", a->why, a->why[0] ? "\n" : "");
	int rc =
	    n < 0 ? kn_err_set(e, KN_EK_HOST, "out of memory") : put(text, (size_t)n);
	free(n < 0 ? NULL : text);
	return rc;
}

static bool
is_seen(const struct kn_answer *v, size_t n, const struct kn_answer *a)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i].when, a->when) == 0 && strcmp(v[i].by, a->by) == 0)
			return true;
	return false;
}

/* All that may happen, case by case. */
static int
explain_cases(const struct kn_book *b, const struct kn_ask *q, struct kn_err *e)
{
	enum { MAX = 64 };
	struct kn_answer *seen = calloc(MAX, sizeof *seen);
	char head[96];
	size_t n = 0;
	int rc = seen ? kn_book_ask(b, q, &seen[0], e)
		      : kn_err_set(e, KN_EK_HOST, "out of memory");
	if (rc == 0) {
		int len = snprintf(head, sizeof head,
		    "%s: depends on its arguments; the first that holds decides\n",
		    seen[0].call);
		rc = put(head, (size_t)len);
	}
	for (size_t i = 0; rc == 0 && n < MAX; i++) {
		int more = kn_book_case(b, q, i, &seen[n], e);
		if (more != 0) {
			rc = more < 0 ? -1 : 0;
			break;
		}
		if (!is_seen(seen, n, &seen[n])) {
			rc = print_answer(&seen[n], false, e);
			n++;
		}
	}
	free(seen);
	return rc;
}

static int
explain_call(const struct kn_book *b, const struct call *c, struct kn_err *e)
{
	struct kn_answer a;
	struct kn_ask q;
	if (kn_book_parse(c->name, &q, e) < 0)
		return -1;
	for (int i = 0; i < c->arg_n; i++)
		(void)is_number(c->args[i], &q.args[i]);
	if (kn_book_ask(b, &q, &a, e) < 0)
		return -1;
	if (a.depends && c->arg_n == 0)
		return explain_cases(b, &q, e);
	int rc = print_answer(&a, true, e);
	char *rule = kn_book_rule_for(b, &q), *line = NULL;
	if (rc == 0 && rule) {
		int n =
		    asprintf(&line, "    allowed by a rule such as\n    %s\n", rule);
		rc = n < 0 ? kn_err_set(e, KN_EK_HOST, "out of memory")
			   : put(line, (size_t)n);
		free(n < 0 ? NULL : line);
	}
	free(rule);
	return rc;
}

/* ---- many calls, for programs: "NAME [ARG...]" a line -> "RET BY" ---- */

static const char *
action_word(uint32_t ret)
{
	switch (ret & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
		return "allow";
	case SECCOMP_RET_LOG:
		return "log";
	case SECCOMP_RET_ERRNO:
		return "errno";
	case SECCOMP_RET_TRAP:
		return "trap";
	case SECCOMP_RET_KILL_THREAD:
		return "kill-thread";
	default:
		return "kill";
	}
}

static int
explain_line(const struct kn_book *b, char *line, struct kn_err *e)
{
	char *save = NULL, *word = strtok_r(line, " \t\n", &save), text[320];
	struct kn_answer a;
	struct kn_ask q;
	int n = 0;
	if (!word)
		return 0;
	if (kn_book_parse(word, &q, e) < 0)
		return -1;
	while ((word = strtok_r(NULL, " \t\n", &save)))
		if (n == ARGS_MAX || !is_number(word, &q.args[n++]))
			return kn_opt_refuse(e, NULL,
			    "policy explain: \"%.40s\" is no argument of %s", word,
			    line);
	if (kn_book_ask(b, &q, &a, e) < 0)
		return -1;
	n = snprintf(text, sizeof text, "%s %s %u %s\n", a.call, action_word(a.ret),
	    a.ret & SECCOMP_RET_DATA, a.by);
	return put(text, (size_t)n);
}

static int
explain_lines(const struct kn_book *b, struct kn_err *e)
{
	char *line = NULL;
	size_t cap = 0;
	int rc = 0;
	while (rc == 0 && getline(&line, &cap, stdin) > 0)
		rc = explain_line(b, line, e);
	free(line);
	return rc;
}

/* ---- the verb ---- */

/* The names as given, for the title and the hints. */
static void
join_names(int argc, char **argv, char dst[NAMES_MAX])
{
	size_t n = 0;
	dst[0] = 0;
	for (int i = 1; i < argc && n < NAMES_MAX; i++)
		n += (size_t)snprintf(
		    dst + n, NAMES_MAX - n, "%s%s", i > 1 ? " " : "", argv[i]);
	if (argc < 2)
		snprintf(dst, NAMES_MAX, "default");
}

static int
explain(
    const struct kn_policy *p, const struct call *c, const char *name, struct kn_err *e)
{
	struct kn_book *b = NULL;
	int rc = kn_book_open(p, &b, e);
	if (rc == 0 && !c->name) {
		char *text = kn_policy_words(p, b, name);
		rc = text ? put(text, strlen(text))
			  : kn_err_set(e, KN_EK_HOST, "out of memory");
		free(text);
	} else if (rc == 0) {
		rc = strcmp(c->name, "-") == 0 ? explain_lines(b, e)
					       : explain_call(b, c, e);
	}
	kn_book_close(b);
	return rc;
}

int
kn_policy_explain_main(int argc, char **argv)
{
	struct kn_policy_notes notes = { 0 };
	struct kn_policy *p = NULL;
	struct kn_run_opts o = { 0 };
	struct kn_err e = { 0 };
	char name[NAMES_MAX];
	struct call c;
	int rc = take_call(&argc, argv, &c, &e);
	join_names(argc, argv, name);
	if (rc == 0)
		rc = kn_opt_parse_policy(&o, argc, argv, &e);
	if (rc == 0 && o.help) {
		rc = kn_policy_help();
	} else {
		if (rc == 0)
			rc = kn_policy_of_opts(&o, &p, &notes, &e);
		if (rc == 0)
			rc = explain(p, &c, name, &e);
		if (rc < 0)
			rc = kn_say_error(NULL, &e);
	}
	kn_policy_notes_fini(&notes);
	kn_policy_free(p);
	kn_opt_fini(&o);
	return rc;
}
