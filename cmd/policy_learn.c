/* cmd/policy_learn.c: knit-sandbox policy learn: run a command, let through and note
 * what nothing in the base allows, and write a policy that allows that. What something
 * in the base refuses stays refused, and is listed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "cmd/policy.h"
#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/filter.h"
#include "sandbox/host.h"
#include "sandbox/policy.h"
#include "sandbox/policy_learn.h"
#include "supervisor/sup.h"
#include "supervisor/task_env.h"

enum { GRANT_MAX = 64 };

extern char **environ;

struct learn {
	struct kn_run_opts opt;
	struct kn_policy *policy;
	struct kn_host host;
	struct kn_env env;
	const char *out, *grant[GRANT_MAX];
	size_t grant_n;
	char base[4096]; /* what the learnt policy extends */
	char **argv;
	char *text; /* the policy */
	int rc;
};

/* ---- what was seen ---- */

static void
tell_refused(const struct learn *l, const struct kn_outcome *o)
{
	(void)l;
	for (size_t i = 0; i < o->refused_n; i++) {
		const struct kn_refused *r = &o->refused[i];

		if (r->let)
			continue;
		kn_say(NULL, "not granted: %s, seen %llu time%s: %s", r->name,
		    (unsigned long long)r->count, r->count == 1 ? "" : "s", r->by);
		if (r->allow)
			kn_say_hint(NULL, r->allow);
	}
	if (o->refused_more)
		kn_say(NULL, "not granted: %llu calls of more kinds than can be noted",
		    (unsigned long long)o->refused_more);
}

static void
describe(const struct learn *l, char *dst, size_t cap)
{
	size_t n = (size_t)snprintf(dst, cap, "Learned from:");

	for (char **a = l->argv; *a && n < cap - 8; a++) {
		dst[n++] = ' ';
		n += kn_err_printable(
		    dst + n, cap - n, *a, (int)strnlen(*a, cap - n - 1));
	}
}

static void
make_text(struct learn *l, const struct kn_outcome *o)
{
	struct kn_learnt *v = calloc(o->refused_n + 1, sizeof *v);
	size_t n = 0, once = 0;
	char what[200];

	for (size_t i = 0; v && i < o->refused_n; i++) {
		const struct kn_refused *r = &o->refused[i];

		if (!r->let || !r->allow)
			continue;
		v[n++] = (struct kn_learnt){ r->allow, r->count };
		once += r->count == 1;
	}
	describe(l, what, sizeof what);
	l->text = v ? kn_policy_learnt_text(l->base, what, v, n) : NULL;
	free(v);
	if (l->text)
		kn_say(
		    NULL, "learned %zu kinds of calls, %zu of them seen once", n, once);
}

static void
on_answer(void *ctx, struct kn_task *t, struct kn_outcome *o)
{
	struct learn *l = ctx;

	kn_task_free(t);
	if (o->worker < 0 || o->verdict == KN_V_NOT_FOUND ||
	    o->verdict == KN_V_NOT_EXECUTABLE) {
		kn_say(NULL, "nothing was learned: %s: %s", kn_verdict_name(o->verdict),
		    o->error);
		if (o->verdict == KN_V_NOT_FOUND)
			kn_say_hint(NULL, "it must be in the PATH inside, or bound: a "
					  "policy file with filesystem.mounts, by "
					  "--policy FILE");
		return;
	}
	tell_refused(l, o);
	make_text(l, o);
	l->rc = KN_EXIT_OK;
	if (o->verdict == KN_V_OK)
		return;
	l->rc = KN_EXIT_NOT_ALL_OK;
	if (o->verdict == KN_V_EXIT)
		kn_say(NULL, "the command ended with %d: it may not have done all",
		    o->exit_code);
	else
		kn_say(NULL, "the command did not come to its end: %s: %s",
		    kn_verdict_name(o->verdict), o->error);
}

/* ---- the run ---- */

