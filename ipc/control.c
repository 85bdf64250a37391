/* ipc/control.c: the boot record, the check of messages, the stop and begun words. */
#include "ipc/control.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/blob.h"
#include "ipc/err.h"
#include "ipc/fd.h"
#include "ipc/shm.h"

enum {
	RECORD_VERSION = 3,
	BPF_MAX = 4096,	   /* BPF_MAXINSNS: the kernel takes no more */
	BPF_INSN = 8,	   /* sizeof(struct sock_filter) */
	BIND_MIN = 5 + 56, /* a bind's least size in the record */
	BEGUN_TRIES = 8,
	ALL_FLAGS = KN_BOOT_DIRECT | KN_BOOT_NO_TCP | KN_BOOT_OWN_UID |
		    KN_BOOT_CGROUP_V2_MEM | KN_BOOT_CGROUP_V2_CPU | KN_BOOT_LANDLOCK |
		    KN_BOOT_NEW_IPC | KN_BOOT_NEED_MSEAL | KN_BOOT_EGRESS |
		    KN_BOOT_TELL | KN_BOOT_NEST | KN_BOOT_SWAP,
};

const char *
kn_boot_step_name(enum kn_boot_step s)
{
	static const char *const names[] = {
		[KN_BSTEP_RECV] = "receive the boot record",
		[KN_BSTEP_RECORD] = "read the boot record",
		[KN_BSTEP_MAP] = "map the slice",
		[KN_BSTEP_SEAL] = "seal the mapping",
		[KN_BSTEP_BINDS] = "check the binds",
		[KN_BSTEP_UNSHARE] = "make the template mount namespace",
		[KN_BSTEP_PRIVATE] = "make the mounts private",
		[KN_BSTEP_TERMINALS] = "write-protect the folder of terminals",
		[KN_BSTEP_OVERLAY] =
		    "put a layer of a task's own (overlayfs) upon a directory",
		[KN_BSTEP_CAPS] = "drop capabilities",
		[KN_BSTEP_CAPS_LEFT] = "verify that capabilities are gone",
		[KN_BSTEP_NNP] = "set no_new_privs",
		[KN_BSTEP_LANDLOCK] = "apply Landlock",
		[KN_BSTEP_FILTER] = "load the seccomp filter",
		[KN_BSTEP_RLIMIT] = "set resource limits",
		[KN_BSTEP_RUN] = "find the programs of /permissions/run",
		[KN_BSTEP_EGRESS] = "make the socket that leads out",
		[KN_BSTEP_JOIN] = "join the worker's cgroup",
		[KN_BSTEP_NEST] = "make a user namespace in the container",
		[KN_BSTEP_WHO] = "verify whom the runtime started",
		[KN_BSTEP_FETCH] = "be handed the worker's socket",
	};
	_Static_assert(sizeof names / sizeof names[0] == KN_BSTEP_N, "a name a step");

	return (unsigned)s < KN_BSTEP_N && names[s] ? names[s] : "unknown step";
}

/* ---- boot record ---- */

static void
put_boot(struct kn_blob_w *w, const struct kn_boot *b)
{
	kn_blob_u32(w, RECORD_VERSION);
	kn_blob_u32(w, b->worker);
	kn_blob_u32(w, b->incarnation);
	kn_blob_bytes(w, b->pool_id, sizeof b->pool_id);
	kn_layout_put(w, &b->layout);
	kn_blob_u32(w, b->flags);
	kn_blob_u32(w, b->has);
	kn_blob_u32(w, b->worker_n);
	kn_blob_u32(w, b->pids_overhead);
	kn_blob_u64(w, b->mem_overhead);
	kn_blob_u64(w, b->worker_mem);
	kn_blob_u64(w, b->tmp_bytes);
	kn_blob_u64(w, b->tmp_inodes);
	kn_blob_u64(w, b->shm_bytes);
	kn_blob_u64(w, b->shm_inodes);
	kn_blob_u64(w, b->task_bytes);
	kn_blob_u64(w, b->task_inodes);
	kn_blob_u32(w, b->landlock_abi);
	kn_blob_u64(w, b->collect_file_max);
	kn_blob_u64(w, b->collect_total_max);
	kn_blob_u64(w, b->collect_count_max);
	kn_blob_u32(w, b->bind_n);
	for (uint32_t i = 0; i < b->bind_n; i++) {
		kn_blob_str(w, b->binds[i].at);
		kn_blob_u64(w, b->binds[i].dev);
		kn_blob_u64(w, b->binds[i].ino);
		kn_blob_u32(w, b->binds[i].writable);
		kn_blob_u32(w, b->binds[i].check);
		kn_blob_u64(w, b->binds[i].overlay_bytes);
		kn_blob_u64(w, b->binds[i].overlay_inodes);
		kn_blob_u32(w, b->binds[i].white);
		kn_blob_u32(w, b->binds[i].link);
		kn_blob_u32(w, b->binds[i].mask);
		kn_blob_u32(w, b->binds[i].out);
	}
	kn_blob_bytes(w, b->run, b->run_n);
	kn_blob_u64(w, b->exec_key);
	kn_blob_bytes(w, b->worker_bpf, (size_t)b->worker_bpf_n * BPF_INSN);
	kn_blob_bytes(w, b->cell_bpf, (size_t)b->cell_bpf_n * BPF_INSN);
}

