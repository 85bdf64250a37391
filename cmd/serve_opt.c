/* cmd/serve_opt.c: the options of `serve`: its own, and those of `run` that are about
 * the pool.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/opt_table.h"
#include "cmd/serve_int.h"

/* What makes the pool, not what runs in it. */
static const char *const shared[] = { "policy", "set", "workers", "launcher", "network",
	"allow", "bind", "ro-bind", "workdir", "env", "timeout", "cpu-time", "memory",
	"pids", "retries", "module", "init", "steal", "trace", "debug", "log-json",
	"delegate", "quiet", NULL };

static const struct {
	const char *name, *arg, *help;
} own[] = {
	{ "socket", "PATH", "the unix socket on which task lines are taken" },
	{ "socket-mode", "OCTAL", "its permissions (default: 600)" },
	{ "http", "ADDR", "/health and /metrics: a path, or 127.0.0.1:PORT" },
	{ "health-file", "FILE", "there while tasks are taken" },
	{ "clients", "N", "connections at one time (default: 64)" },
	{ "grace", "SECONDS", "draining: for one that reads nothing (default: 10)" },
	{ "probe", "ADDR", "ask the server whose --http that is: 0 if it serves" },
	{ "alive", NULL, "of --probe: 0 whatever it answers" },
};
enum { OWN_N = sizeof own / sizeof own[0] };

static int
take_mode(struct kn_serve_opts *o, const char *v, struct kn_err *e)
{
	char *end;
	unsigned long mode = strtoul(v, &end, 8);

	if (v[0] < '0' || v[0] > '7' || *end || mode > 0777 || !(mode & 0600))
		return kn_opt_refuse(e, "for instance 600, or 660 for the group too",
		    "--socket-mode: \"%.20s\" is no mode", v);
	o->socket_mode = (unsigned)mode;
	return 0;
}

/* unit: what it is a number of, which is not written; or NULL. */
static int
take_number(const char *name, const char *unit, const char *v, unsigned most,
    unsigned *out, struct kn_err *e)
{
	size_t digits = strspn(v, "0123456789");
	unsigned long n = strtoul(v, NULL, 10);
	char hint[80];

	if (digits == 0 || v[digits] || n < 1 || n > most) {
		snprintf(hint, sizeof hint, "%s%s from 1 to %u",
		    unit ? unit : "a number", unit ? ", without a unit," : "", most);
		return kn_opt_refuse(e, hint, "--%s: \"%.20s\" is %s", name, v,
		    digits == 0 || v[digits] ? "no number" : "out of range");
	}
	*out = (unsigned)n;
	return 0;
}

static int
take_own(struct kn_serve_opts *o, const char *name, const char *v, struct kn_err *e)
{
	if (strcmp(name, "socket-mode") == 0)
		return take_mode(o, v, e);
	if (strcmp(name, "clients") == 0)
		return take_number(
		    name, NULL, v, KN_SERVE_CLIENTS_MOST, &o->clients, e);
	if (strcmp(name, "grace") == 0) {
		if (take_number(
			name, "seconds", v, KN_SERVE_GRACE_MOST, &o->grace_ms, e) < 0)
			return -1;
		o->grace_ms *= 1000;
		return 0;
	}
	*(strcmp(name, "socket") == 0	 ? &o->socket
	    : strcmp(name, "http") == 0	 ? &o->http
	    : strcmp(name, "probe") == 0 ? &o->probe
					 : &o->health_file) = v;
	return 0;
}

/* 1: it was one of ours, 0: it was not. */
static int
one_of_own(struct kn_serve_opts *o, int argc, char **argv, int *i, struct kn_err *e)
{
	const char *name = argv[*i] + 2, *eq = strchr(name, '=');
	size_t n = eq ? (size_t)(eq - name) : strlen(name);
	const char *v = eq ? eq + 1 : NULL;

	for (size_t k = 0; k < OWN_N; k++) {
		if (strlen(own[k].name) != n || memcmp(own[k].name, name, n) != 0)
			continue;
		if (!own[k].arg) {
			o->alive = true;
			return v ? kn_opt_refuse(e, NULL, "--%s: takes no value", name)
				 : 1;
		}
		if (!v && *i + 1 < argc)
			v = argv[++*i];
		if (!v || !*v)
			return kn_opt_refuse(e,
			    "knit-sandbox serve --help has the options",
			    "--%s: needs a value: %s", own[k].name, own[k].arg);
		return take_own(o, own[k].name, v, e) < 0 ? -1 : 1;
	}
	return 0;
}

