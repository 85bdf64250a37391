/* cmd/policy_show.c: knit-sandbox policy show, diff and schema. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <knit/pool.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "cmd/policy.h"
#include "ipc/err.h"
#include "sandbox/policy.h"

/* Takes text. */
static int
print(char *text, const char *verb)
{
	size_t n = text ? strlen(text) : 0;
	int rc = KN_EXIT_OURS;

	if (!text)
		kn_say(NULL, "policy %s: out of memory", verb);
	else if (kn_say_out(NULL, text, n) == 0 &&
		 (n == 0 || text[n - 1] == '\n' || kn_say_out(NULL, "\n", 1) == 0))
		rc = KN_EXIT_OK;
	free(text);
	return rc;
}

bool
kn_policy_take_flag(int *argc, char **argv, const char *name)
{
	bool found = false;
	int to = 1;

	for (int i = 1; i < *argc; i++) {
		if (strcmp(argv[i], name) == 0)
			found = true;
		else
			argv[to++] = argv[i];
	}
	if (*argc > 0)
		*argc = to;
	return found;
}

int
kn_policy_show_main(int argc, char **argv)
{
	bool json = kn_policy_take_flag(&argc, argv, "--json");
	struct kn_policy_notes notes = { 0 };
	struct kn_policy *p = NULL;
	struct kn_run_opts o;
	struct kn_err e = { 0 };
	int rc;

	if (kn_opt_parse_policy(&o, argc, argv, &e) < 0)
		rc = kn_say_error(NULL, &e);
	else if (o.help)
		rc = kn_policy_help();
	else if (kn_policy_of_opts(&o, &p, &notes, &e) < 0)
		rc = kn_say_error(NULL, &e);
	else
		rc = print(json ? kn_policy_text(p) : kn_policy_listing(p), "show");
	kn_policy_notes_fini(&notes);
	kn_policy_free(p);
	kn_opt_fini(&o);
	return rc;
}

static int
diff(const char *a, const char *b)
{
	const char *const names[] = { a, b };
	struct kn_policy *p[2] = { NULL, NULL };
	struct kn_err e = { 0 };
	char *text = NULL;
	int rc = KN_EXIT_OK;

	for (int i = 0; i < 2 && rc == KN_EXIT_OK; i++) {
		struct kn_policy_src src = {
			.type = KN_SRC_NAMED, .text = names[i], .label = names[i]
		};

		if (kn_policy_load(&src, 1, &p[i], &e) < 0) {
			kn_opt_hint_policy(&e, names[i]);
			rc = kn_say_error(NULL, &e);
		}
	}
	if (rc == KN_EXIT_OK) {
		bool differ;

		text = kn_policy_compare(p[0], p[1]);
		differ = text && *text;
		rc = differ || !text ? print(text, "diff") : KN_EXIT_OK;
		if (!differ)
			free(text);
		if (rc == KN_EXIT_OK && differ)
			rc = KN_EXIT_NOT_ALL_OK;
	}
	kn_policy_free(p[0]);
	kn_policy_free(p[1]);
	return rc;
}

int
kn_policy_diff_main(int argc, char **argv)
{
	struct kn_err e = { 0 };

	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return kn_policy_help();
	if (argc == 3 && argv[1][0] != '-' && argv[2][0] != '-')
		return diff(argv[1], argv[2]);
	kn_opt_refuse(&e, "knit-sandbox policy diff NAME|FILE NAME|FILE",
	    "policy diff: two policies to compare, no options");
	return kn_say_error(NULL, &e);
}

int
kn_policy_schema_main(int argc, char **argv)
{
	struct kn_err e = { 0 };

	if (argc == 1)
		return print(kn_policy_schema(), "schema");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return kn_policy_help();
	kn_opt_refuse(&e, "knit-sandbox policy schema",
	    "policy: unexpected argument \"%.100s\"", argv[1]);
	return kn_say_error(NULL, &e);
}