int
kn_boot_seal(const struct kn_boot *b, int *out_fd, struct kn_err *e)
{
	struct kn_blob_w w = { NULL, 0, 0 };
	void *buf;
	int fd;

	put_boot(&w, b); /* measures */
	buf = malloc(w.n);
	if (!buf)
		return kn_err_sys(e, KN_EK_HOST, "memory for a boot record");
	w = (struct kn_blob_w){ buf, w.n, 0 };
	put_boot(&w, b);
	fd = kn_fd_sealed("knit-boot", buf, w.n, 0, e);
	free(buf);
	if (fd < 0)
		return kn_err_wrap(e, "boot record");
	*out_fd = fd;
	return 0;
}

static bool
get_bool(struct kn_blob_r *r)
{
	uint32_t v = kn_blob_get_u32(r);

	if (v > 1)
		r->bad = true;
	return v == 1;
}

static uint32_t
get_binds(struct kn_blob_r *r, struct kn_boot_bind *binds, uint32_t max)
{
	uint32_t n = kn_blob_get_count(r, BIND_MIN);

	if (n > max) {
		r->bad = true;
		return 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		binds[i].at = kn_blob_get_str(r);
		binds[i].dev = kn_blob_get_u64(r);
		binds[i].ino = kn_blob_get_u64(r);
		binds[i].writable = get_bool(r);
		binds[i].check = get_bool(r);
		binds[i].overlay_bytes = kn_blob_get_u64(r);
		binds[i].overlay_inodes = kn_blob_get_u64(r);
		binds[i].white = get_bool(r);
		binds[i].link = get_bool(r);
		binds[i].mask = get_bool(r);
		binds[i].out = get_bool(r);
		if (binds[i].at[0] != '/')
			r->bad = true;
	}
	return n;
}

static const void *
get_bpf(struct kn_blob_r *r, uint32_t *out_n)
{
	size_t n;
	const void *p = kn_blob_get_bytes(r, &n);

	if (n % BPF_INSN || n / BPF_INSN > BPF_MAX)
		r->bad = true;
	*out_n = (uint32_t)(n / BPF_INSN);
	return p;
}

int
kn_boot_decode(const void *buf, size_t n, struct kn_boot *out,
    struct kn_boot_bind *binds, uint32_t bind_max)
{
	struct kn_blob_r r = { buf, n, 0, false };
	struct kn_boot b;
	const void *id;
	size_t id_n;

