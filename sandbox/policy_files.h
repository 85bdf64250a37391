/* sandbox/policy_files.h: what the files about filesystem.read, write and deny share.
 *
 *   policy_path.c   an entry's text: "~", relative, patterns; what a pattern means
 *   policy_walk.c   the files of a tree that a pattern means
 *   policy_files.c  read and write -> binds
 *   policy_deny.c   what an entry of deny means
 *   policy_mask.c   masks over what the binds show
 *   policy_denied.c is one path denied? of files that are read on behalf of a task
 *   policy_pins.c   what is mounted below a writable folder stays where it is
 *   policy_permissions.c  the same by the words of /permissions
 *
 * Everything here is decided when the policy is read. An entry is one of
 *   plain    a path; a backslash takes a character's meaning
 *   pattern  has *, ?, [...], or ** for any number of folders
 *   any      of deny only: begins with "**", and is looked for in all that is bound
 */
#ifndef KN_SANDBOX_POLICY_FILES_H
#define KN_SANDBOX_POLICY_FILES_H

#include <sys/stat.h>

#include "sandbox/policy_int.h"

enum { KN_FPATH_MAX = 4096 };

/* ---- policy_path.c ---- */

/* What is wrong with an entry as it was written, or NULL. */
const char *kn_fpath_fault(const char *s, bool deny);
/* The entry from the folder dir on, "~" replaced, without "." and ".."; malloc'ed. An
 * entry of deny that begins with "**" stays as it is. NULL: no memory, or no home. */
char *kn_fpath_absolute(const char *dir, const char *s, bool deny);
bool kn_fpath_is_pattern(const char *s);
bool kn_fpath_is_any(const char *s);
/* It has "**" and no folder in front of it: what would be everywhere. */
bool kn_fpath_is_wide(const char *s);
/* Backslashes resolved, in place. */
void kn_fpath_plain(char *s);
/* Length of the part before the first component that is a pattern, without its '/'. */
size_t kn_fpath_fixed(const char *pattern);
/* Characters that mean something get a backslash; malloc'ed, or NULL. */
char *kn_fpath_escape(const char *s);

enum kn_fpath_hit {
	KN_FPATH_NO,	/* neither this nor anything below it */
	KN_FPATH_BELOW, /* not this; something below it may be */
	KN_FPATH_THIS
};
/* An absolute path against an absolute pattern, or one that begins with "**". dots:
 * wildcards mean names with a leading dot also. */
enum kn_fpath_hit kn_fpath_match(const char *pattern, const char *path, bool dots);

/* path is dir, or below it. */
bool kn_fpath_within(const char *path, const char *dir);
/* The canonical path of what exists of `path`, and the rest of its text after that. A
 * last component that is a link stays one. false: it is too long. */
bool kn_fpath_real(const char *path, char out[KN_FPATH_MAX]);

/* ---- policy_walk.c ---- */

struct kn_fwalk {
	const char *pattern;
	bool dots;
	/* name: what the pattern took it for; real: where it is. */
	int (*found)(void *arg, const char *name, const char *real, struct kn_err *e);
	void *arg;
	const char *origin; /* for messages */
	size_t names;	    /* looked at so far */
};
/* Tell of everything at or below `real`, a canonical path, that the pattern means when
 * it is called `name`; of what lies in a folder told of, nothing. No link is followed.
 * -1: a folder that cannot be read, too many names, or found() said so. */
int kn_fwalk(struct kn_fwalk *w, const char *name, const char *real, struct kn_err *e);

/* ---- policy_files.c ---- */

/* The binds of read and write, and links on their ways, put into the caller's list. */
int kn_policy_files(struct kn_pol *p, struct kn_mount_list *l, struct kn_err *e);
/* A bind, link or folder into the list; of two at one place the later is meant.
 * Refused, at `pointer`, is one that would take the place of what a later document put
 * there. */
int kn_mount_put(struct kn_pol *p, struct kn_mount_list *l, const struct kn_mount *m,
    const char *pointer, struct kn_err *e);

