/* tests/fuzz/job.c: any bytes as a boot record, a job or a result: never a fault, and
 * what is accepted stays within its bounds. Results come from workers that may lie.
 *
 *   clang -fsanitize=fuzzer,address,undefined -DKN_LIBFUZZER ... tests/fuzz/job.c
 * Without KN_LIBFUZZER: a program that replays the files it is given.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
try_result(const uint8_t *data, size_t n)
{
	struct kn_job_result r;
	const char *field = NULL;

	if (kn_job_result_decode(data, n, &r, &field) < 0) {
		assert(field && field[0]);
		return;
	}
	assert(r.cause < KN_CAUSE_N && r.step < KN_EXEC_STEP_N);
	assert(r.begun_ns <= r.ended_ns);
	assert(strnlen(r.detail, sizeof r.detail) < sizeof r.detail);
}

static void
try_job(const uint8_t *data, size_t n)
{
	size_t room_n = KN_JOB_ROOM(n);
	void *room = aligned_alloc(16, (room_n + 15) & ~(size_t)15);
	struct kn_job j;

	assert(room);
	if (kn_job_decode(data, n, &j, room, room_n) == 0) {
		assert(j.argv_n >= 1 && j.argv[0] && !j.argv[j.argv_n]);
		for (uint32_t i = 0; i < j.file_n; i++)
			assert(j.files[i].path && !strstr(j.files[i].path, ".."));
	}
	free(room);
}

static void
try_boot(const uint8_t *data, size_t n)
{
	static struct kn_boot_bind binds[64];
	struct kn_boot b;

	if (kn_boot_decode(data, n, &b, binds, 64) == 0)
		assert(b.bind_n <= 64 && b.layout.arena_bytes >= b.layout.slice_bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	/* The decoders want a copy of their own: so does the sanitizer's red zone. */
	uint8_t *copy = malloc(n ? n : 1);

	assert(copy);
	memcpy(copy, data, n);
	try_result(copy, n);
	try_job(copy, n);
	try_boot(copy, n);
	free(copy);
	return 0;
}

#include "tests/fuzz/replay.h"