static char **
copy(char *const *v, size_t *out_n)
{
	size_t n = 0;
	char **out;

	while (v[n])
		n++;
	out = calloc(n + 1, sizeof *out);
	for (size_t i = 0; out && i < n; i++)
		if (!(out[i] = strdup(v[i])))
			n = i;
	*out_n = out ? n : 0;
	return out;
}

static struct kn_task *
make_task(struct learn *l, struct kn_err *e)
{
	const struct kn_task_ask nothing = { 0 };
	struct kn_task *t = kn_task_new();

	if (!t)
		return NULL;
	t->id = strdup("command");
	t->argv = copy(l->argv, &t->argv_n);
	t->env = copy(l->env.v, &t->env_n);
	t->stdio = KN_STDIO_RELAY;
	for (int i = 0; i < 3; i++)
		t->streams[i] = i;
	if (!l->out) /* stdout is the policy's */
		t->streams[1] = STDERR_FILENO;
	if (!t->id || !t->argv || t->argv_n == 0 || !t->env ||
	    kn_policy_tighten(l->policy, &nothing, &t->limits, &t->timeouts, e) < 0) {
		kn_task_free(t);
		return NULL;
	}
	t->limits.stdout_bytes = t->limits.stderr_bytes = UINT64_MAX;
	return t;
}

static int
run(struct learn *l, struct kn_err *e)
{
	const struct kn_sup_learn learn = { l->grant, l->grant_n };
	const struct kn_sup_callbacks cb = { .ctx = l, .answer = on_answer };
	struct kn_sup_options o = {
		.workers = 1, .single = true, .handle_signals = true, .learn = &learn
	};
	struct kn_sup *s = NULL;
	struct kn_task *t;
	int signo = 0, rc = -1;

	if (kn_host_probe(&l->host, e) < 0 ||
	    kn_env_build(&l->env, l->policy, (const char *const *)environ, e) < 0 ||
	    kn_sup_open(l->policy, &l->host, &o, &cb, &s, e) < 0)
		return -1;
	t = make_task(l, e);
	if (t && kn_sup_submit(s, t, e) == 0) {
		kn_sup_drain(s);
		rc = kn_sup_run(s, &signo, e);
	} else {
		kn_task_free(t);
		if (e->kind == KN_EK_NONE)
			kn_err_set(e, KN_EK_HOST, "out of memory");
	}
	kn_sup_close(s);
	if (rc == 0 && signo)
		l->rc = KN_EXIT_SIGNAL + signo;
	return rc;
}

/* ---- the file ---- */

static int
write_out(struct learn *l, struct kn_err *e)
{
	size_t n = l->text ? strlen(l->text) : 0;
	int fd;

	if (!l->text)
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	if (!l->out)
		return kn_say_out(NULL, l->text, n) < 0 || kn_say_out(NULL, "\n", 1) < 0
			   ? kn_err_set(e, KN_EK_HOST, "write the policy")
			   : 0;
	fd = open(l->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0) {
		kn_err_sys(e, KN_EK_USAGE, "--out: open %s", l->out);
		kn_opt_hint_file(e, l->out);
		return -1;
	}
	if (kn_fd_write_all(fd, l->text, n) < 0 || kn_fd_write_all(fd, "\n", 1) < 0 ||
	    fsync(fd) < 0)
		kn_err_sys(e, KN_EK_HOST, "--out: write %s", l->out);
	close(fd);
	return e->kind == KN_EK_NONE ? 0 : -1;
}

/* ---- arguments ---- */

/* What the learnt policy extends: one name, or one file by its absolute path. */
static int
find_base(struct learn *l, struct kn_err *e)
{
	const struct kn_opt_src *src = l->opt.src;
	const char *name = l->opt.src_n ? src[0].text : "default";
	char path[4096];

	if (l->opt.src_n > 1 || (l->opt.src_n == 1 && src[0].type != KN_OPT_NAMED))
		return kn_opt_refuse(e,
		    "put what they say into a file, and learn on it",
		    "policy learn: one base, a preset or a file");
	if (kn_policy_is_preset(name)) {
		snprintf(l->base, sizeof l->base, "%s", name);
		return 0;
	}
	if (!realpath(name, path)) {
		kn_err_sys(e, KN_EK_CONFIG, "policy %s", name);
		kn_opt_hint_policy(e, name);
		return -1;
	}
	snprintf(l->base, sizeof l->base, "%s", path);
	return 0;
}

