/* tests/unit/ipc_lane.h: one slice and the supervisor's side of its lanes, for the two
 * test files of ipc/lane.c.
 */
#ifndef KN_TESTS_IPC_LANE_H
#define KN_TESTS_IPC_LANE_H

#include "tests/unit/ipc_test.h"

#include "ipc/lane.h"
#include "ipc/shm.h"

static struct kn_arena arena;
static struct kn_slice sl; /* the supervisor's view of slice 0 */
static struct kn_submit tx;

static int
start(void **state)
{
	(void)state;
	open_arena(&arena, 1, 8192);
	kn_arena_slice(&arena, 0, &sl);
	kn_submit_init(&tx);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	pin(-1);
	kn_arena_close(&arena);
	return 0;
}

/* In a child: the worker's view. */
__attribute__((unused)) static int
map_as_worker(struct kn_slice *out)
{
	struct kn_map m;
	int sealed;

	if (kn_arena_map_slice(arena.fd, &arena.layout, pool_id, 0, &m, &sealed, NULL) <
	    0)
		return -1;
	kn_slice_at(m.p, &arena.layout, out);
	return 0;
}

static int
offer(uint32_t task, const char *text)
{
	struct kn_slot_head h = { .kind = KN_REQ_EXEC,
		.task = task,
		.gen = task + 1,
		.area = KN_AREA_INLINE,
		.payload_len = (uint32_t)strlen(text) };
	int slot = kn_submit_free(&tx, &sl);

	if (slot >= 0)
		kn_submit_publish(&tx, &sl, slot, &h, text);
	return slot;
}

static uint32_t
claimed(void)
{
	bool violation = false;
	uint32_t mask = kn_submit_claimed(&tx, &sl, &violation);

	assert_false(violation);
	return mask;
}

#define LANE(t) cmocka_unit_test_setup_teardown(t, start, stop)

#endif
