/* sandbox/policy_net.c: /network of a policy: its list of hosts, and what goes with it.
 */
#include <stdio.h>
#include <string.h>

#include "sandbox/policy_int.h"

static const char *const lists[] = { "/network/allow", "/permissions/net" };
enum { LIST_N = sizeof lists / sizeof *lists };

static int
check_list(const struct kn_pdoc *d, const char *pointer, struct kn_err *e)
{
	json_t *list = kn_pointer_get(d->root, pointer);
	char at[KN_POLICY_POINTER_MAX];
	int rc = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));
		struct kn_net_rule r;
		const char *fault = text ? kn_net_rule_read(text, &r) : NULL;

		snprintf(at, sizeof at, "%s/%zu", pointer, i);
		if (fault)
			rc = kn_pdoc_fail(d, at, false, e, "\"%.80s\" %s", text, fault);
	}
	return rc;
}

int
kn_policy_check_network(const struct kn_pdoc *d, struct kn_err *e)
{
	int rc = 0;

	for (size_t i = 0; i < LIST_N; i++)
		rc |= check_list(d, lists[i], e);
	return rc;
}

/* Hosts are named, and the network is another. A word of the caller's stands against
 * them; one that a preset brought along gives way to /permissions/net. */
static int
fit_mode(struct kn_pol *p, const size_t n[LIST_N], struct kn_err *e)
{
	struct kn_policy *q = &p->pub;
	const char *word = q->network == KN_NET_HOST ? "host" : "none";

	if (q->network == KN_NET_ALLOW || n[0] + n[1] == 0)
		return 0;
	if (n[0] > 0) {
		kn_pol_fail(p, "/network/allow/0", e,
		    "a list of hosts goes with /network/mode \"allow\" only");
		kn_err_hint(e, "to drop a list that came with a policy: --set "
			       "/network/allow=null");
		return -1;
	}
	if (kn_policy_named(q, "/network/mode"))
		return kn_pol_fail(p, "/permissions/net/0", e,
		    "goes with /network/mode \"allow\", and that is \"%s\"", word);
	q->network = KN_NET_ALLOW;
	return 0;
}

int
kn_policy_build_network(struct kn_pol *p, struct kn_err *e)
{
	size_t n[LIST_N], at = 0;
	struct kn_net_rule *rules;

	for (size_t i = 0; i < LIST_N; i++)
		n[i] = json_array_size(kn_pointer_get(p->doc, lists[i]));
	if (fit_mode(p, n, e) < 0)
		return -1;
	if (p->pub.network != KN_NET_ALLOW)
		return 0;
	if (p->pub.pool.kind == KN_KIND_MODULE)
		return kn_pol_fail(p, "/network/mode", e,
		    "\"allow\" goes with /pool/kind \"exec\" only: of a module's calls "
		    "nobody could tell whose a connection is");
	rules = kn_pmem_new(&p->mem, (n[0] + n[1] + 1) * sizeof *rules, e);
	if (!rules)
		return -1;
	for (size_t i = 0; i < LIST_N; i++) {
		json_t *list = kn_pointer_get(p->doc, lists[i]);

		for (size_t j = 0; j < n[i]; j++) {
			const char *text = json_string_value(json_array_get(list, j));
			const char *fault =
			    text ? kn_net_rule_read(text, &rules[at++]) : "is no text";

			if (fault) /* each document was checked */
				return kn_pol_fail(p, lists[i], e, "%s", fault);
		}
	}
	p->pub.net.allow = rules;
	p->pub.net.allow_n = at;
	return 0;
}
