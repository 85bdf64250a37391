/* ipc/arena.c: the memfd behind all shared memory. */
#include "ipc/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/region.h"

/* Newer than the C libraries we build with. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#if defined(__x86_64__) || defined(__aarch64__)
#define NR_MSEAL 462
#endif

static const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/* Control page and both lanes: touched by every task, so backed from the start. */
static uint64_t
hot_bytes(const struct kn_layout *l)
{
	return l->submit_area_off;
}

static int
make_memfd(struct kn_err *e)
{
	int fd = memfd_create(
	    "knit-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	/* Before Linux 6.3 the last flag is unknown. Only that one is given up. */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("knit-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		kn_err_sys(e, KN_EK_HOST, "create the arena");
	return fd;
}

static int
check_seals(int fd, struct kn_err *e)
{
	int got = fcntl(fd, F_GET_SEALS);

	if (got < 0)
		return kn_err_sys(e, KN_EK_HOST, "read the arena's seals");
	if ((got & seals) != seals)
		return kn_err_set(e, KN_EK_HOST,
		    "the arena's size is not sealed (seals %#x)", (unsigned)got);
	return 0;
}

/* Give the pages that every task touches a backing now, where lack of memory is an
 * error to report and not a signal at the first touch. */
static int
back_hot_pages(int fd, const struct kn_layout *l, struct kn_err *e)
{
	if (fallocate(fd, 0, 0, KN_PAGE) < 0)
		return kn_err_sys(e, KN_EK_HOST, "reserve the arena's header");
	for (uint32_t w = 0; w < l->worker_n; w++)
		if (fallocate(fd, 0, (off_t)kn_layout_slice_off(l, w),
			(off_t)hot_bytes(l)) < 0)
			return kn_err_sys(
			    e, KN_EK_HOST, "reserve the lanes of worker %u", w);
	for (uint32_t b = 0; b < l->bank_n; b++)
		if (fallocate(fd, 0, (off_t)kn_layout_bank_off(l, b),
			(off_t)kn_layout_bank_area_off(l)) < 0)
			return kn_err_sys(e, KN_EK_HOST, "reserve submit bank %u", b);
	return 0;
}

static int
size_and_seal(int fd, const struct kn_layout *l, struct kn_err *e)
{
	if (ftruncate(fd, (off_t)l->arena_bytes) < 0)
		return kn_err_sys(e, KN_EK_HOST, "size the arena to %llu bytes",
		    (unsigned long long)l->arena_bytes);
	if (back_hot_pages(fd, l, e) < 0)
		return -1;
	if (fcntl(fd, F_ADD_SEALS, seals) < 0)
		return kn_err_sys(e, KN_EK_HOST, "seal the arena");
	return check_seals(fd, e);
}

static void
fill_head(
    const struct kn_layout *l, const uint8_t pool_id[16], struct kn_arena_head *out)
{
	memset(out, 0, sizeof *out);
	out->magic = KN_ARENA_MAGIC;
	out->version = KN_LAYOUT_VERSION;
	out->worker_n = l->worker_n;
	out->arena_bytes = l->arena_bytes;
	out->slice_bytes = l->slice_bytes;
	out->submit_area_bytes = l->submit_area_bytes;
	out->return_area_bytes = l->return_area_bytes;
	memcpy(out->pool_id, pool_id, sizeof out->pool_id);
	out->region_bytes = l->region_bytes;
}

int
kn_arena_open(struct kn_arena *a, const struct kn_layout *l, const uint8_t pool_id[16],
    struct kn_err *e)
{
	KN_OWN_FD int fd = -1;
	struct kn_arena_head head;
	void *p;

	if (sysconf(_SC_PAGESIZE) > KN_PAGE)
		return kn_err_set(e, KN_EK_HOST,
		    "pages of %ld bytes are not supported (the arena needs %d)",
		    sysconf(_SC_PAGESIZE), KN_PAGE);
	fd = make_memfd(e);
	if (fd < 0 || size_and_seal(fd, l, e) < 0)
		return -1;
	p = mmap(
	    NULL, (size_t)l->arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return kn_err_sys(e, KN_EK_HOST, "map the arena (%llu bytes)",
		    (unsigned long long)l->arena_bytes);
	/* Launching children must not see it, nor should a core dump hold tasks' data.
	 * Neither is a wall, so neither is checked. */
	madvise(p, (size_t)l->arena_bytes, MADV_DONTFORK);
	madvise(p, (size_t)l->arena_bytes, MADV_DONTDUMP);
	fill_head(l, pool_id, &head);
	memcpy(p, &head, sizeof head); /* exclusive: no worker exists yet */
	a->fd = kn_fd_take(&fd);
	a->map = (struct kn_map){ p, (size_t)l->arena_bytes };
	a->layout = *l;
	memcpy(a->pool_id, pool_id, sizeof a->pool_id);
	return 0;
}

void
kn_arena_close(struct kn_arena *a)
{
	kn_map_close(&a->map);
	kn_fd_close(&a->fd);
}

void
kn_slice_at(void *base, const struct kn_layout *l, struct kn_slice *out)
{
	uint8_t *p = base;

	out->control = (void *)p;
	out->submit_slots = (void *)(p + l->submit_slots_off);
	out->return_slots = (void *)(p + l->return_slots_off);
	out->submit_area = p + l->submit_area_off;
	out->return_area = p + l->return_area_off;
	out->submit_area_bytes = l->submit_area_bytes;
	out->return_area_bytes = l->return_area_bytes;
}

void
kn_arena_slice(const struct kn_arena *a, uint32_t w, struct kn_slice *out)
{
	uint8_t *p = a->map.p;

	kn_slice_at(p + kn_layout_slice_off(&a->layout, w), &a->layout, out);
}

int
kn_arena_empty_areas(struct kn_arena *a, uint32_t w, struct kn_err *e)
{
	const struct kn_layout *l = &a->layout;
	uint64_t off = kn_layout_slice_off(l, w), hot = hot_bytes(l);

	if (w < l->worker_n && l->slice_bytes > hot &&
	    fallocate(a->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		(off_t)(off + hot), (off_t)(l->slice_bytes - hot)) < 0)
		return kn_err_sys(
		    e, KN_EK_HOST, "empty the payload areas of slice %u", w);
	return 0;
}

int
kn_arena_reset_slice(struct kn_arena *a, uint32_t w, struct kn_err *e)
{
	const struct kn_layout *l = &a->layout;
	uint64_t off = kn_layout_slice_off(l, w), hot = hot_bytes(l);
	uint8_t *p = a->map.p;

	if (w >= l->worker_n)
		return kn_err_set(
		    e, KN_EK_BUG, "reset of slice %u of %u", w, l->worker_n);
	/* Plain access: exclusive, as the caller promises that no worker maps it. */
	memset(p + off, 0, (size_t)hot);
	return kn_arena_empty_areas(a, w, e);
}

static int
back(struct kn_arena *a, uint64_t off, uint64_t n, struct kn_err *e)
{
	if (fallocate(a->fd, 0, (off_t)off, (off_t)n) < 0)
		return kn_err_sys(e, KN_EK_HOST, "memory for a payload of %llu bytes",
		    (unsigned long long)n);
	return 0;
}

int
kn_arena_back_bank(
    struct kn_arena *a, uint32_t bank, uint64_t off, uint64_t n, struct kn_err *e)
{
	const struct kn_layout *l = &a->layout;

	if (bank >= l->bank_n || off > l->bank_area_bytes || n == 0 ||
	    n > l->bank_area_bytes - off)
		return kn_err_set(e, KN_EK_BUG, "payload outside of bank %u", bank);
	return back(
	    a, off + kn_layout_bank_off(l, bank) + kn_layout_bank_area_off(l), n, e);
}

void
kn_arena_bank(const struct kn_arena *a, uint32_t bank, struct kn_bank *out)
{
	uint8_t *p = a->map.p;

	kn_bank_at(p + kn_layout_bank_off(&a->layout, bank), &a->layout, bank, out);
}

int
kn_arena_readonly(const struct kn_arena *a, int *out_fd, struct kn_err *e)
{
	char path[32];
	int fd;

	snprintf(path, sizeof path, "/proc/self/fd/%d", a->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "open the arena read-only");
	*out_fd = fd;
	return 0;
}

int
kn_arena_back_submit(
    struct kn_arena *a, uint32_t w, uint64_t off, uint64_t n, struct kn_err *e)
{
	const struct kn_layout *l = &a->layout;

	if (w >= l->worker_n || off > l->submit_area_bytes || n == 0 ||
	    n > l->submit_area_bytes - off)
		return kn_err_set(e, KN_EK_BUG, "payload outside of slice %u", w);
	return back(a, off + kn_layout_slice_off(l, w) + l->submit_area_off, n, e);
}

/* ---- stub side ---- */

static int
check_arena(
    int fd, const struct kn_layout *l, const uint8_t pool_id[16], struct kn_err *e)
{
	struct kn_arena_head want, got;
	struct stat st;

	if (check_seals(fd, e) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return kn_err_sys(e, KN_EK_HOST, "stat the arena");
	if (st.st_size < 0 || (uint64_t)st.st_size != l->arena_bytes)
		return kn_err_set(e, KN_EK_PROTOCOL,
		    "the arena has %lld bytes, the boot record says %llu",
		    (long long)st.st_size, (unsigned long long)l->arena_bytes);
	if (pread(fd, &got, sizeof got, 0) != (ssize_t)sizeof got)
		return kn_err_sys(e, KN_EK_HOST, "read the arena's header");
	fill_head(l, pool_id, &want);
	if (memcmp(&got, &want, sizeof want) != 0)
		return kn_err_set(
		    e, KN_EK_PROTOCOL, "the arena's header is not the boot record's");
	return 0;
}

/* 1: sealed, 0: this kernel (or a filter around us) has no mseal, -1: errno. What a
 * sealed mapping refuses is tried, without changing anything. */
static int
seal_mapping(void *p, size_t n)
{
#ifdef NR_MSEAL
	if (syscall(NR_MSEAL, p, n, 0ul) == 0)
		return mprotect(p, n, PROT_READ | PROT_WRITE) < 0;
	return errno == ENOSYS || errno == EPERM ? 0 : -1;
#else
	(void)p;
	(void)n;
	return 0;
#endif
}

int
kn_arena_map_slice(int fd, const struct kn_layout *l, const uint8_t pool_id[16],
    uint32_t w, struct kn_map *out, int *out_sealed, struct kn_err *e)
{
	struct kn_map m = { NULL, (size_t)l->slice_bytes };
	int sealed;

	if (w >= l->worker_n)
		return kn_err_set(e, KN_EK_PROTOCOL, "slice %u of %u", w, l->worker_n);
	if (check_arena(fd, l, pool_id, e) < 0)
		return -1;
	m.p = mmap(NULL, m.n, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
	    (off_t)kn_layout_slice_off(l, w));
	if (m.p == MAP_FAILED)
		return kn_err_sys(e, KN_EK_HOST, "map slice %u", w);
	/* A cell is a child of the stub: DONTFORK is what keeps the slice out of it, so
	 * here a failure counts. */
	if (madvise(m.p, m.n, MADV_DONTFORK) < 0 ||
	    madvise(m.p, m.n, MADV_DONTDUMP) < 0) {
		kn_err_sys(e, KN_EK_HOST, "keep slice %u out of children", w);
		kn_map_close(&m);
		return -1;
	}
	/* Only saves the first task its page faults: older kernels do without. */
	madvise(m.p, (size_t)hot_bytes(l), MADV_POPULATE_WRITE);
	sealed = seal_mapping(m.p, m.n);
	if (sealed < 0) {
		kn_err_sys(e, KN_EK_HOST, "mseal slice %u", w);
		kn_map_close(&m);
		return -1;
	}
	*out = m;
	*out_sealed = sealed;
	return 0;
}

/* Where a claimant may write: over the read-only mapping of its bank, from the
 * descriptor that allows it. */
static int
map_writable(uint8_t *bank, uint64_t off, int fd, const struct kn_layout *l, uint32_t w,
    struct kn_err *e)
{
	uint64_t at = kn_layout_bank_off(l, w / l->bank_claimants) + off;

	if (mmap(bank + off, KN_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		fd, (off_t)at) == MAP_FAILED)
		return kn_err_sys(e, KN_EK_HOST, "map the words of claimant %u", w);
	return 0;
}

/* What the wall rests on is asked, not assumed. */
static int
check_readonly(int ro_fd, void *bank, struct kn_err *e)
{
	int flags = fcntl(ro_fd, F_GETFL);

	if (flags < 0)
		return kn_err_sys(e, KN_EK_HOST, "ask how the arena is open");
	if ((flags & O_ACCMODE) != O_RDONLY ||
	    mprotect(bank, KN_PAGE, PROT_READ | PROT_WRITE) == 0)
		return kn_err_set(
		    e, KN_EK_PROTOCOL, "the submit region could be made writable");
	return 0;
}

static int
lay_out_bank(uint8_t *p, int fd, int ro_fd, const struct kn_layout *l, uint32_t w,
    bool cas_mask, struct kn_err *e)
{
	uint64_t own = KN_BANK_OWN_OFF + (uint64_t)(w % l->bank_claimants) * KN_PAGE;

	if (check_readonly(ro_fd, p, e) < 0 || map_writable(p, own, fd, l, w, e) < 0)
		return -1;
	if (cas_mask && map_writable(p, KN_BANK_OWNERS_OFF, fd, l, w, e) < 0)
		return -1;
	if (madvise(p, (size_t)l->bank_bytes, MADV_DONTFORK) < 0 ||
	    madvise(p, (size_t)l->bank_bytes, MADV_DONTDUMP) < 0)
		return kn_err_sys(
		    e, KN_EK_HOST, "keep the submit region out of children");
	return 0;
}

int
kn_arena_map_bank(int fd, int ro_fd, const struct kn_layout *l,
    const uint8_t pool_id[16], uint32_t w, bool cas_mask, struct kn_map *out,
    int *out_sealed, struct kn_err *e)
{
	struct kn_map m = { NULL, (size_t)l->bank_bytes };
	int sealed;

	if (w >= l->claimant_n)
		return kn_err_set(
		    e, KN_EK_PROTOCOL, "claimant %u of %u", w, l->claimant_n);
	if (check_arena(fd, l, pool_id, e) < 0 || check_arena(ro_fd, l, pool_id, e) < 0)
		return -1;
	m.p = mmap(NULL, m.n, PROT_READ, MAP_SHARED, ro_fd,
	    (off_t)kn_layout_bank_off(l, w / l->bank_claimants));
	if (m.p == MAP_FAILED)
		return kn_err_sys(e, KN_EK_HOST, "map the submit region");
	if (lay_out_bank(m.p, fd, ro_fd, l, w, cas_mask, e) < 0) {
		kn_map_close(&m);
		return -1;
	}
	sealed = seal_mapping(m.p, m.n);
	if (sealed < 0) {
		kn_err_sys(e, KN_EK_HOST, "mseal the submit region");
		kn_map_close(&m);
		return -1;
	}
	*out = m;
	*out_sealed = sealed;
	return 0;
}
