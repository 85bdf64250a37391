/* sandbox/policy_build.c: the merged document, already checked piece by piece, into
 * struct kn_policy; and the checks that need more than one document.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/policy_files.h"

/* ---- memory ---- */

struct kn_pchunk {
	struct kn_pchunk *next;
	_Alignas(16) unsigned char bytes[];
};

void *
kn_pmem_room(struct kn_pmem *m, size_t n, struct kn_err *e)
{
	struct kn_pchunk *c = malloc(sizeof *c + (n ? n : 1));
	if (!c) {
		kn_err_set(e, KN_EK_HOST, "policy: out of memory");
		return NULL;
	}
	c->next = m->first;
	m->first = c;
	return c->bytes;
}

void *
kn_pmem_new(struct kn_pmem *m, size_t n, struct kn_err *e)
{
	void *p = kn_pmem_room(m, n, e);
	return p ? memset(p, 0, n) : NULL;
}

char *
kn_pmem_dup(struct kn_pmem *m, const void *p, size_t n, struct kn_err *e)
{
	char *s = kn_pmem_room(m, n + 1, e);
	if (s) {
		memcpy(s, p, n);
		s[n] = 0;
	}
	return s;
}

char *
kn_pmem_fmt(struct kn_pmem *m, struct kn_err *e, const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;
	va_start(ap, fmt);
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0) {
		kn_err_set(e, KN_EK_HOST, "policy: out of memory");
		return NULL;
	}
	char *kept = kn_pmem_dup(m, s, (size_t)n, e);
	free(s);
	return kept;
}

void
kn_pmem_fini(struct kn_pmem *m)
{
	while (m->first) {
		struct kn_pchunk *c = m->first;
		m->first = c->next;
		free(c);
	}
}

/* ---- origins ---- */

const char *
kn_pol_origin(const struct kn_pol *p, const char *pointer)
{
	const char *s = json_string_value(json_object_get(p->origins, pointer));
	return s ? s : "policy";
}

unsigned
kn_pol_turn(const struct kn_pol *p, const char *pointer)
{
	return (unsigned)json_integer_value(json_object_get(p->turns, pointer));
}

/* ---- scalars, by table ---- */

static void
store(struct kn_policy *p, const struct kn_key *k, uint64_t v)
{
	unsigned char *at = (unsigned char *)p + k->off;
	uint32_t v32 = (uint32_t)v;
	if (k->width == sizeof(bool))
		*(bool *)at = v != 0;
	else if (k->width == sizeof v32)
		memcpy(at, &v32, sizeof v32);
	else
		memcpy(at, &v, sizeof v);
}

static void
build_scalars(struct kn_pol *p)
{
	for (size_t i = 0; i < kn_policy_key_n; i++) {
		const struct kn_key *k = &kn_policy_keys[i];
		if (!k->width)
			continue;
		json_t *v = kn_pointer_get(p->doc, k->path);
		uint64_t n = (uint64_t)k->dflt;
		if (v && k->type == KN_KEY_WORD) {
			for (n = 0; strcmp(k->words[n], json_string_value(v)); n++)
				;
		} else if (v && k->type == KN_KEY_BOOL) {
			n = json_is_true(v);
		} else if (v && k->type == KN_KEY_NUMBER) {
			n = kn_policy_thousandths(v);
		} else if (v) {
			n = kn_policy_size_of(v);
		}
		store(&p->pub, k, n);
	}
}

/* ---- lists of strings ---- */

int
kn_policy_build_strings(struct kn_pol *p, const char *pointer, const char *const **out,
    size_t *out_n, struct kn_err *e)
{
	json_t *a = kn_pointer_get(p->doc, pointer);
	size_t n = json_array_size(a), kept = 0;
	const char **v = kn_pmem_new(&p->mem, (n + 1) * sizeof *v, e);
	if (!v)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(a, i));
		bool again = false;
		for (size_t j = 0; j < kept; j++)
			again = again || strcmp(v[j], s) == 0;
		if (again)
			continue;
		v[kept] = kn_pmem_dup(&p->mem, s, strlen(s), e);
		if (!v[kept++])
			return -1;
	}
	*out = v;
	*out_n = kept;
	return 0;
}