/* ---- policy_mounts.c ---- */

/* Stable: the system root's first, then a folder before what is mounted below it. */
void kn_mounts_sort(struct kn_mount_list *l);
/* The mount whose files are at `at`, leaving `but` out; NULL: none's. Of two at one
 * place it is the later. */
const struct kn_mount *kn_mount_top(
    const struct kn_mount_list *l, const char *at, const struct kn_mount *but);

/* ---- policy_mask.c: of one entry that denies ---- */

enum kn_deny_kind { KN_DENY_OPEN, KN_DENY_WRITE };
struct kn_deny {
	struct kn_pol *p;
	struct kn_mount_list *all;
	struct kn_mount_list masks; /* and links */
	struct kn_mount_list binds; /* read-only, of what is not to be written to */
	char **real; /* per mount: canonical source of a bind that is there */
	bool *goes;  /* per mount: of the system root, and denied */
	/* the entry */
	enum kn_deny_kind kind;
	bool soft; /* a name that a task could make is let be */
	char pointer[64];
	const char *text, *origin;
};
int kn_deny_begin(struct kn_deny *d, struct kn_err *e);
/* Write all into the list of mounts. */
int kn_deny_end(struct kn_deny *d, struct kn_err *e);
const struct kn_mount *kn_deny_mount(const struct kn_deny *d, size_t i);
/* Deny a file or folder, by its canonical path, wherever it is shown. */
int kn_deny_cover(struct kn_deny *d, const char *real, struct kn_err *e);
/* A link in a writable bind stays, or a task could put something else at its name. */
int kn_deny_keep_link(struct kn_deny *d, const char *real, struct kn_err *e);
/* -1 if a task could give that name to a file of its own: it lies in a writable bind.
 */
int kn_deny_free(
    const struct kn_deny *d, const char *path, const char *what, struct kn_err *e);
/* Always -1: mount i can be written to. */
int kn_deny_refuse(
    const struct kn_deny *d, size_t i, const char *what, struct kn_err *e);
int kn_deny_too_long(const struct kn_deny *d, struct kn_err *e);
/* a + the part of path below dir; path lies within dir. */
bool kn_fpath_join(
    char out[KN_FPATH_MAX], const char *a, const char *path, const char *dir);

/* ---- policy_permissions.c ---- */

/* The lists that hold entries, by what they are; NULL ends them. */
extern const char *const kn_files_read[],
    *const kn_files_write[], *const kn_files_deny[], *const kn_files_deny_write[];
/* Entries and the project of a document, absolute. */
int kn_permissions_absolute(const struct kn_pdoc *d, struct kn_err *e);
/* With mode project: its directory, and whether it is written to; NULL: it is not
 * shown. */
const char *kn_permissions_project(const struct kn_pol *p, bool *out_writable);
/* The i-th of the known secrets; false: no more. */
bool kn_permissions_secret(const struct kn_pol *p, size_t i, char out[KN_FPATH_MAX]);
/* environment.inherit with permissions.env; the console. */
int kn_permissions_rest(struct kn_pol *p, struct kn_err *e);

/* ---- policy_deny.c ---- */

/* The pattern means path, or a folder that path lies in. */
bool kn_fpath_means_or_holds(const char *pattern, const char *path);
/* What is denied of the mounts in `all`, which are in mount order: mounts of the
 * system root that go, masks at the end, and what keeps a task from moving a masked
 * file's folder away. */
int kn_policy_deny(struct kn_pol *p, struct kn_mount_list *all, struct kn_err *e);

/* ---- policy_denied.c ---- */

/* The entries of the lists that deny, as kn_policy_denies() wants them. */
int kn_policy_build_denied(struct kn_pol *p, struct kn_err *e);

/* ---- policy_pins.c ---- */

/* Binds of folders upon themselves, for what is mounted or masked below a writable
 * bind; put into `all` at their places. */
int kn_policy_pins(struct kn_pol *p, struct kn_mount_list *all,
    const struct kn_mount_list *masks, struct kn_err *e);

#endif
