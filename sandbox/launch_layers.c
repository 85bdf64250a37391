/* sandbox/launch_layers.c: how each wall will stand, decided before a process starts.
 *
 * A layer that can be had is enforced. One that cannot is refused if it is required or
 * if a value of the policy asks for it, unless allow_degraded names it; "require" wins
 * over allow_degraded. Nothing is ever weakened without having been named.
 */
#include <stddef.h>
#include <stdio.h>

#include "ipc/err.h"
#include "sandbox/cgroup_why.h"
#include "sandbox/lack.h"
#include "sandbox/launch_int.h"

enum { ABI_OF_TRUNCATE = 3, ABI_OF_SCOPES = 6 }; /* of Landlock */

/* What is known of one layer. */
struct have {
	bool can;
	const char *asked;  /* the value that asks for it, or NULL */
	enum kn_lack cause; /* why it cannot be had */
	const char *lacks;  /* in words, if not the cause's */
};

static const char *
memory_asked(const struct kn_policy *p)
{
	return p->task.memory != 0     ? "/limits/task/memory"
	       : p->worker.memory != 0 ? "/limits/worker/memory"
				       : NULL;
}

static const char *
pids_asked(const struct kn_policy *p)
{
	return p->task.pids != 0     ? "/limits/task/pids"
	       : p->worker.pids != 0 ? "/limits/worker/pids"
				     : NULL;
}

/* What this kernel's Landlock leaves open that the policy needs closed; NULL: nothing.
 * Where mounts wall files off any version does, and of the machine's network, where a
 * policy grants it, only abstract sockets are open. Without namespaces truncate(2) of
 * what may not be opened is one more. */
static const char *
landlock_lacks(
    const struct kn_policy *p, const struct kn_host *h, enum kn_lack *out_cause)
{
	bool direct = p->launcher == KN_LAUNCHER_DIRECT;
	bool others = direct ? !h->ids : p->network == KN_NET_HOST;

	*out_cause = KN_LACK_LANDLOCK_SCOPES;
	if (direct && h->landlock_abi < ABI_OF_TRUNCATE) {
		if (!others)
			*out_cause = KN_LACK_LANDLOCK_TRUNCATE;
		return others
			   ? "this kernel's has no scopes, which keep a task without "
			     "namespaces from signals to all processes of its user, "
			     "the supervisor too, and lets it empty all files that its "
			     "user may write"
			   : "this kernel's lets a task without namespaces empty "
			     "every file that anybody may write";
	}
	if (h->landlock_abi >= ABI_OF_SCOPES || !others)
		return NULL;
	return direct ? "this kernel's has no scopes, which keep a task "
			"without namespaces from signals to all processes of "
			"its user, the supervisor too"
		      : "this kernel's has no scopes, which keep a task on the "
			"machine's network (/network/mode) from abstract sockets";
}

static struct have
look_landlock(const struct kn_policy *p, const struct kn_host *h)
{
	struct have x = { .cause = KN_LACK_LANDLOCK };

	x.asked = p->launcher == KN_LAUNCHER_DIRECT ? "/launcher/type"
		  : p->landlock == KN_LANDLOCK_ON   ? "/landlock"
		  : p->run.n > 0		    ? "/permissions/run"
						    : NULL;
	if (h->landlock_abi == 0)
		return x;
	x.lacks = landlock_lacks(p, h, &x.cause);
	x.can = x.lacks == NULL;
	return x;
}

/* Counting is all that most policies need. */
static struct have
look_cpu(const struct kn_policy *p, const struct kn_cgroup *g)
{
	struct have x = { .can = kn_cgroup_has_cpu(g), .cause = KN_LACK_CGROUP_DENIED };

	x.asked = p->task.cpu_ms != 0 ? "/limits/task/cpu_ms" : NULL;
	x.lacks = "this machine grants us no cgroup that counts CPU time";
	if (p->task_cpus == 0 || kn_cgroup_has_cpu_max(g))
		return x;
	x.can = false;
	x.asked = "/limits/task/cpus";
	x.lacks = "this machine grants us no cgroup that limits processors";
	return x;
}

