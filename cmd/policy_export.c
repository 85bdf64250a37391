/* cmd/policy_export.c: knit-sandbox policy export --format F: what another program
 * would enforce of a policy, on stdout; what it would not, on stderr.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <knit/pool.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "cmd/opt_table.h"
#include "cmd/policy.h"
#include "ipc/err.h"
#include "sandbox/export.h"
#include "sandbox/policy.h"

static const char formats[] = "bwrap, oci, docker, k8s, systemd or seccomp";

const char *
kn_policy_take_arg(int *argc, char **argv, const char *name)
{
	size_t n = strlen(name);
	const char *found = NULL;
	int to = 1;

	for (int i = 1; i < *argc; i++) {
		if (strcmp(argv[i], name) == 0 && i + 1 < *argc)
			found = argv[++i];
		else if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=')
			found = argv[i] + n + 1;
		else
			argv[to++] = argv[i];
	}
	if (*argc > 0)
		*argc = to;
	return found;
}

static const char **
command(const struct kn_run_opts *o, struct kn_err *e)
{
	struct knit_error err = KNIT_ERROR_NONE;
	struct knit_policy *p = kn_opt_policy(o, e);
	const char **argv = p ? knit_policy_command(p, &err) : NULL;

	if (p && !argv)
		kn_say_take(e, &err);
	knit_policy_free(p);
	return argv;
}

/* The same where only the cgroups are missing, which the caller has not and bubblewrap
 * does not make: then with *out_why what keeps a launch from being made here. */
static const char **
command_anyhow(struct kn_run_opts *o, struct kn_err *why, struct kn_err *e)
{
	static char less[] = "--set=/allow_degraded=[\"cgroup.memory\",\"cgroup.pids\","
			     "\"cgroup.cpu\"]";
	char *args[] = { NULL, less };
	const char **argv = command(o, e);
	struct kn_err other = { 0 };
	int i = 1;

	*why = (struct kn_err){ 0 };
	if (argv || e->kind != KN_EK_HOST || kn_opt_one(o, 2, args, &i, &other) < 0)
		return argv;
	argv = command(o, &other);
	if (argv)
		*why = *e;
	return argv;
}

/* What a launch of ours would be: bubblewrap has our stub inside, which does the rest.
 */
static int
bwrap(struct kn_run_opts *o, struct kn_err *e)
{
	struct kn_err why;
	const char **argv = command_anyhow(o, &why, e);
	char *text = NULL;
	size_t n = 0;
	int rc = -1;
	FILE *f = argv ? open_memstream(&text, &n) : NULL;

	if (argv && !f)
		kn_err_set(e, KN_EK_HOST, "out of memory");
	for (size_t i = 0; f && argv[i]; i++) {
		/* An option a line, with what belongs to it. */
		fputs(i == 0			       ? ""
		      : strncmp(argv[i], "--", 2) == 0 ? " \\\n  "
						       : " ",
		    f);
		kn_say_word(f, argv[i]);
	}
	if (f && fclose(f) == 0) {
		rc = kn_say_out(NULL, text, n) < 0 || kn_say_out(NULL, "\n", 1) < 0;
		kn_say(NULL, "seccomp, landlock, rlimits, cgroups and cells: the "
			     "stub's, which is "
			     "the command here; numbers are descriptors of the launch");
		if (why.kind != KN_EK_NONE)
			kn_say(NULL, "a launch by this caller is refused: %s", why.msg);
	}
	free(text);
	free(argv);
	return rc;
}

/* The first id of the machine in a mapping of a bundle's config.json; 0: there is none.
 */
static unsigned long
mapped(const char *config, const char *mappings)
{
	static const char key[] = "\"hostID\":";
	const char *at = strstr(config, mappings);

	at = at ? strstr(at, key) : NULL;
	return at ? strtoul(at + sizeof key - 1, NULL, 10) : 0;
}

/* What the text cannot have in it: runtimes make the mount points as root of the
 * bundle, who is somebody else out here. */
static void
say_owner(const char *config)
{
	unsigned long uid = mapped(config, "\"uidMappings\""),
		      gid = mapped(config, "\"gidMappings\"");

	if (uid && gid)
		kn_say(NULL,
		    "\"rootfs\" belongs to root of the bundle, who makes the mount "
		    "points in it: chown %lu:%lu rootfs",
		    uid, gid);
}

