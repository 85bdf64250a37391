/* sandbox/policy_int.h: what the policy*.c files share; no one else includes it.
 *
 *   policy.c        the API: sources in order -> one policy
 *   policy_table.c  the key table: every key, its type, range, default and meaning
 *   policy_json.c   reading documents, positions in the text, error text
 *   policy_notes.c  what is wrong and where, all of it
 *   policy_check.c  one document against the table
 *   policy_items.c  what the table cannot say: mounts, rules, names
 *   policy_caps.c   why no capability is given
 *   policy_net.c    the list of hosts of /network
 *   policy_merge.c  documents onto one another; layers that must hold
 *   policy_profile.c  foreign seccomp profiles; policy_profile_build.c for this machine
 *   policy_build.c  the merged document -> struct kn_policy
 *   policy_seccomp.c  groups, rules and profile of it
 *   policy_mounts.c mounts of the caller; policy_root.c the system root, or
 *   policy_rootfs.c another directory in its place
 *   policy_files.h  filesystem.read, write and deny
 *   policy_limits.c sizes, durations, a task's own limits
 *   policy_schema.c the table -> JSON Schema
 *   policy_learn.c  what was seen -> a document
 *   policy_read.c   its text, its hash, single values
 *   policy_show.c   a policy with origins, and two beside one another
 */
#ifndef KN_SANDBOX_POLICY_INT_H
#define KN_SANDBOX_POLICY_INT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/err.h"
#include "sandbox/net_rule.h"
#include "sandbox/policy.h"

enum {
	KN_POLICY_POINTER_MAX = 256,
	KN_POLICY_FILE_MAX = 1 << 20,
	KN_POLICY_DEPTH = 32
};

