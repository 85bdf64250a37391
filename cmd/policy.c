/* cmd/policy.c: knit-sandbox policy list|show|check. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <knit/pool.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "ipc/err.h"
#include "sandbox/policy.h"

static const char help_text[] =
    "usage: knit-sandbox policy list                     the presets\n"
    "       knit-sandbox policy show  [NAME|FILE...]     the merged document\n"
    "       knit-sandbox policy check [NAME|FILE...]     is it valid?\n\n"
    "  --policy NAME|FILE     as with run; repeatable\n"
    "  --set /PTR=VALUE       as with run; repeatable\n\n"
    "Several names are merged in order, later ones win; none means: default.\n"
    "Exit: 0 fine, 1 check found something, 125 usage.\n";

static int
list(void)
{
	const char *const *names = kn_policy_presets();
	char line[128];
	int n;

	for (size_t i = 0; names[i]; i++) {
		n = snprintf(line, sizeof line, "%s\n", names[i]);
		if (kn_say_out(NULL, line, (size_t)n) < 0)
			return KN_EXIT_OURS;
	}
	return KN_EXIT_OK;
}

static int
show(struct knit_policy *p)
{
	char *text = knit_policy_text(p);
	size_t n = text ? strlen(text) : 0;
	int rc = KN_EXIT_OURS;

	if (!text)
		kn_say(NULL, "policy show: out of memory");
	else if (kn_say_out(NULL, text, n) == 0 &&
		 (n == 0 || text[n - 1] == '\n' || kn_say_out(NULL, "\n", 1) == 0))
		rc = KN_EXIT_OK;
	free(text);
	return rc;
}

static int
show_or_check(const char *verb, int argc, char **argv)
{
	bool check = strcmp(verb, "check") == 0;
	struct knit_policy *p = NULL;
	struct kn_run_opts o;
	struct kn_err e = { 0 };
	char line[128];
	int rc;

	if (kn_opt_parse_policy(&o, argc, argv, &e) < 0) {
		rc = kn_say_error(NULL, &e);
	} else if (o.help) {
		rc = kn_say_out(NULL, help_text, strlen(help_text)) < 0 ? KN_EXIT_OURS
									: KN_EXIT_OK;
	} else if (!(p = kn_opt_policy(&o, &e))) {
		rc = kn_say_error(NULL, &e);
		if (check && e.kind != KN_EK_HOST)
			rc = KN_EXIT_NOT_ALL_OK;
	} else if (check) {
		int n = snprintf(line, sizeof line, "ok %s\n", knit_policy_hash(p));

		rc = kn_say_out(NULL, line, (size_t)n) < 0 ? KN_EXIT_OURS : KN_EXIT_OK;
	} else {
		rc = show(p);
	}
	knit_policy_free(p);
	kn_opt_fini(&o);
	return rc;
}

int
kn_cmd_policy(int argc, char **argv, unsigned closed)
{
	static const char *const later[] = { "explain", "diff", "export", "learn",
		"schema", NULL };
	static const char hint[] = "knit-sandbox policy list, show or check";
	const char *what = argc > 1 ? argv[1] : "";
	struct kn_err e = { 0 };

	(void)closed;
	if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0)
		return kn_say_out(NULL, help_text, strlen(help_text)) < 0 ? KN_EXIT_OURS
									  : KN_EXIT_OK;
	if (strcmp(what, "list") == 0 && argc == 2)
		return list();
	if (strcmp(what, "show") == 0 || strcmp(what, "check") == 0)
		return show_or_check(what, argc - 1, argv + 1);
	for (size_t i = 0; later[i]; i++) {
		if (strcmp(what, later[i]) == 0)
			kn_opt_refuse(
			    &e, hint, "this version does not have: policy %s", what);
	}
	if (e.kind == KN_EK_NONE && argc < 2)
		kn_opt_refuse(&e, hint, "policy: list, show or check what?");
	else if (e.kind == KN_EK_NONE)
		kn_opt_refuse(&e, hint, "policy: unexpected argument \"%.100s\"",
		    strcmp(what, "list") == 0 ? argv[2] : what);
	return kn_say_error(NULL, &e);
}
