/* supervisor/ledger.c: see ledger.h. The file is an array of 4096-byte pages, each a
 * count and up to 240 entries of 17 bytes (fingerprint, state). The home page of an
 * entry is given by the top bits of its fingerprint, a full page overflows into the
 * next one, nothing is ever deleted. Because the top bits decide, doubling the file
 * reads and writes it in order: a million ids move in some ten milliseconds.
 */
#include "supervisor/ledger.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"

enum {
	PAGE_BYTES = 4096,
	PAGE_HEAD = 16,
	ENTRY_BYTES = 17,
	PAGE_ENTRIES = (PAGE_BYTES - PAGE_HEAD) / ENTRY_BYTES,
	SMALL_SLOTS = 8192, /* a power of two */
	SMALL_MAX = 6144,
	FIRST_PAGES = 64,
	FILL_MAX = PAGE_ENTRIES * 6 / 10, /* mean entries of a page before doubling */
};
_Static_assert(PAGE_ENTRIES == 240, "a page is filled to its last byte");
_Static_assert(FIRST_PAGES *FILL_MAX > SMALL_MAX, "the first file takes the table");

struct entry {
	uint64_t fp[2];
	uint8_t state;
};

struct file {
	int fd;
	uint64_t pages; /* a power of two */
	uint64_t n;
	uint64_t at; /* page in buf; UINT64_MAX: none */
	bool dirty;
	uint8_t buf[PAGE_BYTES];
};

struct kn_ledger {
	uint8_t key[16];
	struct entry *small; /* SMALL_SLOTS; NULL once the file is used */
	uint64_t small_n;
	struct file file;
};

/* ---- the fingerprint ---- */

static uint64_t
rotl(uint64_t x, int b)
{
	return (x << b) | (x >> (64 - b));
}

static void
sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

static uint64_t
load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return le64toh(v);
}

void
kn_ledger_hash(const uint8_t key[16], const void *p, size_t n, uint64_t out[2])
{
	const uint8_t *in = p;
	uint64_t k0 = load64(key), k1 = load64(key + 8), m;
	uint64_t v[4] = { k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull ^ 0xee,
		k0 ^ 0x6c7967656e657261ull, k1 ^ 0x7465646279746573ull };
	uint8_t last[8] = { 0 };
	size_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		m = load64(in + i);
		v[3] ^= m;
		sip_round(v);
		sip_round(v);
		v[0] ^= m;
	}
	if (n > i)
		memcpy(last, in + i, n - i);
	last[7] = (uint8_t)n;
	m = load64(last);
	v[3] ^= m;
	sip_round(v);
	sip_round(v);
	v[0] ^= m;
	v[2] ^= 0xee;
	for (i = 0; i < 4; i++)
		sip_round(v);
	out[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
	v[1] ^= 0xdd;
	for (i = 0; i < 4; i++)
		sip_round(v);
	out[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- the file ---- */

static int
temp_in(const char *dir)
{
	char name[4096];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);

	if (fd >= 0)
		return fd;
	if ((size_t)snprintf(name, sizeof name, "%s/knit-ledger-XXXXXX", dir) >=
	    sizeof name)
		return -1;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	return fd;
}

/* A file without a name: gone with the process, however that ends. */
static int
temp_open(struct kn_err *e)
{
	const char *dirs[] = { getenv("TMPDIR"), "/var/tmp", "/tmp" };
	int fd;

	for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
		if (dirs[i] && dirs[i][0] == '/' && (fd = temp_in(dirs[i])) >= 0)
			return fd;
	}
	fd = memfd_create("knit-ledger", MFD_CLOEXEC);
	if (fd < 0)
		return kn_err_sys(
		    e, KN_EK_HOST, "create a temporary file for task ids");
	return fd;
}

static int
file_open(struct file *f, uint64_t pages, struct kn_err *e)
{
	f->fd = temp_open(e);
	if (f->fd < 0)
		return -1;
	f->pages = pages;
	f->n = 0;
	f->at = UINT64_MAX;
	f->dirty = false;
	if (ftruncate(f->fd, (off_t)(pages * PAGE_BYTES)) < 0) {
		kn_err_sys(e, KN_EK_HOST, "size the temporary file for task ids");
		kn_fd_close(&f->fd);
		return -1;
	}
	return 0;
}