/* ---- memory: everything a policy owns, freed at once ---- */
struct kn_pmem {
	struct kn_pchunk *first;
};
/* NULL with e. */
void *kn_pmem_room(struct kn_pmem *m, size_t n, struct kn_err *e);
/* The same, zeroed. */
void *kn_pmem_new(struct kn_pmem *m, size_t n, struct kn_err *e);
char *kn_pmem_dup(struct kn_pmem *m, const void *p, size_t n, struct kn_err *e);
char *kn_pmem_fmt(struct kn_pmem *m, struct kn_err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void kn_pmem_fini(struct kn_pmem *m);

/* ---- the key table ---- */
enum kn_key_type {
	KN_KEY_OBJECT,
	KN_KEY_MAP,  /* object of texts under any name */
	KN_KEY_LIST, /* its elements are the key "<path>/ *" */
	KN_KEY_WORD, /* one of words; the index is the value */
	KN_KEY_BOOL,
	KN_KEY_TEXT,
	KN_KEY_INT,
	KN_KEY_SIZE,	/* integer or text with K, M, G */
	KN_KEY_NUMBER,	/* with a fraction; its value, min and max in thousandths */
	KN_KEY_PROFILE, /* a foreign format: policy_profile.c, or the file's name */
	KN_KEY_LATER,	/* described, and not supported by this version */
	KN_KEY_TYPE_N
};
struct kn_key {
	const char *path; /* JSON pointer; "*" stands for an element or any name */
	enum kn_key_type type;
	int64_t min, max;	  /* INT, SIZE, NUMBER */
	bool none;		  /* the same: 0 is allowed below min and means none */
	int64_t dflt;		  /* value of an absent key, where `width` is set */
	const char *const *words; /* WORD: NULL-terminated */
	const char *const *later; /* WORD: words that this version does not support */
	size_t off, width; /* where it goes in struct kn_policy; 0: not by table */
	const char *doc;
};
extern const struct kn_key kn_policy_keys[];
extern const size_t kn_policy_key_n;
/* NULL if there is none. */
const struct kn_key *kn_policy_key(const char *path);
/* The key for member `name` of the object at pattern `path`. */
const struct kn_key *kn_policy_key_child(const char *path, const char *name);
/* The key that an actual pointer means: numbers match "*". */
const struct kn_key *kn_policy_key_at(const char *pointer);
/* Is its value a time in milliseconds? */
bool kn_policy_key_is_ms(const struct kn_key *k);
/* Nearest of the known members of `path`, or NULL if none is near. */
const char *kn_policy_key_near(const char *path, const char *name);

/* ---- documents ---- */
struct kn_pdoc {
	char *label; /* file as named, "preset default", or the flag */
	char *dir;   /* relative paths are relative to it */
	char *text;  /* NULL for a flag: it has no positions */
	size_t n;
	json_t *root;
	bool preset;
	struct kn_policy_notes *notes; /* borrowed; NULL: the last mistake is told */
	size_t ordinal;		       /* among the documents of notes */
	char *profile; /* the file that seccomp.profile came from, or NULL */
};
void kn_pdoc_fini(struct kn_pdoc *d);
int kn_pdoc_open(struct kn_pdoc *d, const char *path, struct kn_err *e);
int kn_pdoc_preset(struct kn_pdoc *d, const char *name, struct kn_err *e);
/* Text to be parsed as a document; label and dir are set. */
int kn_pdoc_parse(struct kn_pdoc *d, struct kn_err *e);
/* A flag: {"a":{"b":VALUE}} for /a/b. */
int kn_pdoc_flag(struct kn_pdoc *d, const struct kn_policy_src *s, struct kn_err *e);
/* Always -1, and a note. "label:line:col: pointer: text"; at the key, or its value. */
int kn_pdoc_fail(const struct kn_pdoc *d, const char *pointer, bool at_key,
    struct kn_err *e, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Always -1, and a note, of a place that is known. line < 1: it is not. */
int kn_pdoc_fail_at(
    const struct kn_pdoc *d, int line, int col, struct kn_err *e, const char *text);
/* What to do about what kn_pdoc_fail() has just told. */
void kn_pdoc_hint(const struct kn_pdoc *d, struct kn_err *e, const char *text);
/* A note of what e says, at the place given. */
void kn_policy_note_add(struct kn_policy_notes *notes, const struct kn_err *e,
    const char *text, const char *pointer, size_t doc, unsigned line, unsigned col);
/* Into the order in which they are told. */
void kn_policy_notes_sort(struct kn_policy_notes *notes);
/* Position of a value (or of its key) in a JSON text, 1-based. false: not there. */
bool kn_policy_locate(const char *text, size_t n, const char *pointer, bool at_key,
    unsigned *out_line, unsigned *out_col);
/* "<pointer>/<name escaped>" into dst; false if it does not fit. */
bool kn_pointer_add(
    char dst[KN_POLICY_POINTER_MAX], const char *pointer, const char *name);
json_t *kn_pointer_get(json_t *root, const char *pointer);

int kn_policy_check_doc(const struct kn_pdoc *d, struct kn_err *e);
int kn_policy_check_items(const struct kn_pdoc *d, struct kn_err *e);
int kn_policy_check_network(const struct kn_pdoc *d, struct kn_err *e);
/* ---- foreign seccomp profiles ---- */
/* Is the object at `pointer` of d one? */
int kn_profile_check(
    const struct kn_pdoc *d, const char *pointer, json_t *profile, struct kn_err *e);
/* Why an action is not for us, or NULL. */
const char *kn_profile_no_action(const char *action);
/* ENOSYS -> 38; -1: no such name. */
int kn_profile_errno(const char *name);
bool kn_profile_version(const char *text, unsigned out[2]);

/* What is wrong with a path inside, or NULL. */
const char *kn_inside_path_fault(const char *p);
/* A SIZE value as checked by the table. */
uint64_t kn_policy_size_of(const json_t *v);
/* A NUMBER value as checked by the table, in thousandths. */
uint64_t kn_policy_thousandths(const json_t *v);

/* ---- merging ---- */
struct kn_pmerge {
	json_t *doc, *origins; /* pointer -> "label" or "label:/pointer" */
	json_t *groups;	       /* effective seccomp groups */
	json_t *texts;	       /* label -> the text of that file */
	json_t *from;	       /* layer or group -> origin, as origins have it */
	json_t *turns;	       /* pointer -> which of the documents it came with */
	json_int_t turn;
	uint32_t require, allow;
};
int kn_pmerge_init(struct kn_pmerge *m, struct kn_err *e);
void kn_pmerge_fini(struct kn_pmerge *m);
int kn_pmerge_add(struct kn_pmerge *m, const struct kn_pdoc *d, struct kn_err *e);
/* Write groups and layers into the document. */
int kn_pmerge_end(struct kn_pmerge *m, struct kn_err *e);

/* ---- building ---- */
struct kn_pol {
	struct kn_policy pub; /* first: the public pointer is this one */
	struct kn_pmem mem;
	json_t *doc, *origins, *texts;
	struct kn_policy_notes *notes; /* while it is built */
	char *const *read; /* while it is built: canonical paths of files that were
			    * read; what has no leading slash is none */
	size_t read_n;
	json_t *turns; /* while it is built: as kn_pmerge has them */
	char hash[72]; /* "" until it is asked for */
};
int kn_policy_build(struct kn_pol *p, struct kn_err *e);
int kn_policy_build_caps(const struct kn_pol *p, struct kn_err *e);
int kn_policy_build_network(struct kn_pol *p, struct kn_err *e);
int kn_policy_build_seccomp(struct kn_pol *p, struct kn_err *e);
/* Replaces seccomp.profile of the document by what is left of it on this machine. */
int kn_policy_build_profile(struct kn_pol *p, struct kn_err *e);
enum kn_seccomp_action kn_policy_action(const char *word);
/* A list of texts without repetitions. */
int kn_policy_build_strings(struct kn_pol *p, const char *pointer,
    const char *const **out, size_t *out_n, struct kn_err *e);
int kn_policy_build_mounts(struct kn_pol *p, struct kn_err *e);
/* What launcher direct cannot keep: -1 with all of it noted. */
int kn_policy_check_direct(const struct kn_pol *p, struct kn_err *e);
/* Where a merged value came from, for messages; never NULL. */
const char *kn_pol_origin(const struct kn_pol *p, const char *pointer);
/* Which of the merged documents it came with: a later one has a higher number. */
unsigned kn_pol_turn(const struct kn_pol *p, const char *pointer);
/* The file that an origin names, or NULL; the pointer in it, and the text. */
const char *kn_pol_text_of(const struct kn_pol *p, const char *origin,
    const char **out_label, const char **out_pointer);
/* Always -1, and a note: "origin:line:col: pointer: text". */
int kn_pol_fail(const struct kn_pol *p, const char *pointer, struct kn_err *e,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* What to do about it. */
void kn_pol_hint(const struct kn_pol *p, struct kn_err *e, const char *text);

struct kn_mount_list {
	struct kn_mount *v;
	size_t n, cap;
};
int kn_mount_add(
    struct kn_mount_list *l, struct kn_mount m, struct kn_pmem *mem, struct kn_err *e);
/* The entries of launcher.rootfs, each by itself: nothing is made in it. */
int kn_policy_rootfs(struct kn_pol *p, struct kn_mount_list *l, struct kn_err *e);
/* The read-only system directories and a minimal /etc of this machine. */
int kn_policy_root(struct kn_pol *p, struct kn_mount_list *l, struct kn_err *e);

#endif
