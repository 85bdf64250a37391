/* sandbox/policy_read.c: what is asked of a merged policy: its text, its hash, single
 * values and who set them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/policy_int.h"
#include "sandbox/sha256.h"

/* A number reads as it was written, 1.1 and not 1.1000000000000001. */
enum { DUMP = JSON_SORT_KEYS | JSON_REAL_PRECISION(12) };

/* pub is the first member, so the pointers are the same. */
static struct kn_pol *
owner(const struct kn_policy *p)
{
	return (struct kn_pol *)(uintptr_t)p;
}

void
kn_policy_free(struct kn_policy *p)
{
	if (!p)
		return;
	struct kn_pol *o = owner(p);
	json_decref(o->doc);
	json_decref(o->origins);
	json_decref(o->texts);
	kn_pmem_fini(&o->mem);
	free(o);
}

const char *
kn_policy_hash(const struct kn_policy *p)
{
	struct kn_pol *o = owner(p);
	uint8_t sum[32];
	if (o->hash[0])
		return o->hash;
	char *text = json_dumps(o->doc, JSON_COMPACT | DUMP);
	if (!text)
		return "";
	kn_sha256(text, strlen(text), sum);
	free(text);
	int n = snprintf(o->hash, sizeof o->hash, "sha256:");
	for (size_t i = 0; i < sizeof sum; i++)
		n += snprintf(o->hash + n, sizeof o->hash - (size_t)n, "%02x", sum[i]);
	return o->hash;
}

char *
kn_policy_text(const struct kn_policy *p)
{
	return json_dumps(owner(p)->doc, JSON_INDENT(2) | DUMP);
}

char *
kn_policy_value(const struct kn_policy *p, const char *pointer)
{
	json_t *v = kn_pointer_get(owner(p)->doc, pointer);

	return v ? json_dumps(v, JSON_ENCODE_ANY | DUMP) : NULL;
}

const char *
kn_policy_word(const struct kn_policy *p, const char *pointer)
{
	return json_string_value(kn_pointer_get(owner(p)->doc, pointer));
}

const char *
kn_policy_origin(const struct kn_policy *p, const char *pointer)
{
	return json_string_value(json_object_get(owner(p)->origins, pointer));
}

bool
kn_policy_named(const struct kn_policy *p, const char *pointer)
{
	const char *o = kn_policy_origin(p, pointer);
	return o && strncmp(o, "preset ", 7) != 0;
}
