/* tests/unit/test_module_cell.c: a resident in a cell of the real stub below the real
 * bwrap, under every preset: ready, out of reach of other lanes, ended by the stub with
 * a result of its own, and replaced without a new sandbox.
 */
#include "sandbox_test.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "ipc/job.h"
#include "sandbox/filter.h"
#include "sandbox/launch_int.h"
#include "tests/unit/module_resident.h"

struct cell {
	struct kn_policy *policy;
	struct kn_host host;
	struct kn_filter filter;
	struct kn_launcher *launcher;
	struct kn_launched worker;
	/* the stub's lane: slice 0; the module's, slice 1, is in `r` */
	struct kn_slice slice;
	struct kn_submit tx;
	struct kn_return_rx rx;
	struct kn_job_result result;
	uint32_t task; /* number of the resident job */
};

static struct cell C;
static struct resident R;

static void
open_cell(const char *preset)
{
	char module[PATH_MAX + 32];
	struct kn_policy_src src[] = { { .type = KN_SRC_NAMED, .text = preset },
		{ .type = KN_SRC_SET,
		    .text = "/allow_degraded=[\"landlock\",\"cgroup.memory\","
			    "\"cgroup.pids\",\"cgroup.cpu\",\"mseal\"]" },
		{ .type = KN_SRC_SET, .text = "/require=[\"namespaces\",\"seccomp\"]" },
		{ .type = KN_SRC_SET, .text = "/pool/kind=module" },
		{ .type = KN_SRC_SET, .text = module } };
	struct kn_layout l;
	struct kn_err e = { 0 };

	memset(&C, 0, sizeof C);
	memset(&R, 0, offsetof(struct resident, result));
	C.worker = (struct kn_launched)KN_LAUNCHED_NONE;
	snprintf(module, sizeof module, "/pool/module=%s", module_path("walls.so"));
	OK(kn_policy_load(src, 5, &C.policy, &e), e);
	OK(kn_host_probe(&C.host, &e), e);
	assert_int_equal(kn_layout_of(2, 1 << 20, 1 << 20, &l), 0);
	OK(kn_arena_open(&R.arena, &l, pool_id, &e), e);
	OK(kn_filter_build(C.policy, &C.filter, &e), e);
	OK(kn_launcher_new(C.policy, &C.host, pool_id, 1, &l, &C.launcher, &e), e);
	kn_arena_slice(&R.arena, 0, &C.slice);
	kn_submit_init(&C.tx);
	OK(kn_launch_start(C.launcher, 0, 1, &C.worker, &e), e);
	OK(kn_launch_boot(C.launcher, 0, 1, &C.filter, R.arena.fd, &C.worker, &e), e);
}

static void
close_cell(void)
{
	kn_launch_kill(C.launcher, 0, &C.worker);
	kn_launch_release(C.launcher, 0, &C.worker);
	kn_launcher_free(C.launcher);
	kn_filter_fini(&C.filter);
	kn_policy_free(C.policy);
	kn_arena_close(&R.arena);
}

/* The job that starts a resident, with its descriptors. */
static void
start_resident(void)
{
	static const char *const argv[] = { "knit-worker-module", NULL };
	const struct kn_job job = {
		.flags = KN_JOB_RESIDENT, .argv = argv, .argv_n = 1, .cwd = "/task"
	};
	struct kn_resident rec = { .layout = R.arena.layout,
		.slice = 1,
		.payload_max = 1 << 17,
		.module = "/module/walls.so",
		.init = "" };
	struct kn_slot_head h = { .kind = KN_REQ_EXEC,
		.task = ++C.task,
		.gen = 1,
		.area = KN_AREA_INLINE,
		.fd_n = 7 };
	struct kn_msg m = { .type = KN_MSG_TASK, .task = h.task, .gen = 1 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), record = -1;
	int fds[7] = { null, null, null, -1, R.arena.fd, -1, -1 };
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_err e = { 0 };

	OK(kn_arena_reset_slice(&R.arena, 1, &e), e);
	kn_arena_slice(&R.arena, 1, &R.slice);
	kn_submit_init(&R.tx);
	kn_payload_init(&R.pay, R.slice.submit_area_bytes);
	R.rx = (struct kn_return_rx){ 0 };
	R.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	memcpy(rec.pool_id, pool_id, sizeof rec.pool_id);
	OK(kn_resident_seal(&rec, &record, &e), e);
	fds[3] = kn_fd_sealed("knit-worker-module", kn_module_image,
	    (size_t)(kn_module_image_end - kn_module_image), 1, &e);
	fds[5] = R.bell;
	fds[6] = record;
	h.payload_len = (uint32_t)kn_job_encode(&job, bytes, sizeof bytes);
	assert_true(h.payload_len <= sizeof bytes);
	m.arg = (uint32_t)kn_submit_free(&C.tx, &C.slice);
	kn_submit_publish(&C.tx, &C.slice, (int)m.arg, &h, bytes);
	assert_int_equal(kn_fd_send(C.worker.sock, &m, sizeof m, fds, 7, 0), 0);
	close(null);
	close(fds[3]);
	close(record);
}