static int
launcher_text(struct kn_pol *p, const char *pointer, const char **out, struct kn_err *e)
{
	const char *v = json_string_value(kn_pointer_get(p->doc, pointer));

	*out = v != NULL ? kn_pmem_dup(&p->mem, v, strlen(v), e) : NULL;
	if (v != NULL && *v == '\0')
		return kn_pol_fail(p, pointer, e, "is empty");
	return v != NULL && *out == NULL ? -1 : 0;
}

/* A key that does nothing is a mistake of who wrote it; not so if a flag has chosen
 * another launcher than the document. */
static int
build_launcher(struct kn_pol *p, struct kn_err *e)
{
	static const char *const of_oci[] = { "/launcher/runtime", "/launcher/image",
		"/launcher/rootfs" };
	struct kn_policy *q = &p->pub;
	bool engine =
	    q->runtime == KN_RUNTIME_PODMAN || q->runtime == KN_RUNTIME_DOCKER;

	if (q->launcher != KN_LAUNCHER_OCI) {
		bool chosen =
		    strcmp(kn_pol_origin(p, "/launcher/type"), "--launcher") == 0;

		for (size_t i = 0; i < sizeof of_oci / sizeof *of_oci; i++)
			if (!chosen && kn_policy_named(q, of_oci[i]))
				return kn_pol_fail(p, of_oci[i], e,
				    "is of the launcher oci, and /launcher/type is "
				    "another");
		return 0;
	}
	if (launcher_text(p, "/launcher/image", &q->image, e) < 0 ||
	    launcher_text(p, "/launcher/rootfs", &q->rootfs, e) < 0)
		return -1;
	if (q->image != NULL && !engine)
		return kn_pol_fail(p, "/launcher/image", e,
		    "goes with /launcher/runtime \"podman\" or \"docker\" only");
	if (q->image != NULL && q->rootfs != NULL)
		return kn_pol_fail(p, "/launcher/rootfs", e,
		    "and /launcher/image: one root or the other");
	if (q->rootfs != NULL && q->fs.root == KN_ROOT_EMPTY)
		return kn_pol_fail(p, "/launcher/rootfs", e,
		    "is the root, and /filesystem/root is \"empty\"");
	return 0;
}

/* An argument may stand there twice. */
static int
build_prefix(struct kn_pol *p, struct kn_err *e)
{
	json_t *a = kn_pointer_get(p->doc, "/launcher/prefix");
	size_t n = json_array_size(a);
	const char **v = kn_pmem_new(&p->mem, (n + 1) * sizeof *v, e);
	if (!v)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(a, i));
		if (!(v[i] = kn_pmem_dup(&p->mem, s, strlen(s), e)))
			return -1;
	}
	p->pub.prefix = v;
	p->pub.prefix_n = n;
	if (n > 0 && (!*v[0] || (*v[0] != '/' && strchr(v[0], '/'))))
		return kn_pol_fail(p, "/launcher/prefix/0", e,
		    "is neither an absolute path nor a name to look for in PATH");
	return 0;
}

static void
build_identity(struct kn_policy *q)
{
	const uint32_t task = 1000;
	q->identity.worker_uid = true;
	q->identity.uid = q->identity.user == KN_USER_ROOT     ? 0
			  : q->identity.user == KN_USER_CALLER ? getuid()
							       : task;
	q->identity.gid = q->identity.user == KN_USER_ROOT     ? 0
			  : q->identity.user == KN_USER_CALLER ? getgid()
							       : task;
	/* A worker for each task, which has its cell besides. */
	if (q->pool.isolation == KN_ISOLATION_WORKER)
		q->pool.recycle_tasks = 1;
}

static int
build_environment(struct kn_pol *p, struct kn_err *e)
{
	json_t *set = kn_pointer_get(p->doc, "/environment/set"), *v;
	const char *name;
	size_t n = 0;
	const char **out =
	    kn_pmem_new(&p->mem, (json_object_size(set) + 1) * sizeof *out, e);
	if (!out)
		return -1;
	json_object_foreach(set, name, v)
	{
		out[n] = kn_pmem_fmt(&p->mem, e, "%s=%s", name, json_string_value(v));
		if (!out[n++])
			return -1;
	}
	p->pub.env.set = out;
	p->pub.env.set_n = n;
	return kn_policy_build_strings(
	    p, "/environment/inherit", &p->pub.env.inherit, &p->pub.env.inherit_n, e);
}

