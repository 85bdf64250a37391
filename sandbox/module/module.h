/* sandbox/module/module.h: what the resident process of a module holds.
 *
 * knit-worker-module is started inside of a cell, with all walls up, maps its slice,
 * loads the module and serves calls on its only thread. Nothing here is a wall: a
 * module can do to this process whatever it likes, and harms its own lane only.
 *
 *   main.c    start: record, slice, load, serve
 *   load.c    dlopen, the init hook, names -> functions
 *   serve.c   claim, run, answer, sleep, stop
 *   claim.c   the same from a submit bank that several workers share
 *   result.c  from a task's result or error to a published answer
 *   api.c, api_arg.c  the functions of knit/task.h
 */
#ifndef KN_MODULE_MODULE_H
#define KN_MODULE_MODULE_H

#include <sched.h>
#include <stdarg.h>

#include "include/knit/task.h"
#include "ipc/arena.h"
#include "ipc/call.h"
#include "ipc/claim.h"
#include "ipc/lane.h"
#include "ipc/payload.h"

/* An error in the making: the links of `e` point into `text`. */
struct kn_mod_error {
	struct kn_call_error e;
	char text[KN_CALL_CAUSES][3][KN_CALL_ERROR_TEXT + 1];
};

struct kn_mod_fn {
	int (*run)(struct knit_call *call); /* NULL: the module has none of that name */
	size_t n;			    /* bytes of name, as they came */
	char name[];
};

struct kn_mod_chunk { /* of memory that a call asked for */
	struct kn_mod_chunk *next;
	size_t n, at;
	_Alignas(16) uint8_t bytes[];
};

/* The present call; there is one at a time. */
struct knit_call {
	const struct kn_slot_head *head;
	const struct kn_mod_fn *fn;
	const uint8_t *arg;
	size_t arg_n;
	uint64_t begun_ns;

	/* The result so far. */
	uint32_t type; /* 0: none */
	int area;      /* >= 0: in the return area, at off */
	uint64_t off;
	size_t n, room;	   /* bytes; reserved bytes */
	uint32_t reserved; /* type of a result that is being written in place, or 0 */
	bool spoilt;	   /* the last attempt to set one failed: there is an error */
	_Alignas(KN_LINE) uint8_t inline_bytes[KN_INLINE_MAX];

	struct kn_mod_chunk *chunk; /* newest first; the oldest one is kept */
	struct kn_mod_error error;
};

/* knit_aborted() may be asked by any thread of the module at any time; it needs these.
 * turn, abort_id, give_up_ns: which call it is, 1 for the first; the one it looks for
 * in the bitmap, KN_NO_ABORT between calls; and when its time has passed, 0: never.
 * Writer the serving thread, readers any thread. U1 begin_turn, end_turn store release
 * <-> U2 knit_aborted load acquire: who sees the turn sees what is the call's own, or
 * of one behind it: a thread that outlives its call asks about another's anyway. A
 * writer that dies takes its readers along. */
struct kn_mod_abort {
	uint64_t turn;
	uint32_t abort_id;
	uint64_t give_up_ns;
	/* gave_up: writers any thread, reader the serving one: the last turn in which
	 * some thread was told to give up. A thread that was slow says so of a call
	 * that is over, which is no matter of the next one. U3 knit_aborted exchange
	 * <-> U4 kn_mod_answer load acquire. A writer that dies takes its reader along.
	 */
	uint64_t gave_up;
};

struct kn_mod {
	struct kn_map slice_map;
	struct kn_slice slice;
	struct kn_return_tx tx;
	struct kn_payload pay;
	int bell;
	struct kn_claimant *claimant; /* NULL: calls come in our own lane */
	const uint8_t *area;	      /* where arguments lie that are not in a slot */
	uint64_t area_bytes;
	const uint32_t *abort_words;

	struct kn_resident record; /* strings point into a mapping that stays */
	uint32_t worker;

	void *handle;
	bool failed; /* to load: load_error says why */
	struct kn_mod_error load_error;
	struct kn_mod_fn *fns[KN_FN_MAX];

