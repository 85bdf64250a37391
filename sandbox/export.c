/* sandbox/export.c: a policy for other programs: the formats, and what they lack. */
#include "sandbox/export_int.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int
profile(struct kn_exporting *x)
{
	json_t *v = kn_export_profile(x->p, x->e);
	char *text = v ? json_dumps(v, JSON_INDENT(2)) : NULL;

	if (text)
		fprintf(x->f, "%s\n", text);
	else if (v)
		kn_err_set(x->e, KN_EK_HOST, "export: out of memory");
	json_decref(v);
	free(text);
	return text ? 0 : -1;
}

static const struct {
	const char *name;
	int (*make)(struct kn_exporting *x);
} formats[] = {
	[KN_EXPORT_SECCOMP] = { "seccomp", profile },
	[KN_EXPORT_OCI] = { "oci", kn_export_oci },
	[KN_EXPORT_DOCKER] = { "docker", kn_export_docker },
	[KN_EXPORT_K8S] = { "k8s", kn_export_k8s },
	[KN_EXPORT_SYSTEMD] = { "systemd", kn_export_systemd },
};
_Static_assert(sizeof formats / sizeof *formats == KN_EXPORT_N, "a writer each");

int
kn_export_format(const char *name)
{
	for (int i = 0; i < KN_EXPORT_N; i++)
		if (strcmp(formats[i].name, name) == 0)
			return i;
	return -1;
}

int
kn_export_note(struct kn_exporting *x, const char *fmt, ...)
{
	struct kn_export *o = x->out;
	char **v = realloc(o->notes, (o->note_n + 1) * sizeof *v);
	va_list ap;
	int n = -1;

	if (v) {
		o->notes = v;
		va_start(ap, fmt);
		n = vasprintf(&v[o->note_n], fmt, ap);
		va_end(ap);
	}
	if (n < 0)
		return kn_err_set(x->e, KN_EK_HOST, "export: out of memory");
	o->note_n++;
	return 0;
}

/* A mask told as a bind would show what it hides. */
static int
check_files(const struct kn_exporting *x)
{
	for (size_t i = 0; i < x->p->fs.mount_n; i++) {
		const struct kn_mount *m = &x->p->fs.mounts[i];
		bool denied = m->type == KN_MOUNT_MASK || m->type == KN_MOUNT_LINK ||
			      m->type == KN_MOUNT_WHITE;

		if (denied || m->overlay)
			return kn_err_set(x->e, KN_EK_CONFIG,
			    "%.120s: %s at %.120s cannot be said to %s", m->origin,
			    denied ? "what is denied" : "an overlay", m->at,
			    x->backend);
	}
	if (!x->p->console)
		return kn_err_set(x->e, KN_EK_CONFIG,
		    "/permissions/console: %s shows what a task prints", x->backend);
	return 0;
}

/* Its filter is loaded before the task's own command is executed. */
static int
check_run(struct kn_exporting *x, bool only_calls)
{
	if (only_calls && x->p->run.set)
		return kn_export_note(x,
		    "/permissions/run: a profile does not say which programs are "
		    "executed");
	return x->p->run.set
		   ? kn_export_lacks(x, KN_LAYER_LANDLOCK,
			 "word about programs that are executed (/permissions/run)",
			 "nothing")
		   : 0;
}

int
kn_export_lacks(
    struct kn_exporting *x, enum kn_layer l, const char *what, const char *instead)
{
	if (x->p->allow_degraded & (1u << l))
		return kn_export_note(x,
		    "%s: %s has no %s; in its place: %s (/allow_degraded names it)",
		    kn_layer_name(l), x->backend, what, instead);
	/* Who is not root has no such layer here either, and is told by the report. */
	if (l == KN_LAYER_UID && !(x->p->require & (1u << l)))
		return kn_export_note(x, "%s: %s has no %s; in its place: %s",
		    kn_layer_name(l), x->backend, what, instead);
	kn_err_set(x->e, KN_EK_CONFIG, "%s cannot enforce %s: it has no %s", x->backend,
	    kn_layer_name(l), what);
	kn_err_hint(x->e, "add \"%s\" to /allow_degraded, or choose another format",
	    kn_layer_name(l));
	return -1;
}

int
kn_export_say_times(struct kn_exporting *x, bool has_hard)
{
	const struct kn_policy *p = x->p;

	if (!has_hard && p->timeouts.hard_ms &&
	    kn_export_note(x,
		"/timeouts/hard_ms: %s has no such: who starts it has to end it",
		x->backend) < 0)
		return -1;
	if ((p->task.stdout_bytes != UINT64_MAX ||
		p->task.stderr_bytes != UINT64_MAX) &&
	    kn_export_note(
		x, "/limits/task/stdout, stderr: %s does not cut them", x->backend) < 0)
		return -1;
	return 0;
}

void
kn_export_sh(FILE *f, const char *s)
{
	static const char plain[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%";

	if (*s && !s[strspn(s, plain)]) {
		fputs(s, f);
		return;
	}
	fputc('\'', f);
	for (; *s; s++)
		if (*s == '\'')
			fputs("'\\''", f);
		else
			fputc(*s, f);
	fputc('\'', f);
}

static int
write_out(struct kn_exporting *x, enum kn_export_format f, bool around)
{
	size_t n;
	int rc;

	x->f = open_memstream(&x->out->text, &n);
	if (!x->f)
		return kn_err_set(x->e, KN_EK_HOST, "export: out of memory");
	rc = around ? kn_export_around(x, f) : formats[f].make(x);
	if (fclose(x->f) != 0 && rc == 0)
		rc = kn_err_set(x->e, KN_EK_HOST, "export: out of memory");
	if (rc < 0)
		kn_export_fini(x->out);
	return rc;
}

int
kn_export_make(const struct kn_policy *p, enum kn_export_format f, const char *name,
    struct kn_export *out, struct kn_err *e)
{
	struct kn_exporting x = {
		.p = p, .name = name, .backend = formats[f].name, .out = out, .e = e
	};

	*out = (struct kn_export){ 0 };
	if (p->pool.kind != KN_KIND_EXEC && f != KN_EXPORT_SECCOMP)
		return kn_err_set(e, KN_EK_CONFIG,
		    "/pool/kind: %s runs a command, and calls of a module are none",
		    x.backend);
	if (p->network == KN_NET_ALLOW && f != KN_EXPORT_SECCOMP)
		return kn_err_set(e, KN_EK_CONFIG,
		    "/network/mode: \"allow\" is a proxy of the supervisor's, and %s "
		    "has "
		    "none",
		    x.backend);
	if (f != KN_EXPORT_SECCOMP && check_files(&x) < 0)
		return -1;
	if (check_run(&x, f == KN_EXPORT_SECCOMP) < 0)
		return -1;
	return write_out(&x, f, false);
}

int
kn_export_make_around(const struct kn_policy *p, enum kn_export_format f,
    const char *name, bool preset, uint32_t workers, struct kn_export *out,
    struct kn_err *e)
{
	struct kn_exporting x = { .p = p,
		.name = name,
		.backend = formats[f].name,
		.preset = preset,
		.workers = workers,
		.out = out,
		.e = e };

	*out = (struct kn_export){ 0 };
	return write_out(&x, f, true);
}

void
kn_export_fini(struct kn_export *x)
{
	for (size_t i = 0; i < x->note_n; i++)
		free(x->notes[i]);
	free(x->notes);
	free(x->text);
	*x = (struct kn_export){ 0 };
}
