/* ipc/near.h: the known word that a misspelt one was meant to be, for messages.
 *
 *	struct kn_near near = kn_near_to("memroy");
 *	for (each known word) kn_near_try(&near, word);
 *	if (kn_near_best(&near)) ... "did you mean \"%s\"?"
 */
#ifndef KN_IPC_NEAR_H
#define KN_IPC_NEAR_H

struct kn_near {
	const char *name, *best;
	unsigned edits; /* from name to best */
};

/* Keeps name, which may be hostile text of any length. */
struct kn_near kn_near_to(const char *name);
/* Keeps word. Of several that are as near the first counts. */
void kn_near_try(struct kn_near *near, const char *word);
/* NULL: none is so near that it was meant. */
const char *kn_near_best(const struct kn_near *near);
/* All three, over a list that NULL ends. */
const char *kn_near_word(const char *const *words, const char *name);

#endif