/* workers: 0, or what is put around a server of so many. */
static int
other(const struct kn_run_opts *o, int format, uint32_t workers, struct kn_err *e)
{
	struct kn_policy_notes notes = { 0 };
	struct kn_export x = { 0 };
	struct kn_policy *p = NULL;
	const char *name = "default";
	bool preset;
	char base[256];
	int rc = -1;

	for (size_t i = 0; i < o->src_n; i++)
		if (o->src[i].type == KN_OPT_NAMED)
			name = o->src[i].text;
	preset = o->src_n == 1 && kn_policy_is_preset(name); /* and nothing on top */
	if (strrchr(name, '/'))
		name = strrchr(name, '/') + 1;
	snprintf(base, sizeof base, "%s", name);
	if (strstr(base, ".json"))
		*strstr(base, ".json") = 0;
	if (kn_policy_of_opts(o, &p, &notes, e) == 0 &&
	    (workers ? kn_export_make_around(p, (enum kn_export_format)format, base,
			   preset, workers, &x, e)
		     : kn_export_make(p, (enum kn_export_format)format, base, &x, e)) ==
		0) {
		rc = kn_say_out(NULL, x.text, strlen(x.text)) < 0;
		for (size_t i = 0; i < x.note_n; i++)
			kn_say(NULL, "%s", x.notes[i]);
		if (format == KN_EXPORT_OCI)
			say_owner(x.text);
	}
	kn_export_fini(&x);
	kn_policy_notes_fini(&notes);
	kn_policy_free(p);
	return rc;
}

enum { WORKERS = 2, WORKERS_MOST = 256 };

static int
around_of(const char *count, bool around, bool is_bwrap, uint32_t *out_workers,
    struct kn_err *e)
{
	char *end = NULL;
	unsigned long n = count ? strtoul(count, &end, 10) : WORKERS;

	if (count && !around)
		return kn_opt_refuse(e, "add --around", "--workers: of --around only");
	if (count && (*count < '1' || *count > '9' || *end || n > WORKERS_MOST))
		return kn_opt_refuse(e, "a number from 1 to 256",
		    "--workers: \"%.20s\" is %s", count,
		    *count < '0' || *count > '9' || *end ? "no number"
							 : "out of range");
	if (around && is_bwrap)
		return kn_opt_refuse(e, NULL,
		    "--around: seccomp, docker, k8s and systemd start this program");
	*out_workers = around ? (uint32_t)n : 0;
	return 0;
}

int
kn_policy_export_main(int argc, char **argv)
{
	const char *format = kn_policy_take_arg(&argc, argv, "--format");
	const char *count = kn_policy_take_arg(&argc, argv, "--workers");
	bool around = kn_policy_take_flag(&argc, argv, "--around");
	uint32_t workers = 0;
	struct kn_run_opts o;
	struct kn_err e = { 0 };
	bool is_bwrap;
	int which, rc = -1;

	if (around && !format)
		format = "seccomp"; /* hints are short */
	is_bwrap = format && strcmp(format, "bwrap") == 0;
	which = format && !is_bwrap ? kn_export_format(format) : 0;
	if (kn_opt_parse_policy(&o, argc, argv, &e) == 0) {
		if (o.help)
			rc = kn_policy_help();
		else if (!format)
			kn_opt_refuse(&e, "knit-sandbox policy export --format FORMAT",
			    "policy export: --format is one of %s", formats);
		else if (around_of(count, around, is_bwrap, &workers, &e) < 0 ||
			 (around && o.src_n == 0 &&
			     kn_opt_add_policy(&o, "container", &e) < 0))
			rc = -1;
		else if (which < 0)
			kn_opt_refuse(&e, NULL,
			    "policy export: no format \"%.60s\"; there are %s", format,
			    formats);
		else
			rc = is_bwrap ? bwrap(&o, &e) : other(&o, which, workers, &e);
	}
	kn_opt_fini(&o);
	if (rc < 0)
		return kn_say_error(NULL, &e);
	return rc > 0 ? KN_EXIT_OURS : KN_EXIT_OK;
}
