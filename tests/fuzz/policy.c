/* tests/fuzz/policy.c: any bytes as a policy file: never a fault; what is refused has
 * at least one clear line, what is accepted can be shown, read again and made a filter
 * of.
 *
 *   clang -fsanitize=fuzzer,address,undefined -DKN_LIBFUZZER ... tests/fuzz/policy.c
 * Without KN_LIBFUZZER: a program that replays the files it is given.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc/err.h"
#include "sandbox/filter.h"
#include "sandbox/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
is_a_line(const char *s)
{
	assert(*s);
	for (; *s; s++)
		assert((unsigned char)*s >= 0x20 && *s != 0x7f);
}

static int
load(const void *data, size_t n, struct kn_policy **out, struct kn_policy_notes *notes,
    struct kn_err *e)
{
	int fd = memfd_create("policy", MFD_CLOEXEC);
	char path[32];
	struct kn_policy_src src = {
		.type = KN_SRC_NAMED, .text = path, .label = path
	};
	int rc;

	assert(fd >= 0 && write(fd, data, n) == (ssize_t)n);
	/* (a name that does not change from run to run) */
	assert(dup2(fd, 99) == 99);
	close(fd);
	snprintf(path, sizeof path, "/proc/self/fd/99");
	rc = kn_policy_load_noted(&src, 1, out, notes, e);
	close(99);
	return rc;
}

/* What is accepted says the same when it is read again. */
static void
accepted(struct kn_policy *p)
{
	struct kn_policy_notes notes;
	struct kn_policy *again = NULL;
	struct kn_err e = { 0 };
	struct kn_filter f;
	char *text = kn_policy_text(p), *listing = kn_policy_listing(p), *diff;

	assert(text && listing && strstr(listing, kn_policy_hash(p)));
	if (kn_filter_build(p, &f, &e) == 0)
		kn_filter_fini(&f);
	else
		is_a_line(e.msg);
	if (load(text, strlen(text), &again, &notes, &e) == 0) {
		diff = kn_policy_compare(p, again);
		assert(diff && !*diff);
		free(diff);
	}
	kn_policy_notes_fini(&notes);
	kn_policy_free(again);
	free(listing);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct kn_policy_notes notes;
	struct kn_policy *p = NULL;
	struct kn_err e = { 0 };

	if (load(data, n, &p, &notes, &e) == 0) {
		assert(p && notes.n == 0);
		accepted(p);
	} else {
		assert(!p && e.kind != KN_EK_NONE && e.kind != KN_EK_BUG);
		is_a_line(e.msg);
		for (size_t i = 0; i < notes.n; i++)
			is_a_line(notes.v[i].text);
	}
	kn_policy_notes_fini(&notes);
	kn_policy_free(p);
	return 0;
}

#include "tests/fuzz/replay.h"