static bool
is_shared(const char *arg)
{
	size_t n = strcspn(arg + 2, "=");

	for (size_t i = 0; shared[i]; i++) {
		if (strlen(shared[i]) == n && memcmp(shared[i], arg + 2, n) == 0)
			return true;
	}
	return false;
}

static int
unknown(const char *arg, struct kn_err *e)
{
	const char *names[OWN_N + sizeof shared / sizeof *shared] = { NULL };
	size_t n = strcspn(arg, "=");

	for (size_t i = 0; kn_opt_name(i); i++) {
		if (strlen(kn_opt_name(i)) + 2 == n &&
		    memcmp(kn_opt_name(i), arg + 2, n - 2) == 0)
			return kn_opt_refuse(e, "a client has it: run --connect PATH",
			    "serve: --%s is an option of run only", kn_opt_name(i));
	}
	for (n = 0; n < OWN_N; n++)
		names[n] = own[n].name;
	for (size_t i = 0; shared[i]; i++)
		names[n++] = shared[i];
	return kn_opt_unknown_run(e, "serve", arg, names);
}

int
kn_serve_opt_parse(struct kn_serve_opts *o, int argc, char **argv, struct kn_err *e)
{
	*o = (struct kn_serve_opts){ .socket_mode = 0600,
		.clients = KN_SERVE_CLIENTS,
		.grace_ms = KN_SERVE_GRACE_S * 1000 };
	for (int i = 1; i < argc; i++) {
		int rc;

		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			o->help = true;
			return 0;
		}
		if (argv[i][0] != '-' || strcmp(argv[i], "--") == 0)
			return kn_opt_refuse(e,
			    argv[i][0] == '/' || argv[i][0] == '.'
				? "the socket is named by --socket PATH"
				: "clients send what is to run, over the socket",
			    "serve: unexpected argument \"%.100s\"", argv[i]);
		if (argv[i][1] != '-')
			return unknown(argv[i], e);
		rc = one_of_own(o, argc, argv, &i, e);
		if (rc < 0)
			return -1;
		if (rc > 0)
			continue;
		if (!is_shared(argv[i]))
			return unknown(argv[i], e);
		if (kn_opt_one(&o->run, argc, argv, &i, e) < 0)
			return -1;
	}
	if (o->alive && !o->probe)
		return kn_opt_refuse(e, "add --probe ADDR", "--alive: of --probe only");
	return 0;
}

static void
print(FILE *f, const char *name, const char *arg, const char *help)
{
	char left[64];

	snprintf(left, sizeof left, "--%s%s%s", name, arg ? " " : "", arg ? arg : "");
	if (strlen(left) > 22)
		fprintf(f, "  %s\n%25s%s\n", left, "", help);
	else
		fprintf(f, "  %-22s %s\n", left, help);
}

char *
kn_serve_opt_help(void)
{
	char *out = NULL;
	size_t n;
	FILE *f = open_memstream(&out, &n);

	if (!f)
		return NULL;
	fputs("usage: knit-sandbox serve --socket PATH [OPTIONS]\n"
	      "A pool that takes task lines from many clients; knit-sandbox run "
	      "--connect PATH is one.\n\n",
	    f);
	for (size_t i = 0; i < OWN_N; i++)
		print(f, own[i].name, own[i].arg, own[i].help);
	fputs("\nAs with run:\n", f);
	for (size_t i = 0; i < KN_OPT_N; i++) {
		for (size_t k = 0; shared[k]; k++) {
			if (strcmp(shared[k], kn_opts[i].name) == 0)
				print(f, kn_opts[i].name, kn_opts[i].arg,
				    kn_opts[i].help);
		}
	}
	fputs("\nSIGTERM: takes no more, answers what it took, ends with 0. SIGHUP: "
	      "reads its\npolicy again, for connections that come then.\n"
	      "More: man knit-serve\n",
	    f);
	if (fclose(f) != 0) {
		free(out);
		return NULL;
	}
	return out;
}
