/* cmd/policy_show.c: knit-sandbox policy show. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <knit/pool.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "cmd/policy.h"

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

int
kn_policy_show_main(int argc, char **argv)
{
	struct knit_policy *p;
	struct kn_run_opts o;
	int rc;

	if (kn_policy_of_args(argc, argv, &o, &p, &rc))
		rc = show(p);
	else if (rc == KN_EXIT_NOT_ALL_OK) /* of a check only: findings */
		rc = KN_EXIT_OURS;
	knit_policy_free(p);
	kn_opt_fini(&o);
	return rc;
}