/* What the stub says of the resident's end. */
static void
await_result(void)
{
	uint64_t until = kn_clock_now() + 60 * KN_S_NS;
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_slot_head h;
	const char *field = "";
	bool violation = false;
	int slot;

	while ((slot = kn_return_peek(&C.rx, &C.slice, &h, bytes)) < 0) {
		assert_true(kn_clock_now() < until);
		poll(NULL, 0, 1);
	}
	assert_int_equal(h.task, C.task);
	if (kn_job_result_decode(bytes, h.payload_len, &C.result, &field) < 0)
		fail_msg("field %s", field);
	kn_return_retire(&C.rx, &C.slice, slot);
	kn_submit_claimed(&C.tx, &C.slice, &violation);
	assert_false(violation);
	close(R.bell);
}

/* It never becomes ready without saying why: the stub's result is looked at then. */
static bool
is_ready(void)
{
	struct kn_slot_head h = { .kind = KN_REQ_PING, .task = R.next++ }, out;
	uint64_t until = kn_clock_now() + 60 * KN_S_NS;
	uint8_t bytes[KN_INLINE_MAX];
	int slot;

	resident_publish(&R, h, NULL, "hello", 5);
	resident_wake(&R);
	for (;;) {
		slot = kn_return_peek(&R.rx, &R.slice, &out, bytes);
		if (slot >= 0)
			break;
		if (kn_return_peek(&C.rx, &C.slice, &out, bytes) >= 0)
			return false;
		assert_true(kn_clock_now() < until);
		poll(NULL, 0, 1);
	}
	kn_return_retire(&R.rx, &R.slice, slot);
	assert_int_equal(out.flags, 0);
	assert_memory_equal(bytes, "hello", 5);
	return true;
}

static void
must_be_ready(void)
{
	if (is_ready())
		return;
	await_result();
	fail_msg("the resident ended: cause %d, step %s, errno %u %s, status %#x",
	    (int)C.result.cause, kn_exec_step_name(C.result.step), C.result.sys,
	    C.result.detail, (unsigned)C.result.wait_status);
}

/* resident_answer() asks waitpid() of a process that is not ours. */
static void
call_text(const char *name, uint32_t type, const void *arg, size_t n, char *out)
{
	uint64_t until = kn_clock_now() + 60 * KN_S_NS;
	struct kn_slot_head h = { .kind = KN_REQ_CALL,
		.task = R.next++,
		.type = type,
		.fn = R.next,
		.abort = KN_NO_ABORT };
	uint8_t bytes[KN_INLINE_MAX];
	const void *from = bytes;
	int slot;

	resident_publish(&R, h, name, arg, n);
	resident_wake(&R);
	while ((slot = kn_return_peek(&R.rx, &R.slice, &h, bytes)) < 0) {
		assert_true(kn_clock_now() < until);
		poll(NULL, 0, 1);
	}
	if (h.area != KN_AREA_INLINE)
		from = R.slice.return_area + h.payload_off;
	assert_true(h.payload_len < 4200);
	memcpy(out, from, h.payload_len);
	out[h.payload_len] = '\0';
	assert_int_equal(h.type, KN_TYPE_TEXT);
	kn_return_retire(&R.rx, &R.slice, slot);
}

static void
send_kill(enum kn_cause cause)
{
	struct kn_msg m = {
		.type = KN_MSG_KILL, .task = C.task, .gen = 1, .arg = cause
	};

	assert_int_equal(kn_fd_send(C.worker.sock, &m, sizeof m, NULL, 0, 0), 0);
}