/* Each --grant NAME, taken out of argv. */
static int
take_grants(struct learn *l, int *argc, char **argv, struct kn_err *e)
{
	int to = 1;

	for (int i = 1; i < *argc; i++) {
		const char *name = NULL;

		if (strcmp(argv[i], "--grant") == 0 && i + 1 < *argc)
			name = argv[++i];
		else if (strncmp(argv[i], "--grant=", 8) == 0)
			name = argv[i] + 8;
		else
			argv[to++] = argv[i];
		if (name && l->grant_n == GRANT_MAX)
			return kn_opt_refuse(e, "write the rules by hand",
			    "policy learn: more than %d times --grant", GRANT_MAX);
		if (name && kn_filter_check_call(name, e) < 0)
			return kn_err_wrap(e, "--grant");
		if (name)
			l->grant[l->grant_n++] = name;
	}
	*argc = to;
	return 0;
}

static int
merge(struct learn *l, int argc, char **argv, struct kn_err *e)
{
	if (argc != 3)
		return kn_opt_refuse(e, "knit-sandbox policy learn --merge A B",
		    "policy learn: --merge takes two files");
	l->text = kn_policy_learnt_merge(argv[1], argv[2], e);
	l->rc = KN_EXIT_OK;
	if (l->text)
		return write_out(l, e);
	kn_opt_hint_policy(e, argv[1]);
	kn_opt_hint_policy(e, argv[2]);
	return -1;
}

static int
learn(struct learn *l, struct kn_err *e)
{
	struct kn_policy_notes notes;
	int rc;

	if (find_base(l, e) < 0)
		return -1;
	if (kn_policy_of_opts(&l->opt, &l->policy, &notes, e) < 0) {
		l->rc = kn_policy_say_notes(&notes, e);
		kn_policy_notes_fini(&notes);
		return 0;
	}
	kn_policy_notes_fini(&notes);
	rc = run(l, e);
	return rc == 0 && l->text ? write_out(l, e) : rc;
}

static int
learn_args(struct learn *l, int argc, char **argv, struct kn_err *e)
{
	static const char hint[] =
	    "knit-sandbox policy learn [--policy BASE] [--out FILE] -- COMMAND";
	int n = 0;
	bool both;

	while (n < argc && strcmp(argv[n], "--") != 0)
		n++;
	if (n < argc - 1)
		l->argv = argv + n + 1;
	l->out = kn_policy_take_arg(&n, argv, "--out");
	both = kn_policy_take_flag(&n, argv, "--merge");
	if (take_grants(l, &n, argv, e) < 0)
		return -1;
	if (both && l->argv)
		return kn_opt_refuse(e, hint, "policy learn: --merge runs nothing");
	if (both)
		return merge(l, n, argv, e);
	if (kn_opt_parse_policy(&l->opt, n, argv, e) < 0)
		return -1;
	if (l->opt.help) {
		l->rc = kn_policy_help();
		return 0;
	}
	if (!l->argv)
		return kn_opt_refuse(e, hint, "policy learn: no command given");
	return learn(l, e);
}

int
kn_policy_learn_main(int argc, char **argv)
{
	struct learn l = { .rc = KN_EXIT_OURS };
	struct kn_err e = { 0 };

	if (learn_args(&l, argc, argv, &e) < 0)
		l.rc = kn_say_error(NULL, &e);
	kn_policy_free(l.policy);
	kn_env_fini(&l.env);
	kn_opt_fini(&l.opt);
	free(l.text);
	return l.rc;
}
