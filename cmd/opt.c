/* cmd/opt.c: the option table of `run`, and what each option does; see opt.h. */
#include "cmd/opt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/opt_table.h"
#include "ipc/err.h"

static int flag(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int text(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int value(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int number(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int duration(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int size(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int named(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int set(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int bind(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int env(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int launcher(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int network(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int allow(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int module(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int collect(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);
static int workdir(
    struct kn_run_opts *, const struct kn_opt *, const char *, struct kn_err *);

#define AT(member) offsetof(struct kn_run_opts, member)
const struct kn_opt kn_opts[] = {
	{ "policy", "NAME|FILE", "a preset or a policy file; repeatable", named, 0,
	    NULL },
	{ "set", "/PTR=VALUE", "one value of the policy, by JSON pointer; repeatable",
	    set, 0, NULL },
	{ "workers", "N", "sandboxes side by side (default: as many as CPUs)", number,
	    0, "/pool/workers" },
	{ "launcher", "TYPE", "what starts a sandbox: bwrap, oci[:RUNTIME], direct",
	    launcher, 0, "/launcher/type" },
	{ "network", "none|host", "the network of the sandbox (default: none)", network,
	    0, "/network/mode" },
	{ "allow", "HOST:PORT", "a network of this host only, by a proxy; repeatable",
	    allow, 0, "/network/allow" },
	{ "bind", "SRC[:DST]", "show a file or directory, writable; repeatable", bind,
	    1, NULL },
	{ "ro-bind", "SRC[:DST]", "show a file or directory, read-only; repeatable",
	    bind, 0, NULL },
	{ "workdir", "DIR", "working directory inside (default: /task)", workdir,
	    AT(workdir), NULL },
	{ "env", "K=V", "set a variable inside; repeatable", env, 0, NULL },
	{ "timeout", "TIME", "wall clock limit of a task: 2s, 500ms, 5m; 0: none",
	    duration, 0, "/timeouts/hard_ms" },
	{ "cpu-time", "TIME", "CPU time limit of a task and all it starts", duration, 0,
	    "/limits/task/cpu_ms" },
	{ "memory", "SIZE", "memory limit of a task, as 256M", size, 0,
	    "/limits/task/memory" },
	{ "pids", "N", "limit of processes and threads of a task", number, 0,
	    "/limits/task/pids" },
	{ "retries", "N", "run a task again if its worker was lost", number, 0,
	    "/pool/retries" },
	{ "stdin", "FILE", "standard input of the command", text, AT(stdin_path),
	    NULL },
	{ "collect", "GLOB", "bring files of /task back, to --out-dir; repeatable",
	    collect, 0, NULL },
	{ "out-dir", "DIR", "where collected files go", text, AT(out_dir), NULL },
	{ "tasks", "FILE|-", "a batch: one task per line, see knit-tasks(5)", text,
	    AT(tasks), NULL },
	{ "module", "FILE.so", "calls of a shared object's tasks, not commands", module,
	    0, "/pool/module" },
	{ "call", "NAME", "the task of the module to call", text, AT(call), NULL },
	{ "input", "TEXT|@FILE", "its argument: text, or a file's bytes", text,
	    AT(input), NULL },
	{ "init", "TEXT", "text for the module's init hook", value, 0, "/pool/init" },
	{ "steal", "auto|shared|brokered|off", "how waiting tasks get to idle workers",
	    value, 0, "/pool/steal" },
	{ "connect", "SOCKET", "let a running server do it: knit-sandbox serve", text,
	    AT(connect), NULL },
	{ "ordered", NULL, "results in the order of the tasks", flag, AT(ordered),
	    NULL },
	{ "fail-fast", NULL, "stop the batch at the first task that is not ok", flag,
	    AT(fail_fast), NULL },
	{ "keep", "DIR", "where a batch's kept files live (default: removed)", text,
	    AT(keep_dir), NULL },
	{ "report", "FILE|-", "write the result as JSON", text, AT(report), NULL },
	{ "trace", "FILE", "write Chrome trace events", text, AT(trace), NULL },
	{ "debug", "NS[,NS]", "debug: host, lifecycle, signals, sandbox, ... or *",
	    text, AT(debug), NULL },
	{ "log-json", NULL, "messages on stderr as JSON lines", flag, AT(log_json),
	    NULL },
	{ "delegate", NULL, "ask systemd for a cgroup, and run in that", flag,
	    AT(delegate), NULL },
	{ "dry-run", NULL, "print the launch command and the policy; start nothing",
	    flag, AT(dry_run), NULL },
	{ "quiet", NULL, "no progress, no summary, no remarks", flag, AT(quiet), NULL },
	{ "help", NULL, "this text", flag, AT(help), NULL },
};
_Static_assert(sizeof kn_opts / sizeof kn_opts[0] == KN_OPT_N, "count the options");

/* ---- what options do ---- */

int
kn_opt_refuse(struct kn_err *e, const char *hint, const char *fmt, ...)
{
	char why[240];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	kn_err_set(e, KN_EK_USAGE, "%s", why);
	if (hint)
		kn_err_hint(e, "%s", hint);
	return -1;
}

int
kn_opt_usage(
    struct kn_err *e, const struct kn_opt *opt, const char *hint, const char *fmt, ...)
{
	char why[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	return kn_opt_refuse(e, hint, "--%s: %s", opt->name, why);
}

static int
out_of_memory(struct kn_err *e)
{
	return kn_err_set(e, KN_EK_HOST, "options: out of memory");
}

static int
flag(struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	(void)v;
	(void)e;
	*(bool *)(void *)((char *)o + opt->at) = true;
	return 0;
}

static int
text(struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	(void)e;
	*(const char **)(void *)((char *)o + opt->at) = v;
	return 0;
}

static int
add_src(struct kn_run_opts *o, struct kn_opt_src src, struct kn_err *e)
{
	struct kn_opt_src *v = realloc(o->src, (o->src_n + 1) * sizeof(*v));

	if (!v)
		return out_of_memory(e);
	o->src = v;
	o->src[o->src_n++] = src;
	return 0;
}

/* A fresh text that lives as long as the options. */
static char *
own(struct kn_run_opts *o, char *fresh)
{
	char **v = fresh ? realloc(o->owned, (o->owned_n + 1) * sizeof(*v)) : NULL;

	if (!v) {
		free(fresh);
		return NULL;
	}
	o->owned = v;
	o->owned[o->owned_n++] = fresh;
	return fresh;
}

static const char *
label_of(struct kn_run_opts *o, const struct kn_opt *opt)
{
	char *s;

	return asprintf(&s, "--%s", opt->name) < 0 ? NULL : own(o, s);
}

static int
value_at(struct kn_run_opts *o, const struct kn_opt *opt, const char *pointer,
    const char *v, struct kn_err *e)
{
	const struct kn_opt_src src = {
		.type = KN_OPT_VALUE,
		.pointer = pointer,
		.text = v,
		.label = label_of(o, opt),
	};

	return src.label ? add_src(o, src, e) : out_of_memory(e);
}

static int
value(struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	return value_at(o, opt, opt->pointer, v, e);
}

/* Of what is none the policy would say that it is a string. */
static int
number(struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	const char *digits = v + (*v == '-');
	char hint[64];

	if (!*digits || digits[strspn(digits, "0123456789")]) {
		snprintf(hint, sizeof hint, "a whole number without a unit: --%s 4",
		    opt->name);
		return kn_opt_usage(e, opt, hint, "\"%.40s\" is no number", v);
	}
	return value(o, opt, v, e);
}

/* In a policy a bare number is milliseconds, to timeout(1) it is seconds: whoever
 * writes one here means either, and the wrong one runs nothing or for a quarter of an
 * hour. */
static int
duration(
    struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	size_t n = strspn(v, "0123456789");

	if (v[n] == '\0' && strspn(v, "0") < n)
		return kn_opt_usage(e, opt,
		    "write it with ms, s, m or h, as 500ms or 2s",
		    "\"%.40s\" has no unit", v);
	return value(o, opt, v, e);
}

/* A few bytes are what nobody means. */
static int
size(struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	size_t n = strspn(v, "0123456789");
	char hint[80];

	if (v[n] == '\0' && n < 6 && strspn(v, "0") < n) {
		snprintf(hint, sizeof hint, "write %sM or %sG", v, v);
		return kn_opt_usage(
		    e, opt, hint, "\"%s\" is a number of bytes, and too small", v);
	}
	return value(o, opt, v, e);
}

static int
named(struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	(void)opt;
	if (strcmp(v, "-") == 0)
		return kn_opt_refuse(e,
		    "write it to a file; paths in it are relative to that file",
		    "a policy is not read from standard input");
	return add_src(o,
	    (struct kn_opt_src){ .type = KN_OPT_NAMED, .text = v, .label = "--policy" },
	    e);
}

static int
set(struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	if (v[0] != '/' || !strchr(v, '='))
		return kn_opt_usage(e, opt, "for instance --set /limits/task/nofile=64",
		    "\"%s\" is not /POINTER=VALUE", v);
	return add_src(o,
	    (struct kn_opt_src){ .type = KN_OPT_SET, .text = v, .label = "--set" }, e);
}

/* SRC:DST is parted at the last colon; a SRC with a colon in it needs a DST. */
static int
bind(struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	const char *colon = strrchr(v, ':');
	struct kn_opt_src src = {
		.type = KN_OPT_MOUNT,
		.text = v,
		.writable = opt->at != 0,
		.label = opt->at != 0 ? "--bind" : "--ro-bind",
	};

	if (colon && colon[1] != '/')
		return kn_opt_usage(e, opt, "write SRC:/PATH/INSIDE",
		    "\"%s\": DST must be an absolute path", v);
	if (colon) {
		src.text = own(o, strndup(v, (size_t)(colon - v)));
		src.at = colon + 1;
		if (!src.text)
			return out_of_memory(e);
	}
	if (src.text[0] == '\0')
		return kn_opt_usage(
		    e, opt, "write SRC or SRC:/PATH/INSIDE", "\"%s\": SRC is empty", v);
	return add_src(o, src, e);
}

static int
env(struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	const char *eq = strchr(v, '=');
	char *pointer = NULL, *at;

	if (!eq || eq == v)
		return kn_opt_usage(
		    e, opt, "for instance --env LANG=C", "\"%s\" is not NAME=VALUE", v);
	if (asprintf(&pointer, "/environment/set/%*s", (int)(eq - v) * 2, "") < 0)
		return out_of_memory(e);
	at = pointer + strlen("/environment/set/");
	for (const char *s = v; s < eq; s++) {
		if (*s == '~' || *s == '/') {
			*at++ = '~';
			*at++ = *s == '~' ? '0' : '1';
		} else {
			*at++ = *s;
		}
	}
	*at = '\0';
	pointer = own(o, pointer);
	return pointer ? value_at(o, opt, pointer, eq + 1, e) : out_of_memory(e);
}

static int
launcher(
    struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	const char *colon = strchr(v, ':');
	char *type;

	if (colon == NULL)
		return value(o, opt, v, e);
	type = own(o, strndup(v, (size_t)(colon - v)));
	if (type == NULL)
		return out_of_memory(e);
	if (strcmp(type, "oci") != 0 || colon[1] == '\0')
		return kn_opt_usage(e, opt,
		    "bwrap, oci, oci:runc, oci:crun, oci:podman, oci:docker and direct",
		    "\"%s\" is not supported", v);
	if (value(o, opt, type, e) < 0)
		return -1;
	return value_at(o, opt, "/launcher/runtime", colon + 1, e);
}

static int
network(
    struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	if (strcmp(v, "none") != 0 && strcmp(v, "host") != 0)
		return kn_opt_usage(e, opt,
		    "none and host; for some hosts only: --allow HOST:PORT",
		    "\"%s\" is not supported", v);
	return value(o, opt, v, e);
}

/* What is no host and port is told with the policy, where the whole list is. */
static int
allow(struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	char *list = NULL;

	if (strpbrk(v, "\"\\") || strchr(v, ':') == NULL)
		return kn_opt_usage(e, opt,
		    "for instance --allow example.com:443, --allow localhost:8000",
		    "\"%s\" is not HOST:PORT", v);
	if (asprintf(&list, "[\"%s\"]", v) < 0)
		return out_of_memory(e);
	list = own(o, list);
	if (!list)
		return out_of_memory(e);
	return value_at(o, opt, "/network/mode", "allow", e) < 0
		   ? -1
		   : value(o, opt, list, e);
}

static int
module(struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	if (value_at(o, opt, "/pool/kind", "module", e) < 0)
		return -1;
	o->module = v;
	return value(o, opt, v, e);
}

static int
collect(
    struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	const char **list;

	if (v[0] == '/' || strcmp(v, "..") == 0 || strncmp(v, "../", 3) == 0 ||
	    strstr(v, "/../"))
		return kn_opt_usage(e, opt, "globs are relative to /task, as out/*.png",
		    "\"%s\" leaves the task's directory", v);
	list = realloc(o->collect, (o->collect_n + 1) * sizeof(*list));
	if (!list)
		return out_of_memory(e);
	o->collect = list;
	o->collect[o->collect_n++] = v;
	return 0;
}

static int
workdir(
    struct kn_run_opts *o, const struct kn_opt *opt, const char *v, struct kn_err *e)
{
	size_t n = strlen(v);

	if (v[0] != '/')
		return kn_opt_usage(e, opt,
		    "it is a path inside the sandbox, as /task or /data",
		    "\"%s\" is not absolute", v);
	if (strstr(v, "/../") || (n >= 3 && strcmp(v + n - 3, "/..") == 0))
		return kn_opt_usage(e, opt, "write the path without ..",
		    "\"%s\" has a \"..\" in it", v);
	if (strncmp(v, "/proc/", 6) == 0 || strcmp(v, "/proc") == 0)
		return kn_opt_usage(e, opt, "take a directory of the sandbox, as /task",
		    "\"%s\" is no directory to work in", v);
	return text(o, opt, v, e);
}

int
kn_opt_add_policy(struct kn_run_opts *o, const char *name, struct kn_err *e)
{
	return named(o, NULL, name, e);
}

void
kn_opt_fini(struct kn_run_opts *o)
{
	for (size_t i = 0; i < o->owned_n; i++)
		free(o->owned[i]);
	free(o->owned);
	free(o->src);
	free(o->collect);
	*o = (struct kn_run_opts){ 0 };
}