	unsigned cursor;
	uint64_t usual_ns; /* how long calls take, by the worst of late */
	uint64_t long_ns;  /* what the last payloads take to copy */
	uint64_t spun_ns;  /* when it was that a spin ended with work; 0: not now */
	bool cold;	   /* the last wait was a pause */
	unsigned pauses;   /* so many in a row, NEAR_AFTER at most */
	bool single;	   /* the last claim was of one call */
	int cpu;	   /* the one that the supervisor was told */
	bool near;	   /* bound to the supervisor's, for a sleep; cpus: before */
	cpu_set_t cpus;
	unsigned places; /* so often */
	unsigned together,
	    apart_at; /* answers on the caller's CPU; and then it moves */
	bool greeted; /* pinged: what more there is comes from the bank */
	bool waited;  /* for room, while it answered the present call */
	struct kn_slot batch[KN_SLOTS];
	struct kn_mod_abort abort;
	struct knit_call call;
};
extern struct kn_mod kn_mod; /* the process has one */

/* Load the module and run its hook. What goes wrong is kept for who asks. */
void kn_mod_load(struct kn_mod *m);
/* The function of a call, by its number, or by its name if that came along. NULL: the
 * call has no name though it should; the call's error is set. */
const struct kn_mod_fn *kn_mod_find(
    struct kn_mod *m, const struct kn_slot_head *head, const uint8_t *payload);
/* "a, b, c": the tasks that the module exports, at most n bytes of it. */
void kn_mod_list(struct kn_mod *m, char *out, size_t n);

/* Which file it is, the libraries that came with it, and its tasks: as much of that as
 * fits n bytes, with a NUL. */
void kn_mod_tell(struct kn_mod *m, char *out, size_t n);

/* Serve until told to stop. */
void kn_mod_serve(struct kn_mod *m);
/* Run one, and learn how long they take. Returns when it was over. */
uint64_t kn_mod_serve_one(
    struct kn_mod *m, const struct kn_slot *slot, uint64_t now_ns);
/* How many to claim at once. */
unsigned kn_mod_batch_size(const struct kn_mod *m);
/* Sleep on the wake word, having looked for work since it was `seen`. */
void kn_mod_park(struct kn_mod *m, uint32_t seen);
void kn_mod_pause(void);

/* claim.c: map the submit bank, if there is one; and serve from it. */
struct kn_err;
int kn_mod_share(struct kn_mod *m, struct kn_err *e);
void kn_mod_serve_shared(struct kn_mod *m);
/* Nothing can go on: say so on standard error and end the process. */
_Noreturn void kn_mod_die(const char *what) __attribute__((cold));
/* Let some time pass until there is room in the lane or the area: the supervisor is
 * behind. Ends the process when told to stop, unless it claims from a bank. `round`
 * counts from 0. */
void kn_mod_wait_for_room(struct kn_mod *m, unsigned round);

/* ---- errors ---- */

void kn_mod_error_clear(struct kn_mod_error *e);
/* Add a link; false if there are eight. */
bool kn_mod_error_add(struct kn_mod_error *e, const char *name, const char *format,
    va_list ap) KNIT_PRINTF(3, 0);
void kn_mod_error_set(struct kn_mod_error *e, const char *name, const char *format, ...)
    KNIT_PRINTF(3, 4);

/* ---- results ---- */

void kn_mod_result_clear(struct kn_mod *m, struct knit_call *call);
/* Room for a result of n bytes; NULL with the call's error set if it is too much. */
void *kn_mod_result_room(
    struct kn_mod *m, struct knit_call *call, uint32_t type, size_t n);
/* n bytes of the room are the result; -1 with the error set if they are not of the
 * type. */
int kn_mod_result_take(
    struct kn_mod *m, struct knit_call *call, uint32_t type, size_t n);
/* Publish the answer to `head`: value or error (flags KN_CALL_FAILED), and ring. */
void kn_mod_answer_value(struct kn_mod *m, struct knit_call *call, uint64_t ended_ns);
/* e is left as it is; flags beside KN_CALL_FAILED. */
void kn_mod_answer_error(struct kn_mod *m, struct knit_call *call,
    const struct kn_mod_error *e, uint32_t flags, uint64_t ended_ns);
void kn_mod_publish(
    struct kn_mod *m, const struct kn_slot_head *head, const void *inline_bytes);
/* Ready for the next call: its memory goes, and all that was set. */
void kn_mod_call_clear(struct knit_call *call);

#endif
