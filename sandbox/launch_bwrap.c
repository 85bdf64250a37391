/* sandbox/launch_bwrap.c: the kind `bwrap`: bubblewrap makes the namespaces and the
 * root, and becomes the stub as their PID 1. Its arguments are sandbox/bwrap.h's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ipc/err.h"
#include "sandbox/lack.h"
#include "sandbox/launch_int.h"

static int
find(struct kn_launcher *l, struct kn_err *e)
{
	if (l->host->bwrap[0] == '\0')
		return kn_host_find_bwrap(l->program, sizeof(l->program), e);
	snprintf(l->program, sizeof(l->program), "%s", l->host->bwrap);
	return 0;
}

static int
plan_data(struct kn_launcher *l, struct kn_err *e)
{
	size_t n = l->policy->fs.mount_n;

	l->data = calloc(n + 1, sizeof(l->data[0]));
	if (l->data == NULL)
		return kn_err_sys(e, KN_EK_HOST, "allocate the table of files");
	for (size_t i = 0; i < n; i++) {
		const struct kn_mount *m = &l->policy->fs.mounts[i];

		if (m->type == KN_MOUNT_DATA)
			l->data[l->data_n++] =
			    (struct kn_child_data){ .path = m->data ? NULL : m->source,
				    .p = m->data,
				    .n = m->data_n };
		else if (m->type == KN_MOUNT_MASK && !m->dir)
			l->data[l->data_n++] = (struct kn_child_data){ .p = "" };
	}
	return 0;
}

/* What bwrap is told for each mount: a path, or the number that a file by content has
 * in the child. numbers: room for one text per mount. */
static void
fill_sources(const struct kn_launcher *l, const char **source, char (*numbers)[16])
{
	size_t child = 0;
	int data = KN_CHILD_DATA_FD;

	for (size_t i = 0; i < l->policy->fs.mount_n; i++) {
		const struct kn_bind *b = &l->binds[i];

		if (b->mount->type == KN_MOUNT_DATA ||
		    (b->mount->type == KN_MOUNT_MASK && !b->mount->dir)) {
			snprintf(numbers[i], sizeof(numbers[i]), "%d", data++);
			source[i] = numbers[i];
		} else if (b->mount->type == KN_MOUNT_BIND && !b->missing) {
			source[i] = l->child_binds != NULL && b->fd >= 0
					? l->child_paths[child++]
					: b->path;
		}
	}
}

static int
prepare(struct kn_launcher *l, struct kn_err *e)
{
	size_t n = l->policy->fs.mount_n, blob_n = 0;
	char(*numbers)[16] = calloc(n + 1, sizeof(*numbers));
	const char **source = calloc(n + 1, sizeof(*source));
	struct kn_bwrap_req r = { .bwrap = l->program,
		.policy = l->policy,
		.source = source,
		.stub = "/proc/self/fd/4" };
	char *blob = NULL;
	int rc = -1;

	_Static_assert(KN_STUB_EXE_FD == 4, "the path above");
	if (source == NULL || numbers == NULL) {
		free(source);
		free(numbers);
		return kn_err_sys(e, KN_EK_HOST, "build bwrap's arguments");
	}
	fill_sources(l, source, numbers);
	if (plan_data(l, e) == 0 && kn_bwrap_argv(&r, &l->argv, e) == 0 &&
	    kn_bwrap_pack(&l->argv, KN_CHILD_ARGS_FD, &l->packed, &blob, &blob_n, e) ==
		0)
		rc = 0;
	free(source);
	free(numbers);
	if (blob != NULL) {
		l->args_fd = kn_fd_sealed("knit-args", blob, blob_n, 0, e);
		rc = l->args_fd >= 0 ? 0 : -1;
		free(blob);
	}
	return rc;
}

static const struct kn_launch_sign signs[] = {
	/* Told before what was being done when the limit was met. */
	{ "Resource temporarily unavailable", true, false, KN_LACK_PROCESSES },
	{ "No space left on device", true, false, KN_LACK_NS_LIMIT },
	/* (with or without an article: it changed from version to version) */
	{ "No permissions to creat", true, true, KN_LACK_USERNS_OTHER },
	{ "reating new namespace failed", true, true, KN_LACK_USERNS_OTHER },
	{ "setting up uid map", true, true, KN_LACK_USERNS_OTHER },
	{ "setting up gid map", true, true, KN_LACK_USERNS_OTHER },
	{ "max_user_namespaces", true, true, KN_LACK_USERNS_OTHER },
	{ "unshare", true, true, KN_LACK_USERNS_OTHER },
	{ "Can't set hostname", true, true, KN_LACK_USERNS_OTHER },
	{ "Can't mount proc", true, false, KN_LACK_PROC_MASKED },
	{ "loopback:", true, false, KN_LACK_LOOPBACK },
	{ "Failed to make / slave", true, false, KN_LACK_MOUNT },
	{ "pivot_root", true, false, KN_LACK_PIVOT_ROOT },
	{ "in setuid mode", true, false, KN_LACK_BWRAP_SETUID },
	{ "Can't find source path", false, false, KN_LACK_NONE },
	{ "nknown option", true, false, KN_LACK_BWRAP_OLD },
	{ "/proc/self/fd/4", true, false, KN_LACK_MEMFD },
};

/* Nothing known went wrong. With its set-user-id bit bwrap fails in ways of its own;
 * or it is no bubblewrap at all. */
static void
hint(const struct kn_launcher *l, struct kn_err *e)
{
	const char *named = getenv("KNIT_BWRAP");
	struct stat st;

	if (stat(l->program, &st) == 0 && (st.st_mode & S_ISUID) != 0)
		kn_lack_hint(KN_LACK_BWRAP_SETUID, l->host->uid == 0, e);
	else if (named != NULL && *named != '\0')
		kn_lack_hint(KN_LACK_BWRAP_NAMED, l->host->uid == 0, e);
}

const struct kn_launch_ops kn_launch_bwrap = {
	.name = "bwrap",
	.find = find,
	.prepare = prepare,
	.lead = { "bwrap: " },
	.signs = signs,
	.sign_n = sizeof(signs) / sizeof(signs[0]),
	.hint = hint,
	/* bwrap outside, the stub, and the running cell's init */
	.pids_overhead = 3,
	.mem_overhead = 2ull << 20,
};
