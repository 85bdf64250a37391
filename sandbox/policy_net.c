/* sandbox/policy_net.c: /network of a policy: its list of hosts, and what goes with it.
 */
#include <stdio.h>
#include <string.h>

#include "sandbox/policy_int.h"

int
kn_policy_check_network(const struct kn_pdoc *d, struct kn_err *e)
{
	json_t *list = kn_pointer_get(d->root, "/network/allow");
	char at[KN_POLICY_POINTER_MAX];
	int rc = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));
		struct kn_net_rule r;
		const char *fault = text ? kn_net_rule_read(text, &r) : NULL;

		snprintf(at, sizeof at, "/network/allow/%zu", i);
		if (fault)
			rc = kn_pdoc_fail(d, at, false, e, "\"%.80s\" %s", text, fault);
	}
	return rc;
}

int
kn_policy_build_network(struct kn_pol *p, struct kn_err *e)
{
	json_t *list = kn_pointer_get(p->doc, "/network/allow");
	size_t n = json_array_size(list);
	struct kn_net_rule *rules;

	if (p->pub.network != KN_NET_ALLOW) {
		if (n == 0)
			return 0;
		kn_pol_fail(p, "/network/allow/0", e,
		    "a list of hosts goes with /network/mode \"allow\" only");
		kn_err_hint(e, "to drop a list that came with a policy: --set "
			       "/network/allow=null");
		return -1;
	}
	if (p->pub.pool.kind == KN_KIND_MODULE)
		return kn_pol_fail(p, "/network/mode", e,
		    "\"allow\" goes with /pool/kind \"exec\" only: of a module's calls "
		    "nobody could tell whose a connection is");
	rules = kn_pmem_new(&p->mem, (n + 1) * sizeof *rules, e);
	if (!rules)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const char *text = json_string_value(json_array_get(list, i));
		const char *fault =
		    text ? kn_net_rule_read(text, &rules[i]) : "is no text";

		if (fault) /* each document was checked */
			return kn_pol_fail(p, "/network/allow", e, "%s", fault);
	}
	p->pub.net.allow = rules;
	p->pub.net.allow_n = n;
	return 0;
}