static int
file_flush(struct file *f, struct kn_err *e)
{
	size_t done = 0;

	while (f->dirty && done < PAGE_BYTES) {
		ssize_t r = pwrite(f->fd, f->buf + done, PAGE_BYTES - done,
		    (off_t)(f->at * PAGE_BYTES + done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0) {
			kn_err_sys(
			    e, KN_EK_HOST, "write the temporary file for task ids");
			kn_err_hint(e, "free space where TMPDIR points, or point it "
				       "elsewhere");
			return -1;
		}
		done += (size_t)r;
	}
	f->dirty = false;
	return 0;
}

static int
file_load(struct file *f, uint64_t page, struct kn_err *e)
{
	size_t done = 0;

	if (f->at == page)
		return 0;
	if (file_flush(f, e) < 0)
		return -1;
	f->at = UINT64_MAX;
	while (done < PAGE_BYTES) {
		ssize_t r = pread(f->fd, f->buf + done, PAGE_BYTES - done,
		    (off_t)(page * PAGE_BYTES + done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return kn_err_sys(
			    e, KN_EK_HOST, "read the temporary file for task ids");
		done += (size_t)r;
	}
	f->at = page;
	return 0;
}

static uint32_t
page_count(const struct file *f)
{
	uint32_t n;

	memcpy(&n, f->buf, sizeof n);
	return n < PAGE_ENTRIES ? n : PAGE_ENTRIES;
}

static uint8_t *
page_entry(struct file *f, uint32_t i)
{
	return f->buf + PAGE_HEAD + (size_t)i * ENTRY_BYTES;
}

static uint64_t
page_home(const struct file *f, const uint64_t fp[2])
{
	return fp[0] >> (64 - __builtin_ctzll(f->pages));
}

/* Finds fp. *out_at is its entry in the loaded page, or NULL with the page loaded that
 * has room for it. */
static int
file_find(struct file *f, const uint64_t fp[2], uint8_t **out_at, struct kn_err *e)
{
	uint64_t page = page_home(f, fp);

	for (uint64_t tried = 0; tried < f->pages; tried++) {
		uint32_t n;

		if (file_load(f, page, e) < 0)
			return -1;
		n = page_count(f);
		for (uint32_t i = 0; i < n; i++) {
			if (memcmp(page_entry(f, i), fp, 16) == 0) {
				*out_at = page_entry(f, i);
				return 0;
			}
		}
		if (n < PAGE_ENTRIES) {
			*out_at = NULL;
			return 0;
		}
		page = (page + 1) & (f->pages - 1);
	}
	return kn_err_set(e, KN_EK_BUG, "ledger of task ids is full");
}

static int
file_put(struct file *f, const struct entry *en, struct kn_err *e)
{
	uint8_t *at;

	if (file_find(f, en->fp, &at, e) < 0)
		return -1;
	if (!at) {
		uint32_t n = page_count(f) + 1;

		memcpy(f->buf, &n, sizeof n);
		at = page_entry(f, n - 1);
		memcpy(at, en->fp, 16);
		f->n++;
	}
	at[16] = en->state;
	f->dirty = true;
	return 0;
}

static int
file_double(struct file *f, struct kn_err *e)
{
	struct file *bigger = malloc(sizeof *bigger);
	struct entry en;

	if (!bigger)
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	if (file_flush(f, e) < 0 || file_open(bigger, f->pages * 2, e) < 0) {
		free(bigger);
		return -1;
	}
	for (uint64_t page = 0; page < f->pages; page++) {
		if (file_load(f, page, e) < 0)
			goto fail;
		for (uint32_t i = 0; i < page_count(f); i++) {
			memcpy(en.fp, page_entry(f, i), 16);
			en.state = page_entry(f, i)[16];
			if (file_put(bigger, &en, e) < 0)
				goto fail;
		}
	}
	kn_fd_close(&f->fd);
	*f = *bigger;
	free(bigger);
	return 0;
fail:
	kn_fd_close(&bigger->fd);
	free(bigger);
	return -1;
}

/* ---- the table ---- */

static struct entry *
small_find(struct kn_ledger *l, const uint64_t fp[2])
{
	uint64_t i = fp[1] & (SMALL_SLOTS - 1);

	while (l->small[i].state != KN_LEDGER_UNKNOWN &&
	       memcmp(l->small[i].fp, fp, 16) != 0)
		i = (i + 1) & (SMALL_SLOTS - 1);
	return &l->small[i];
}

static int
spill(struct kn_ledger *l, struct kn_err *e)
{
	if (file_open(&l->file, FIRST_PAGES, e) < 0)
		return -1;
	for (size_t i = 0; i < SMALL_SLOTS; i++) {
		if (l->small[i].state != KN_LEDGER_UNKNOWN &&
		    file_put(&l->file, &l->small[i], e) < 0) {
			kn_fd_close(&l->file.fd);
			return -1;
		}
	}
	free(l->small);
	l->small = NULL;
	return 0;
}

/* ---- outside ---- */

int
kn_ledger_open(struct kn_ledger **out, struct kn_err *e)
{
	struct kn_ledger *l = calloc(1, sizeof *l);

	if (l)
		l->small = calloc(SMALL_SLOTS, sizeof *l->small);
	if (!l || !l->small) {
		free(l);
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	}
	l->file.fd = -1;
	if (getrandom(l->key, sizeof l->key, 0) != (ssize_t)sizeof l->key) {
		kn_err_sys(e, KN_EK_HOST, "get random bytes");
		kn_ledger_close(l);
		return -1;
	}
	*out = l;
	return 0;
}

void
kn_ledger_close(struct kn_ledger *l)
{
	if (!l)
		return;
	free(l->small);
	kn_fd_close(&l->file.fd);
	free(l);
}

int
kn_ledger_get(struct kn_ledger *l, const char *id, size_t id_n, uint8_t *out_state,
    struct kn_err *e)
{
	uint64_t fp[2];
	uint8_t *at;

	kn_ledger_hash(l->key, id, id_n, fp);
	if (l->small) {
		*out_state = small_find(l, fp)->state;
		return 0;
	}
	if (file_find(&l->file, fp, &at, e) < 0)
		return -1;
	*out_state = at ? at[16] : KN_LEDGER_UNKNOWN;
	return 0;
}

int
kn_ledger_put(
    struct kn_ledger *l, const char *id, size_t id_n, uint8_t state, struct kn_err *e)
{
	struct entry en = { .state = state };

	kn_ledger_hash(l->key, id, id_n, en.fp);
	if (l->small) {
		struct entry *slot = small_find(l, en.fp);

		if (slot->state != KN_LEDGER_UNKNOWN || l->small_n < SMALL_MAX) {
			l->small_n += slot->state == KN_LEDGER_UNKNOWN;
			*slot = en;
			return 0;
		}
		if (spill(l, e) < 0)
			return -1;
	}
	if (l->file.n >= l->file.pages * FILL_MAX && file_double(&l->file, e) < 0)
		return -1;
	return file_put(&l->file, &en, e);
}

uint64_t
kn_ledger_count(const struct kn_ledger *l)
{
	return l->small ? l->small_n : l->file.n;
}