static void
require_bwrap(void)
{
	char path[256];
	struct kn_err e = { 0 };

	SKIP_UNLESS(kn_host_find_bwrap(path, sizeof path, &e) == 0, "no bwrap here");
}

/* ---- the tests ---- */

static void
no_preset_lets_a_module_out_of_its_lane(void **state)
{
	(void)state;
	require_bwrap();
	for (const char *const *p = kn_policy_presets(); *p; p++) {
		bool kills = !strcmp(*p, "judge");
		char text[4201];
		int64_t flags;

		open_cell(*p);
		flags = (C.host.mseal ? 1 : 0) | (kills ? 0 : 2);
		start_resident();
		must_be_ready();
		call_text("walls", KN_TYPE_I64, &flags, sizeof flags, text);
		if (strcmp(text, "BLOCKED") != 0)
			fail_msg("%s: %s", *p, text);
		/* Walls up, and the bell its only descriptor, before constructors. */
		call_text("constructed", KN_TYPE_NULL, NULL, 0, text);
		assert_string_equal(text, "2 1");
		close_cell();
	}
}

static void
the_stub_tells_of_its_end_and_starts_the_next_one(void **state)
{
	uint64_t best = UINT64_MAX;
	struct kn_slot_head h = { .kind = KN_REQ_CALL, .fn = 1, .type = KN_TYPE_NULL };

	(void)state;
	require_bwrap();
	open_cell("default");
	for (int i = 0; i < 6; i++) {
		uint64_t begun = kn_clock_now();

		start_resident();
		must_be_ready();
		if (i > 0 && kn_clock_now() - begun < best)
			best = kn_clock_now() - begun;
		if (i % 3 == 0) { /* by itself */
			h.task = R.next++;
			resident_publish(&R, h, "crash", NULL, 0);
			resident_wake(&R);
			await_result();
			assert_int_equal(C.result.cause, KN_CAUSE_NONE);
			assert_int_equal(WTERMSIG(C.result.wait_status), SIGABRT);
		} else if (i % 3 == 1) { /* ended */
			send_kill(KN_CAUSE_HARD);
			await_result();
			assert_int_equal(C.result.cause, KN_CAUSE_HARD);
		} else { /* told to stop */
			kn_control_stop(R.slice.control);
			resident_wake(&R);
			await_result();
			assert_int_equal(C.result.cause, KN_CAUSE_NONE);
			assert_int_equal(C.result.wait_status, 0);
		}
		assert_int_equal(C.result.step, KN_EXEC_STARTED);
	}
	print_message("a resident of a waiting stub is ready after %.2f ms\n",
	    (double)best / 1e6);
	close_cell();
}

static void
a_resident_that_lacks_its_image_is_refused_and_the_stub_goes_on(void **state)
{
	static const char *const argv[] = { "knit-worker-module", NULL };
	const struct kn_job job = {
		.flags = KN_JOB_RESIDENT, .argv = argv, .argv_n = 1, .cwd = "/task"
	};
	struct kn_slot_head h = {
		.kind = KN_REQ_EXEC, .gen = 1, .area = KN_AREA_INLINE, .fd_n = 3
	};
	struct kn_msg m = { .type = KN_MSG_TASK, .gen = 1 };
	uint8_t bytes[KN_INLINE_MAX];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[3] = { null, null, null };

	(void)state;
	require_bwrap();
	open_cell("default");
	R.bell = -1;
	h.task = m.task = ++C.task;
	h.payload_len = (uint32_t)kn_job_encode(&job, bytes, sizeof bytes);
	m.arg = (uint32_t)kn_submit_free(&C.tx, &C.slice);
	kn_submit_publish(&C.tx, &C.slice, (int)m.arg, &h, bytes);
	assert_int_equal(kn_fd_send(C.worker.sock, &m, sizeof m, fds, 3, 0), 0);
	close(null);
	await_result();
	assert_int_equal(C.result.step, KN_EXEC_CELL);
	start_resident();
	must_be_ready();
	close_cell();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_preset_lets_a_module_out_of_its_lane),
		cmocka_unit_test(the_stub_tells_of_its_end_and_starts_the_next_one),
		cmocka_unit_test(
		    a_resident_that_lacks_its_image_is_refused_and_the_stub_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
