/* tests/fuzz/boot.c: any bytes as the record that a stub starts from: refused, or what
 * it says stays within its bounds, and is the same when it is written and read again.
 *
 *   clang -fsanitize=fuzzer,address,undefined -DKN_LIBFUZZER ... tests/fuzz/boot.c
 * Without KN_LIBFUZZER: a program that replays the files it is given.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/control.h"
#include "ipc/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { BINDS = 64 };

static void
same(const struct kn_boot *a, const struct kn_boot *b)
{
	assert(a->worker == b->worker && a->incarnation == b->incarnation);
	assert(!memcmp(a->pool_id, b->pool_id, sizeof a->pool_id));
	assert(a->layout.arena_bytes == b->layout.arena_bytes);
	assert(a->flags == b->flags && a->has == b->has && a->worker_n == b->worker_n);
	assert(a->tmp_bytes == b->tmp_bytes && a->task_inodes == b->task_inodes);
	assert(a->exec_key == b->exec_key && a->run_n == b->run_n);
	assert(a->run_n == 0 || !memcmp(a->run, b->run, a->run_n));
	assert(a->bind_n == b->bind_n && a->worker_bpf_n == b->worker_bpf_n &&
	       a->cell_bpf_n == b->cell_bpf_n);
	assert(a->worker_bpf_n == 0 ||
	       !memcmp(a->worker_bpf, b->worker_bpf, (size_t)a->worker_bpf_n * 8));
	assert(a->cell_bpf_n == 0 ||
	       !memcmp(a->cell_bpf, b->cell_bpf, (size_t)a->cell_bpf_n * 8));
}

static void
again(const struct kn_boot *b)
{
	static struct kn_boot_bind binds[BINDS];
	struct kn_err e = { 0 };
	struct kn_boot c;
	struct stat st;
	char *copy;
	int fd;

	if (kn_boot_seal(b, &fd, &e) < 0)
		return;
	assert(fstat(fd, &st) == 0);
	copy = malloc((size_t)st.st_size + 1);
	assert(copy && pread(fd, copy, (size_t)st.st_size, 0) == st.st_size);
	assert(kn_boot_decode(copy, (size_t)st.st_size, &c, binds, BINDS) == 0);
	same(b, &c);
	free(copy);
	close(fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct kn_boot_bind binds[BINDS];
	uint8_t *copy = malloc(n ? n : 1);
	struct kn_boot b;

	assert(copy);
	memcpy(copy, data, n);
	if (kn_boot_decode(copy, n, &b, binds, BINDS) == 0) {
		const uint8_t *bpf[] = { b.worker_bpf, b.cell_bpf };
		uint32_t counts[] = { b.worker_bpf_n, b.cell_bpf_n };

		assert(b.bind_n <= BINDS);
		assert(b.layout.arena_bytes >= b.layout.slice_bytes);
		for (int i = 0; i < 2; i++)
			assert(counts[i] == 0 ||
			       (bpf[i] >= copy &&
				   bpf[i] + (size_t)counts[i] * 8 <= copy + n));
		again(&b);
	}
	free(copy);
	return 0;
}

#include "tests/fuzz/replay.h"
