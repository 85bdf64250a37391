/* sandbox/launch_boot.c: the boot record of one worker, and sending it.
 *
 * Sent after the launch, so that the filter can be compiled while bwrap starts: the
 * stub waits for it before it does anything else.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/control.h"
#include "ipc/err.h"
#include "sandbox/filter.h"
#include "sandbox/launch_int.h"

/* What a task may hand back as files; the result line is built in memory. */
enum { FILES_N = 1000 };

static uint32_t
boot_flags(const struct kn_launcher *l, const struct kn_filter *f)
{
	uint32_t flags = 0;

	/* Whatever this kernel has of it, also where that is not all. */
	if (l->policy->landlock != KN_LANDLOCK_OFF)
		flags |= KN_BOOT_LANDLOCK;
	if (l->layers.state[KN_LAYER_MSEAL] == KN_LAYER_ENFORCED)
		flags |= KN_BOOT_NEED_MSEAL;
	if (f->tells)
		flags |= KN_BOOT_TELL;
	if (l->policy->pool.ipc == KN_IPC_TASK)
		flags |= KN_BOOT_NEW_IPC;
	if (l->policy->network == KN_NET_ALLOW)
		flags |= KN_BOOT_EGRESS;
	return flags;
}

/* The caller's binds and masks, for the stub to verify and for Landlock. */
static uint32_t
fill_binds(const struct kn_launcher *l, struct kn_boot_bind *out)
{
	uint32_t n = 0;

	for (size_t i = 0; i < l->policy->fs.mount_n; i++) {
		const struct kn_bind *b = &l->binds[i];

		enum kn_mount_type type = b->mount->type;

		if (type == KN_MOUNT_LINK || type == KN_MOUNT_MASK ||
		    type == KN_MOUNT_WHITE)
			out[n++] = (struct kn_boot_bind){ .at = b->mount->at,
				.dev = b->dev,
				.ino = b->ino,
				.check = type == KN_MOUNT_LINK,
				.white = type == KN_MOUNT_WHITE,
				.link = type == KN_MOUNT_LINK,
				.mask = type == KN_MOUNT_MASK };
		if (b->fd < 0)
			continue;
		out[n++] = (struct kn_boot_bind){ .at = b->mount->at,
			.dev = b->dev,
			.ino = b->ino,
			.writable = b->mount->writable && !b->mount->pin,
			.check = !b->shadowed,
			.overlay_bytes = b->mount->overlay ? b->mount->bytes : 0,
			.overlay_inodes = b->mount->overlay ? b->mount->inodes : 0,
			.out = b->out_fd >= 0 };
	}
	return n;
}

static int
send_boot(const struct kn_boot *b, int fds[KN_BOOT_FD_N], int sock, struct kn_err *e)
{
	struct kn_msg m = { .type = KN_MSG_BOOT };
	int list[KN_BOOT_FD_N], n = 0;

	if (kn_boot_seal(b, &fds[KN_BOOT_FD_RECORD], e) < 0)
		return -1;
	for (int i = 0; i < KN_BOOT_FD_N; i++)
		if (fds[i] >= 0)
			list[n++] = fds[i];
	if (kn_fd_send(sock, &m, sizeof(m), list, n, 1) < 0)
		return kn_err_sys(e, KN_EK_LAUNCH, "send the boot record");
	return 0;
}

/* Texts with their NULs; *out is malloc'ed. */
static int
pack_run(const struct kn_policy *p, const char **out, size_t *out_n, struct kn_err *e)
{
	char *text = NULL;
	FILE *f;

	if (p->run.n == 0)
		return 0;
	f = open_memstream(&text, out_n);
	if (f == NULL)
		return kn_err_sys(e, KN_EK_HOST, "allocate the boot record");
	fwrite(p->run.path, strlen(p->run.path) + 1, 1, f);
	for (size_t i = 0; i < p->run.n; i++)
		fwrite(p->run.v[i], strlen(p->run.v[i]) + 1, 1, f);
	if (fclose(f) == 0) { /* which is when text is there */
		*out = text;
		return 0;
	}
	free(text);
	return kn_err_sys(e, KN_EK_HOST, "allocate the boot record");
}

int
kn_launch_boot(struct kn_launcher *l, uint32_t w, uint32_t incarnation,
    const struct kn_filter *f, int arena_fd, const struct kn_launched *lw,
    struct kn_err *e)
{
	const struct kn_policy *p = l->policy;
	struct kn_boot b = {
		.worker = w,
		.incarnation = incarnation,
		.layout = l->layout,
		.flags = boot_flags(l, f),
		.worker_n = l->worker_n,
		.pids_overhead = l->ops->pids_overhead,
		.mem_overhead = l->ops->mem_overhead,
		.worker_mem = p->worker.memory,
		.tmp_bytes = p->fs.tmp_bytes,
		.tmp_inodes = p->fs.tmp_inodes,
		.shm_bytes = p->fs.shm_bytes,
		.shm_inodes = p->fs.shm_inodes,
		.task_bytes = p->fs.task_bytes,
		.task_inodes = p->fs.task_inodes,
		.landlock_abi = l->host->landlock_abi,
		.exec_key = f->exec_key,
		.collect_file_max = KN_FILE_BYTES_MAX,
		.collect_total_max = KN_FILES_BYTES_MAX,
		.collect_count_max = FILES_N,
		.worker_bpf = f->worker_bpf,
		.worker_bpf_n = f->worker_n,
		.cell_bpf = f->cell_bpf,
		.cell_bpf_n = f->cell_n,
	};
	int fds[KN_BOOT_FD_N], rc = -1;

	for (int i = 0; i < KN_BOOT_FD_N; i++)
		fds[i] = -1;
	memcpy(b.pool_id, l->pool_id, sizeof(b.pool_id));
	b.binds = calloc(p->fs.mount_n + 1, sizeof(b.binds[0]));
	if (b.binds == NULL)
		kn_err_sys(e, KN_EK_HOST, "allocate the boot record");
	if (b.binds != NULL && pack_run(p, &b.run, &b.run_n, e) == 0 &&
	    kn_cgroup_boot_fds(l->cgroup, w, fds, &b.has, &b.flags, e) == 0 &&
	    (l->ops->boot == NULL || l->ops->boot(l, w, &b, fds, e) == 0)) {
		b.bind_n =
		    l->ops->binds ? l->ops->binds(l, b.binds) : fill_binds(l, b.binds);
		b.has |= 1u << KN_BOOT_FD_RECORD | 1u << KN_BOOT_FD_ARENA |
			 1u << KN_BOOT_FD_BELL;
		fds[KN_BOOT_FD_ARENA] = arena_fd;
		fds[KN_BOOT_FD_BELL] = lw->bell_fd;
		rc = send_boot(&b, fds, lw->sock, e);
		fds[KN_BOOT_FD_ARENA] = fds[KN_BOOT_FD_BELL] = -1; /* borrowed */
	}
	for (int i = 0; i < KN_BOOT_FD_N; i++)
		kn_fd_close(&fds[i]);
	free(b.binds);
	free((void *)(uintptr_t)b.run);
	/* Also after one that failed: an engine that refuses has what a dead one left.
	 */
	if (!l->swept) {
		l->swept = true;
		kn_cgroup_sweep();
		if (l->ops->sweep != NULL)
			l->ops->sweep(l);
	}
	return rc;
}
