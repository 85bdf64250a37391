/* tests/unit/module_resident.h: a supervisor in miniature: starts the real
 * knit-worker-module without any sandbox, and speaks to it through an arena.
 */
#ifndef KN_TESTS_MODULE_RESIDENT_H
#define KN_TESTS_MODULE_RESIDENT_H

#include "tests/unit/ipc_test.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "ipc/bell.h"
#include "ipc/call.h"
#include "ipc/clock.h"
#include "ipc/control.h"
#include "ipc/lane.h"
#include "ipc/offer.h"
#include "ipc/park.h"
#include "ipc/payload.h"

extern const uint8_t kn_module_image[], kn_module_image_end[];

/* tests/module/NAME of the build that this test is of. */
__attribute__((unused)) static const char *
module_path(const char *name)
{
	static char path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

	assert_true(n > 0);
	path[n] = '\0';
	for (int i = 0; i < 2; i++)
		*strrchr(path, '/') = '\0';
	snprintf(path + strlen(path), 64, "/module/%s", name);
	return path;
}

struct resident {
	struct kn_arena arena;
	struct kn_slice slice;
	struct kn_submit tx;
	struct kn_return_rx rx;
	struct kn_payload pay;
	uint32_t return_area_n; /* areas that were read and freed */
	int bell, err;		/* err: its standard error, to read */
	pid_t pid;
	bool reaped;
	int status;
	uint32_t next;
	struct kn_offer offer; /* of a bank: calls go there and not to its lane */
	uint8_t result[9 << 20];
};

struct resident_opts {
	const char *module; /* a path; NULL: tests/module/basic.so */
	const char *init;
	uint64_t payload_max, area;
	uint32_t spin_us;
	bool shared; /* claims from a bank, as the only one of it */
};

static void
resident_exec(const int fds[5], int err)
{
	int from[5];

	child_defaults();
	alarm(0);
	for (int i = 0; i < 5; i++)
		from[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 64);
	dup2(err, 2);
	for (int i = 0; i < 5; i++)
		dup3(from[i], 3 + i, i == 0 ? O_CLOEXEC : 0);
	execl("/proc/self/fd/3", "knit-worker-module", (char *)NULL);
	_exit(99);
}