static struct have
look(enum kn_layer l, const struct kn_policy *p, const struct kn_host *h,
    const struct kn_cgroup *g)
{
	struct have x = { .can = true };

	switch (l) {
	case KN_LAYER_NAMESPACES:
	case KN_LAYER_SECCOMP:
	case KN_LAYER_CAPABILITIES:
	case KN_LAYER_RLIMITS:
		break; /* a launch without them fails */
	case KN_LAYER_UID:
		x.can = p->launcher == KN_LAUNCHER_DIRECT ? h->ids : h->root;
		x.cause = KN_LACK_NOT_ROOT;
		break;
	case KN_LAYER_LANDLOCK:
		x = look_landlock(p, h);
		break;
	case KN_LAYER_CG_MEMORY:
		x.can = kn_cgroup_has_memory(g);
		x.asked = memory_asked(p);
		x.lacks = "this machine grants us no memory cgroup";
		x.cause = KN_LACK_CGROUP_DENIED;
		break;
	case KN_LAYER_CG_PIDS:
		x.can = kn_cgroup_has_pids(g);
		x.asked = pids_asked(p);
		x.lacks = "this machine grants us no pids cgroup";
		x.cause = KN_LACK_CGROUP_DENIED;
		break;
	case KN_LAYER_CG_CPU:
		x = look_cpu(p, g);
		break;
	case KN_LAYER_MSEAL:
		x.can = h->mseal;
		x.cause = KN_LACK_MSEAL;
		break;
	case KN_LAYER_N:
		break;
	}
	return x;
}

#define accept_less \
	"; or accept less, as the last option: --set '/allow_degraded=[\"%s\"]'"

/* Something weaker can stand in for these (sandbox/policy_items.c reads the same). */
static bool
may_degrade(enum kn_layer l)
{
	return l == KN_LAYER_NAMESPACES || l == KN_LAYER_UID ||
	       l == KN_LAYER_LANDLOCK || l == KN_LAYER_CG_MEMORY ||
	       l == KN_LAYER_CG_PIDS || l == KN_LAYER_CG_CPU || l == KN_LAYER_MSEAL;
}

/* The fix of its cause, and where something weaker may do, how to say so. */
static void
hint_layer(enum kn_layer l, const struct have *x, bool root, struct kn_err *e)
{
	enum kn_lack c = x->cause;
	struct kn_around a;
	char fix[sizeof(e->hint)];
	enum kn_who who;

	if (c == KN_LACK_CGROUP_DENIED)
		c = kn_cgroup_why();
	kn_around_look(&a);
	c = kn_lack_of_missing(c, &a);
	kn_lack_fix(c, &a, root, fix, sizeof(fix), &who);
	if (may_degrade(l))
		kn_err_hint(e, "%s%s" accept_less,
		    who == KN_WHO_ROOT ? "as root: " : "", fix, kn_layer_name(l));
	else
		kn_err_hint(e, "%s%s", who == KN_WHO_ROOT ? "as root: " : "", fix);
}

static int
decide(enum kn_layer l, const struct kn_policy *p, const struct have *x, bool root,
    enum kn_layer_state *out, struct kn_err *e)
{
	const char *lacks = x->lacks != NULL ? x->lacks : kn_lack_what(x->cause);
	bool required = (p->require >> l & 1) != 0;
	bool allowed = (p->allow_degraded >> l & 1) != 0;

	if (l == KN_LAYER_LANDLOCK && p->landlock == KN_LANDLOCK_OFF) {
		if (required)
			return kn_err_set(e, KN_EK_CONFIG,
			    "layer landlock: required (/require), and switched off "
			    "(/landlock)");
		if (p->launcher == KN_LAUNCHER_DIRECT && !allowed)
			return kn_err_set(e, KN_EK_CONFIG,
			    "layer landlock: switched off (/landlock), and launcher "
			    "direct has no other wall around files");
		*out = KN_LAYER_ABSENT;
		return 0;
	}
	if (x->can) {
		*out = KN_LAYER_ENFORCED;
		return 0;
	}
	if (required) {
		kn_err_set(e, KN_EK_HOST, "layer %s: required for %s, but %s",
		    kn_layer_name(l), x->asked ? x->asked : "the policy (/require)",
		    lacks);
		hint_layer(l, x, root, e);
		return -1;
	}
	if (x->asked != NULL && !allowed) {
		kn_err_set(e, KN_EK_HOST, "layer %s: asked for by %s, but %s",
		    kn_layer_name(l), x->asked, lacks);
		hint_layer(l, x, root, e);
		return -1;
	}
	*out = allowed ? KN_LAYER_DEGRADED : KN_LAYER_ABSENT;
	return 0;
}

int
kn_launch_layers(const struct kn_policy *p, const struct kn_host *h,
    const struct kn_cgroup *g, struct kn_layers *out, struct kn_err *e)
{
	const struct kn_launch_ops *ops = kn_launch_kind(p->launcher, e);

	if (ops == NULL)
		return -1;
	for (int i = 0; i < KN_LAYER_N; i++) {
		enum kn_layer l = (enum kn_layer)i;
		struct have x = look(l, p, h, g);
		const char *lacks = ops->lacks != NULL ? ops->lacks(p, l) : NULL;

		if (lacks != NULL) {
			x.can = false;
			x.lacks = lacks;
			x.cause = KN_LACK_LAUNCHER;
		}

		if (decide(l, p, &x, h->uid == 0, &out->state[i], e) < 0)
			return -1;
	}
	return 0;
}
