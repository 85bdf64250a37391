/* tests/evil/evil.h: a stub that lies, for tests of what a lie costs.
 *
 * The sources of knit-worker with another main(): worker 0 boots as any other, walls
 * and all, and then tells one lie of the list; the other workers are honest. The lie is
 * named in the program's own image, which the test rewrites in the copy that it starts
 * (tests/fault/lies.py), so that no option, file or environment of the real program
 * knows of it. What must come of each stands there too.
 */
#ifndef KN_TESTS_EVIL_H
#define KN_TESTS_EVIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/job.h"
#include "ipc/lane.h"
#include "sandbox/stub/stub.h"

enum evil_when {
	EVIL_START, /* booted, the ping is waiting and not answered */
	EVIL_TASK,  /* ready, the first task is waiting and not claimed */
	EVIL_STOP,  /* has served honestly and is told to stop */
	EVIL_SERVE, /* serves; the hooks below do the rest */
};

struct evil_lie {
	const char *name;
	enum evil_when when;
	void (*tell)(struct kn_stub *s); /* may return: it goes on honestly */
};
extern const struct evil_lie evil_lane_lies[], evil_result_lies[], evil_sock_lies[],
    evil_memory_lies[], evil_resident_lies[]; /* each ends with a NULL name */

/* What the honest code does, changed on its way (linked with --wrap). */
struct evil_hooks {
	void (*head)(struct kn_slot_head *h, uint8_t bytes[KN_INLINE_MAX]);
	void (*result)(struct kn_job_result *r);
	void (*begin)(uint32_t *task, uint32_t *gen, uint64_t *ns);
	bool no_ring, no_ack, no_result;
};
extern struct evil_hooks evil;

/* ---- main.c ---- */
_Noreturn void evil_sleep(void); /* for ever, deaf to everything */
void evil_pause_ms(unsigned ms);
uint32_t evil_random(void);
/* The task that waits first: claim it. Its descriptors are in out_w. False: gone. */
bool evil_claim(struct kn_stub *s, struct kn_waiting *out_w, struct kn_slot_head *out);
/* An answer of the right form to (task, gen), as of a program that ended with 0. */
void evil_answer(struct kn_slot_head *h, uint8_t bytes[KN_INLINE_MAX], uint32_t task,
    uint32_t gen, uint32_t file_n);
/* Publish whatever head and bytes are; ring. False: the lane is full. */
bool evil_publish(struct kn_stub *s, const struct kn_slot_head *h, const void *bytes);
void evil_ring(struct kn_stub *s);
/* A child with a copy of everything but the slice. 0 in the child. */
int evil_fork(void);

#endif