__attribute__((unused)) static void
resident_start(struct resident *r, const struct resident_opts *o)
{
	struct kn_resident rec = { .slice = 1,
		.spin_us = o->spin_us,
		.payload_max = o->payload_max ? o->payload_max : 8 << 20,
		.module = o->module ? o->module : module_path("basic.so"),
		.init = o->init ? o->init : "" };
	struct kn_layout l;
	int image, record = -1, region = -1, err[2];
	struct kn_bank bank;
	struct kn_err e;

	memset(r, 0, offsetof(struct resident, result));
	assert_int_equal(kn_layout_of(2, o->area ? o->area : 64 << 20,
			     o->area ? o->area : 64 << 20, &l),
	    0);
	if (o->shared) {
		assert_int_equal(kn_layout_share(&l, 1, 64 << 10), 0);
		rec.claim = KN_CLAIM_DEKKER;
		rec.region_lanes = kn_claim_width(1, 0);
	}
	memcpy(rec.pool_id, pool_id, sizeof rec.pool_id);
	rec.layout = l;
	assert_int_equal(kn_arena_open(&r->arena, &l, pool_id, &e), 0);
	kn_arena_slice(&r->arena, 1, &r->slice);
	kn_submit_init(&r->tx);
	kn_payload_init(&r->pay, l.submit_area_bytes);
	r->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (o->shared) {
		kn_arena_bank(&r->arena, 0, &bank);
		assert_int_equal(
		    kn_offer_init(&r->offer, &bank, KN_CLAIM_DEKKER, rec.region_lanes),
		    0);
		kn_offer_join(&r->offer, 0);
		assert_int_equal(kn_arena_readonly(&r->arena, &region, &e), 0);
	}
	assert_int_equal(kn_resident_seal(&rec, &record, &e), 0);
	image = kn_fd_sealed("image", kn_module_image,
	    (size_t)(kn_module_image_end - kn_module_image), 1, &e);
	assert_true(image >= 0 && r->bell >= 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	r->err = err[0];
	r->pid = fork();
	assert_true(r->pid >= 0);
	if (r->pid == 0)
		resident_exec(
		    (int[5]){ image, r->arena.fd, r->bell, record, region }, err[1]);
	close(image);
	close(record);
	if (region >= 0)
		close(region);
	close(err[1]);
}

/* A request of that kind; what does not fit inline goes to the area. The task's number
 * is the argument `task`, its generation task + 1. */
__attribute__((unused)) static void
resident_publish(struct resident *r, struct kn_slot_head h, const char *name,
    const void *bytes, size_t n)
{
	size_t name_n = name ? strlen(name) : 0;
	uint8_t in[KN_INLINE_MAX];
	uint64_t off = 0;
	int slot = kn_submit_free(&r->tx, &r->slice);
	bool violation = false;
	uint8_t *to = in;

	kn_submit_claimed(&r->tx, &r->slice, &violation);
	assert_false(violation);
	assert_true(slot >= 0);
	h.gen = h.task + 1;
	h.name_n = (uint32_t)name_n;
	h.payload_len = (uint32_t)(n + name_n);
	h.area = KN_AREA_INLINE;
	if (h.payload_len > KN_INLINE_MAX) {
		h.area = (uint32_t)kn_payload_alloc(
		    &r->pay, &r->slice.control->submit_freed, h.payload_len, &off);
		assert_true(h.area < KN_AREAS);
		h.payload_off = (uint32_t)off;
		to = r->slice.submit_area + off;
	}
	if (n > 0)
		memcpy(to, bytes, n);
	if (name_n > 0)
		memcpy(to + n, name, name_n);
	kn_submit_publish(&r->tx, &r->slice, slot, &h, in);
}

__attribute__((unused)) static void
resident_wake(struct resident *r)
{
	(void)kn_park_wake(r->slice.control);
}

/* The oldest answer, as the doorbell tells of it. False: the process has ended and left
 * none. */
__attribute__((unused)) static bool
resident_answer(struct resident *r, struct kn_slot_head *out)
{
	uint64_t until = kn_clock_now() + 60 * KN_S_NS, rings;
	uint8_t in[KN_INLINE_MAX];
	int slot;

	for (;;) {
		struct pollfd p = { .fd = r->bell, .events = POLLIN };

		kn_bell_arm(r->slice.control);
		slot = kn_return_peek(&r->rx, &r->slice, out, in);
		if (slot >= 0 || r->reaped)
			break;
		/* A short timeout only to notice the end of the process. */
		if (poll(&p, 1, 20) > 0)
			(void)!read(r->bell, &rings, sizeof rings);
		else
			r->reaped = waitpid(r->pid, &r->status, WNOHANG) == r->pid;
		assert_true(kn_clock_now() < until);
	}
	kn_bell_disarm(r->slice.control);
	if (slot < 0)
		return false;
	assert_true(out->payload_len <= sizeof r->result);
	if (out->area == KN_AREA_INLINE) {
		memcpy(r->result, in, out->payload_len);
	} else {
		assert_true(out->payload_off + (uint64_t)out->payload_len <=
			    r->slice.return_area_bytes);
		memcpy(r->result, r->slice.return_area + out->payload_off,
		    out->payload_len);
		kn_payload_free(&r->slice.control->return_freed, (int)out->area);
		r->return_area_n++;
	}
	kn_return_retire(&r->rx, &r->slice, slot);
	return true;
}

__attribute__((unused)) static struct kn_slot_head
resident_ping(struct resident *r)
{
	struct kn_slot_head h = { .kind = KN_REQ_PING, .task = r->next++ }, out;

	memset(&out, 0, sizeof out);
	resident_publish(r, h, NULL, "hello", 5);
	resident_wake(r);
	if (!resident_answer(r, &out))
		out.kind = 0;
	return out;
}

/* Call and wait; the result's bytes are in r->result. fn 0: the name goes along as it
 * would for a function that was not answered yet. */
__attribute__((unused)) static struct kn_slot_head
resident_call(struct resident *r, uint32_t fn, const char *name, uint32_t type,
    const void *bytes, size_t n)
{
	struct kn_slot_head h = { .kind = KN_REQ_CALL,
		.task = r->next++,
		.type = type,
		.fn = fn,
		.abort = KN_NO_ABORT },
			    out;

	memset(&out, 0, sizeof out);
	resident_publish(r, h, name, bytes, n);
	resident_wake(r);
	if (!resident_answer(r, &out)) {
		out.kind = 0;
		return out;
	}
	assert_int_equal(out.kind, KN_REQ_CALL);
	assert_int_equal(out.task, h.task);
	assert_int_equal(out.gen, h.task + 1);
	assert_true(out.begun_ns <= out.deadline_ns);
	assert_true(kn_value_check(out.type, r->result, out.payload_len));
	return out;
}

__attribute__((unused)) static struct kn_slot_head
resident_call_i64(struct resident *r, uint32_t fn, const char *name, int64_t v)
{
	return resident_call(r, fn, name, KN_TYPE_I64, &v, sizeof v);
}

__attribute__((unused)) static int64_t
resident_i64(const struct resident *r, const struct kn_slot_head *h)
{
	int64_t v;

	assert_int_equal(h->type, KN_TYPE_I64);
	memcpy(&v, r->result, sizeof v);
	return v;
}

__attribute__((unused)) static struct kn_call_error
resident_error(const struct resident *r, const struct kn_slot_head *h)
{
	struct kn_call_error e;

	assert_int_equal(h->type, KN_TYPE_ERROR);
	assert_true(h->flags & KN_CALL_FAILED);
	assert_int_equal(kn_call_error_decode(r->result, h->payload_len, &e), 0);
	return e;
}

/* The wait status of the process, which must end by itself. */
__attribute__((unused)) static int
resident_status(struct resident *r)
{
	uint64_t until = kn_clock_now() + 60 * KN_S_NS;

	while (!r->reaped) {
		r->reaped = waitpid(r->pid, &r->status, WNOHANG) == r->pid;
		assert_true(kn_clock_now() < until);
		if (!r->reaped)
			poll(NULL, 0, 1);
	}
	return r->status;
}

/* Tell it to stop. Its wait status. */
__attribute__((unused)) static int
resident_stop(struct resident *r)
{
	kn_control_stop(r->slice.control);
	resident_wake(r);
	return resident_status(r);
}

__attribute__((unused)) static void
resident_close(struct resident *r)
{
	if (!r->reaped) {
		kill(r->pid, SIGKILL);
		waitpid(r->pid, NULL, 0);
	}
	close(r->bell);
	close(r->err);
	kn_arena_close(&r->arena);
}

#endif