	memset(&b, 0, sizeof b);
	if (kn_blob_get_u32(&r) != RECORD_VERSION)
		return -1;
	b.worker = kn_blob_get_u32(&r);
	b.incarnation = kn_blob_get_u32(&r);
	id = kn_blob_get_bytes(&r, &id_n);
	if (id_n != sizeof b.pool_id)
		return -1;
	memcpy(b.pool_id, id, sizeof b.pool_id);
	if (kn_layout_get(&r, &b.layout) < 0)
		return -1;
	b.flags = kn_blob_get_u32(&r);
	b.has = kn_blob_get_u32(&r);
	b.worker_n = kn_blob_get_u32(&r);
	b.pids_overhead = kn_blob_get_u32(&r);
	b.mem_overhead = kn_blob_get_u64(&r);
	b.worker_mem = kn_blob_get_u64(&r);
	b.tmp_bytes = kn_blob_get_u64(&r);
	b.tmp_inodes = kn_blob_get_u64(&r);
	b.shm_bytes = kn_blob_get_u64(&r);
	b.shm_inodes = kn_blob_get_u64(&r);
	b.task_bytes = kn_blob_get_u64(&r);
	b.task_inodes = kn_blob_get_u64(&r);
	b.landlock_abi = kn_blob_get_u32(&r);
	b.collect_file_max = kn_blob_get_u64(&r);
	b.collect_total_max = kn_blob_get_u64(&r);
	b.collect_count_max = kn_blob_get_u64(&r);
	b.binds = binds;
	b.bind_n = get_binds(&r, binds, bind_max);
	b.run = kn_blob_get_bytes(&r, &b.run_n);
	if (b.run_n > 0 && b.run[b.run_n - 1] != '\0')
		return -1;
	b.exec_key = kn_blob_get_u64(&r);
	b.worker_bpf = get_bpf(&r, &b.worker_bpf_n);
	b.cell_bpf = get_bpf(&r, &b.cell_bpf_n);
	if (!kn_blob_done(&r) || b.worker >= b.layout.worker_n || b.worker_n < 1 ||
	    b.worker_n > KN_WORKERS_MAX || (b.flags & ~(uint32_t)ALL_FLAGS) ||
	    b.has >> KN_BOOT_FD_N)
		return -1;
	*out = b;
	return 0;
}

/* ---- messages ---- */

const uint8_t *
kn_msg_check(const void *p, size_t n, uint32_t allowed, struct kn_msg *out)
{
	const uint8_t *bytes = p;
	struct kn_msg m;

	if (n < sizeof m)
		return NULL;
	memcpy(&m, p, sizeof m);
	if (m.type >= KN_MSG_N || !(allowed >> m.type & 1))
		return NULL;
	if (m.bytes > KN_MSG_BODY_MAX || m.bytes != n - sizeof m)
		return NULL;
	*out = m;
	return bytes + sizeof m;
}

/* ---- stop and begun words ---- */

void
kn_control_stop(struct kn_control *c)
{
	kn_shm_store32_release(&c->stop, KN_STOP_REQUESTED); /* S1 */
}

bool
kn_control_stopping(struct kn_control *c)
{
	return kn_shm_load32_acquire(&c->stop) == KN_STOP_REQUESTED; /* S2 */
}

void
kn_control_ack_stop(struct kn_control *c)
{
	kn_shm_store32_release(&c->stop_ack, 1); /* S3 */
}

bool
kn_control_stop_acked(struct kn_control *c)
{
	return kn_shm_load32_acquire(&c->stop_ack) == 1; /* S4 */
}

void
kn_control_begin(struct kn_control *c, uint32_t task, uint32_t gen, uint64_t now_ns)
{
	/* begun is 0 here (kn_control_end). Whoever sees this time also sees that 0:
	 * the time of one task is never read as that of the one before. */
	kn_shm_store64_release(&c->begun_ns, now_ns);		       /* G1 */
	kn_shm_store64_release(&c->begun, (uint64_t)task << 32 | gen); /* G1 */
}

void
kn_control_end(struct kn_control *c)
{
	kn_shm_store64_release(&c->begun, 0); /* G1 */
}

void
kn_control_over(struct kn_control *c, uint32_t task, uint32_t gen)
{
	kn_shm_store64_release(&c->over, (uint64_t)task << 32 | gen); /* O1 */
}

bool
kn_control_is_over(const struct kn_control *c, uint32_t task, uint32_t gen)
{
	return gen != 0 &&
	       kn_shm_load64_acquire(&c->over) == ((uint64_t)task << 32 | gen); /* O2 */
}

bool
kn_control_begun(
    struct kn_control *c, uint32_t *out_task, uint32_t *out_gen, uint64_t *out_begun_ns)
{
	for (int i = 0; i < BEGUN_TRIES; i++) {
		uint64_t begun = kn_shm_load64_acquire(&c->begun); /* G2 */
		uint64_t ns = kn_shm_load64_acquire(&c->begun_ns); /* G2 */

		if ((uint32_t)begun == 0)
			return false; /* idle: a gen is never 0 */
		if (kn_shm_load64_acquire(&c->begun) != begun) /* G2 */
			continue;
		*out_task = (uint32_t)(begun >> 32);
		*out_gen = (uint32_t)begun;
		*out_begun_ns = ns;
		return true;
	}
	return false; /* changed at each look: a scribbler, or tasks of no length */
}
