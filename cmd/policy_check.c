/* cmd/policy_check.c: knit-sandbox policy check: every mistake, one line each, as
 * compilers tell them, so that editors find the place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <knit/pool.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "cmd/policy.h"
#include "ipc/err.h"
#include "sandbox/filter.h"
#include "sandbox/policy.h"

int
kn_policy_of_opts(const struct kn_run_opts *o, struct kn_policy **out,
    struct kn_policy_notes *notes, struct kn_err *e)
{
	static const enum kn_policy_src_type types[] = {
		[KN_OPT_NAMED] = KN_SRC_NAMED,
		[KN_OPT_SET] = KN_SRC_SET,
		[KN_OPT_VALUE] = KN_SRC_VALUE,
		[KN_OPT_MOUNT] = KN_SRC_MOUNT,
	};
	struct kn_policy_src *src = calloc(o->src_n + 1, sizeof *src);
	int rc;

	*out = NULL;
	*notes = (struct kn_policy_notes){ 0 };
	if (!src)
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	for (size_t i = 0; i < o->src_n; i++)
		src[i] = (struct kn_policy_src){ .type = types[o->src[i].type],
			.text = o->src[i].text,
			.pointer = o->src[i].pointer,
			.at = o->src[i].at,
			.writable = o->src[i].writable,
			.label = o->src[i].label ? o->src[i].label : o->src[i].text };
	rc = kn_policy_load_noted(src, o->src_n, out, notes, e);
	for (size_t i = 0; rc < 0 && i < o->src_n; i++)
		if (o->src[i].type == KN_OPT_NAMED)
			kn_opt_hint_policy(e, o->src[i].text);
	free(src);
	return rc;
}

int
kn_policy_say_notes(const struct kn_policy_notes *notes, const struct kn_err *e)
{
	const char *hint = "";

	if (notes->n == 0 && e->kind == KN_EK_HOST)
		return kn_say_error(NULL, e);
	/* Found in the whole, and in no place of a document. */
	if (notes->n == 0) {
		if (kn_say_out(NULL, e->msg, strlen(e->msg)) < 0 ||
		    kn_say_out(NULL, "\n", 1) < 0)
			return KN_EXIT_OURS;
		hint = e->hint;
	}
	for (size_t i = 0; i < notes->n; i++) {
		const char *text = notes->v[i].text;

		if (kn_say_out(NULL, text, strlen(text)) < 0 ||
		    kn_say_out(NULL, "\n", 1) < 0)
			return KN_EXIT_OURS;
		if (!*hint)
			hint = notes->v[i].err->hint;
	}
	if (notes->n + notes->more > 1)
		kn_say(NULL, "policy check: %zu mistakes%s", notes->n + notes->more,
		    notes->more ? ", of which the first are told" : "");
	if (!*hint)
		hint = e->hint;
	if (*hint)
		kn_say_hint(NULL, hint);
	return KN_EXIT_NOT_ALL_OK;
}

/* It makes a filter that the kernel would take, from which something can start. */
static int
check_filter(const struct kn_policy *p, struct kn_err *e)
{
	struct kn_filter f = { 0 };
	int rc = kn_filter_build(p, &f, e);

	kn_filter_fini(&f);
	return rc;
}

int
kn_policy_check_main(int argc, char **argv)
{
	struct kn_policy_notes notes = { 0 };
	struct kn_policy *p = NULL;
	struct kn_run_opts o;
	struct kn_err e = { 0 };
	char line[128];
	int rc, n;

	if (kn_opt_parse_policy(&o, argc, argv, &e) < 0) {
		rc = kn_say_error(NULL, &e);
	} else if (o.help) {
		rc = kn_policy_help();
	} else if (kn_policy_of_opts(&o, &p, &notes, &e) < 0) {
		rc = kn_policy_say_notes(&notes, &e);
	} else if (check_filter(p, &e) < 0) {
		rc = kn_policy_say_notes(&notes, &e);
	} else {
		for (size_t i = 0; i < p->seccomp.note_n; i++)
			kn_say(NULL, "policy check: passed over in %s: %s",
			    kn_policy_origin(p, "/seccomp/profile"),
			    p->seccomp.notes[i]);
		n = snprintf(line, sizeof line, "ok %s\n", kn_policy_hash(p));
		rc = kn_say_out(NULL, line, (size_t)n) < 0 ? KN_EXIT_OURS : KN_EXIT_OK;
	}
	kn_policy_notes_fini(&notes);
	kn_policy_free(p);
	kn_opt_fini(&o);
	return rc;
}
