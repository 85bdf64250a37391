/* cmd/opt_policy.c: options -> the policy that they ask for. */
#include <knit/pool.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "ipc/err.h"

static int
add(struct knit_policy *p, const struct kn_opt_src *s, struct knit_error *e)
{
	switch (s->type) {
	case KN_OPT_NAMED:
		return knit_policy_add(p, s->text, e);
	case KN_OPT_SET:
		return knit_policy_assign(p, s->text, e);
	case KN_OPT_VALUE:
		return knit_policy_set(p, s->pointer, s->text, e);
	case KN_OPT_MOUNT:
		break;
	}
	return knit_policy_bind(p, s->text, s->at, s->writable, e);
}

struct knit_policy *
kn_opt_policy(const struct kn_run_opts *o, struct kn_err *e)
{
	struct knit_policy *p = knit_policy_new("");
	struct knit_error err = KNIT_ERROR_NONE;
	int rc = 0;

	if (!p) {
		kn_err_set(e, KN_EK_HOST, "out of memory");
		return NULL;
	}
	for (size_t i = 0; rc == 0 && i < o->src_n; i++) {
		const struct kn_opt_src *s = &o->src[i];

		rc = add(p, s, &err);
		if (rc == 0 && s->type != KN_OPT_NAMED)
			rc = knit_policy_label(p, s->label, &err);
	}
	if (rc == 0 && knit_policy_check(p, &err) == 0)
		return p;
	kn_say_take(e, &err);
	knit_policy_free(p);
	return NULL;
}