static uint32_t
layers(json_t *doc, const char *pointer)
{
	json_t *a = kn_pointer_get(doc, pointer);
	uint32_t bits = 0;
	for (size_t i = 0; i < json_array_size(a); i++)
		bits |= 1u << kn_layer_by_name(json_string_value(json_array_get(a, i)));
	return bits;
}

/* The first is more than the second: said of the one that a user wrote. */
static int
fail_pair(const struct kn_pol *p, const char *more, const char *less, struct kn_err *e)
{
	if (kn_policy_named(&p->pub, more))
		return kn_pol_fail(p, more, e, "is more than %s", less);
	return kn_pol_fail(
	    p, less, e, "is less than %s (%s)", more, kn_pol_origin(p, more));
}

/* The file of kind module, and where it will be inside. */
static int
build_module(struct kn_pol *p, struct kn_err *e)
{
	struct kn_policy *q = &p->pub;
	const char *file = json_string_value(kn_pointer_get(p->doc, "/pool/module"));
	const char *init = json_string_value(kn_pointer_get(p->doc, "/pool/init"));
	bool module = q->pool.kind == KN_KIND_MODULE;
	if (!module && (file || init))
		return kn_pol_fail(p, file ? "/pool/module" : "/pool/init", e,
		    "goes with /pool/kind \"module\" only");
	if (!module)
		return 0;
	if (!file || !*file)
		return kn_pol_fail(p, "/pool/kind", e,
		    "\"module\" needs /pool/module, the file (or --module FILE)");
	q->pool.module = kn_pmem_dup(&p->mem, file, strlen(file), e);
	q->pool.module_at =
	    kn_pmem_fmt(&p->mem, e, "/module%s", strrchr(q->pool.module, '/'));
	q->pool.init =
	    kn_pmem_dup(&p->mem, init ? init : "", init ? strlen(init) : 0, e);
	if (!q->pool.module || !q->pool.module_at || !q->pool.init)
		return -1;
	if (strlen(q->pool.module_at) <= strlen("/module/"))
		return kn_pol_fail(p, "/pool/module", e, "is not the name of a file");
	return 0;
}

/* What only the merged whole can say. */
static int
check_whole(const struct kn_pol *p, struct kn_err *e)
{
	const struct kn_policy *q = &p->pub;
	int rc = 0;
	if (q->payload_max > q->payload_area >> 3)
		rc = kn_pol_fail(p, "/payload/max", e,
		    "%llu is more than an eighth of /payload/area (%llu)",
		    (unsigned long long)q->payload_max,
		    (unsigned long long)q->payload_area);
	if (q->worker.memory && q->task.memory > q->worker.memory)
		rc = fail_pair(p, "/limits/task/memory", "/limits/worker/memory", e);
	if (q->worker.pids && q->task.pids > q->worker.pids)
		rc = fail_pair(p, "/limits/task/pids", "/limits/worker/pids", e);
	return rc;
}

int
kn_policy_build(struct kn_pol *p, struct kn_err *e)
{
	struct kn_policy *q = &p->pub;
	build_scalars(p);
	q->require = layers(p->doc, "/require");
	q->allow_degraded = layers(p->doc, "/allow_degraded");
	build_identity(q);
	const char *host =
	    json_string_value(kn_pointer_get(p->doc, "/identity/hostname"));
	if (!host)
		host = "sandbox";
	q->identity.hostname = kn_pmem_dup(&p->mem, host, strlen(host), e);
	if (!q->identity.hostname || build_environment(p, e) < 0 ||
	    kn_policy_build_seccomp(p, e) < 0 ||
	    kn_policy_build_strings(p, "/filesystem/task_paths", &q->fs.task_paths,
		&q->fs.task_path_n, e) < 0 ||
	    kn_permissions_rest(p, e) < 0 || kn_policy_build_denied(p, e) < 0)
		return -1;
	/* Each may find something: all of it is told. */
	int rc = check_whole(p, e);
	rc |= build_launcher(p, e);
	rc |= build_prefix(p, e);
	rc |= kn_policy_build_caps(p, e);
	rc |= build_module(p, e);
	rc |= kn_policy_build_network(p, e);
	rc |= kn_policy_build_mounts(p, e);
	rc |= kn_policy_check_direct(p, e);
	return rc;
}
