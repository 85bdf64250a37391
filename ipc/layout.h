/* ipc/layout.h: the wire format of the arena: sizes, offsets, and a card for each
 * shared word. Nothing here is read back from memory that a worker can write:
 * geometry is computed by kn_layout_of() from numbers kept privately.
 *
 *   [ header page | submit region | slice 0 | ... | slice N-1 ]       all page-aligned
 *   slice: [ control page | submit slots | return slots | submit area | return area ]
 *
 * The submit region (ipc/region.h) is there only if the pool shares: kn_layout_share().
 */
#ifndef KN_IPC_LAYOUT_H
#define KN_IPC_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum {
	KN_LAYOUT_VERSION = 4,
	KN_LINE = 64,	     /* cache line: every hot word has its own */
	KN_SLOTS = 32,	     /* slots a lane: one bit each in a 32-bit word */
	KN_INLINE_MAX = 512, /* payload bytes inside a slot: 8 lines */
	KN_SLOT_BYTES = 576, /* 9 lines: inline payload, then the header line */
	KN_AREAS = 32,	     /* live payload areas per direction */
	KN_PAGE = 4096,
	KN_WORKERS_MAX = 256,
	KN_SLICES_MAX = 2 * KN_WORKERS_MAX, /* kind module: a stub's and its module's */
	/* Calls of one module, or of one bank, that can be told to give up: as many as
	 * 31 workers can have in their lanes, so that there is always one. The
	 * ancestor's 258, settable there, can run out, and then a call has no soft
	 * limit. */
	KN_ABORT_BITS = 1024,
	KN_ABORT_WORDS = (KN_ABORT_BITS + 31) / 32,
	KN_FN_MAX = 65536,	     /* numbers of tasks' names in a pool */
	KN_FN_OTHER = KN_FN_MAX - 1, /* of those that have none of their own: the name
					comes with each call */
	KN_CLAIMANTS = 31, /* workers of one submit bank; bit 31 is the supervisor's */
	KN_BANKS_MAX = (KN_WORKERS_MAX + KN_CLAIMANTS - 1) / KN_CLAIMANTS,
};
/* A payload's offset is 32 bits wide in the slot header. */
#define KN_AREA_MAX (1ull << 32)
#define KN_ARENA_MAGIC 0x31544e4b58424e53ull /* "SNBXKNT1" little-endian */

/* Written once by the supervisor before the first launch, never after.
 * writer: supervisor.  readers: stubs (each checks it against its boot record).
 * Plain access: exclusive because no worker exists yet; the launch orders it. */
struct kn_arena_head {
	uint64_t magic;
	uint32_t version;
	uint32_t worker_n;
	uint64_t arena_bytes;
	uint64_t slice_bytes;
	uint64_t submit_area_bytes;
	uint64_t return_area_bytes;
	uint8_t pool_id[16];
	uint64_t region_bytes; /* 0: the pool does not share */
};

/* Stop word values. run -> requested (supervisor) -> acknowledged (worker, in its
 * own word): the worker has seen it and will claim nothing more. */
enum kn_stop { KN_STOP_RUN = 0, KN_STOP_REQUESTED = 1 };

#define KN_WORD32(name) _Alignas(KN_LINE) uint32_t name

/* The control page of a slice. Each word alone on its cache line. */
struct kn_control {
	/* stop: writer supervisor, readers worker.
	 * S1 kn_control_stop store release <-> S2 kn_control_stopping load acquire.
	 * If the supervisor dies the socket ends, which the worker also watches. */
	KN_WORD32(stop);
	/* stop_ack: writer worker, reader supervisor. S3 store release <-> S4 load
	 * acquire. 1: stop seen, nothing more will be claimed. If the worker dies
	 * before S3 the supervisor's deadline (stop_ack_ms) kills it; an ack is never
	 * proof of an end. */
	KN_WORD32(stop_ack);
	/* armed: writer supervisor, reader worker; see ipc/bell.h.
	 * B1 kn_bell_arm seq_cst rmw <-> B2 kn_bell_ring seq_cst rmw.
	 * If the worker dies between publishing and ringing, its pidfd wakes the loop.
	 */
	KN_WORD32(armed);
	/* begun: writer worker. (task << 32 | gen) of the task being run, stored before
	 * it starts; 0 when idle. begun_ns: CLOCK_MONOTONIC when, stored before begun.
	 * G1 kn_control_begin store release <-> G2 kn_control_begun load acquire.
	 * If the worker dies before G1 the task was claimed and did not start. */
	_Alignas(KN_LINE) uint64_t begun;
	_Alignas(KN_LINE) uint64_t begun_ns;
	/* submit_published: writer supervisor, readers worker. Toggle bits.
	 * P1 kn_submit_flush store release <-> C1 kn_submit_claim load acquire,
	 * carries the slot's header, inline bytes and area bytes.
	 * If the supervisor dies before P1 the worker never sees the task. */
	KN_WORD32(submit_published);
	/* submit_claimed: writers worker and supervisor, by 64-bit compare-exchange
	 * only. low half: toggle bits, high half: a count raised by each exchange
	 * (defeats ABA). Slot s is pending while bit s of published ^ claimed is set.
	 * Who flips it owns the task: the worker (having copied the request out before)
	 * or the supervisor (taking it back). C2 acq_rel exchange <-> C2 of the other
	 * side. If the worker dies before C2 the task was never claimed and is queued
	 * again; after it, the task may have run. */
	_Alignas(KN_LINE) uint64_t submit_claimed;
	/* return_published: writer worker, reader supervisor. Toggle bits.
	 * R1 kn_return_publish store release <-> R2 kn_return_peek load acquire.
	 * If the worker dies before R1 the result is lost: worker-lost. */
	KN_WORD32(return_published);
	/* return_retired: writer supervisor, reader worker. Toggle bits.
	 * R3 kn_return_retire store release <-> R4 kn_return_publish load acquire,
	 * kn_return_is_taken likewise.
	 * If the supervisor dies before R3 the slot stays busy and nobody is left to
	 * mind. */
	KN_WORD32(return_retired);
	/* submit_freed: writer worker, reader supervisor: one bit an area, by atomic
	 * xor. A1 kn_payload_free xor release <-> A2 kn_payload_alloc load acquire.
	 * If the worker dies before A1 the area is live until the slice is reset. */
	KN_WORD32(submit_freed);
	/* return_freed: writer supervisor, reader worker. As submit_freed: A1 <-> A2.
	 */
	KN_WORD32(return_freed);

	/* ---- kind module only: a worker that sleeps on a word, not on a socket ----
	 */

	/* wake: writer supervisor, reader worker: the futex word, raised by one for
	 * each wake; see ipc/park.h. K3 kn_park_wake rmw seq_cst <-> K4 kn_park futex
	 * wait. If the supervisor dies the worker's init ends it. */
	KN_WORD32(wake);
	/* parked: writers worker (1: about to sleep) and supervisor (0: woken), by
	 * seq_cst rmw. K1 kn_park_begin swap seq_cst, then a last look at lane and stop
	 * word
	 * <-> K2 kn_park_wake swap seq_cst after publishing: one of the two sees the
	 * other. A worker that dies parked is ended by its pidfd. */
	KN_WORD32(parked);
	/* abort: writer supervisor, reader worker: bit i set: the call with abort id i
	 * is to give up. T1 kn_abort_set or rmw release <-> T2 kn_abort_test load
	 * acquire. Cleared by the supervisor before the id is given out again. If the
	 * supervisor dies before T1 the call is ended with its worker. */
	_Alignas(KN_LINE) uint32_t abort[KN_ABORT_WORDS];

	/* ---- of a stub ---- */

	/* over: writer worker, reader supervisor. (task << 32 | gen) of the task of
	 * which nothing runs any more, SIGKILL having been sent to all that was left:
	 * what is still to do (memory to free, file systems to take down, files to
	 * collect) is the worker's own. Never taken back: a gen is not used twice.
	 * O1 kn_control_over store release <-> O2 kn_control_is_over load acquire. No
	 * more than the worker's word: it buys time once, teardown_ms. If the worker
	 * dies before O1 its death is what counts. */
	_Alignas(KN_LINE) uint64_t over;

	/* ---- kind module ---- */

	/* worker_cpu: writer worker, reader supervisor: 1 + the CPU it ran on of late,
	 * 0: not known. Only a hint: two that share a CPU do not spin for each other.
	 * H1 kn_park_worker_is_on store release <-> H2 kn_park_worker_cpu load acquire.
	 * If the worker dies before H1 the word is an old one. */
	KN_WORD32(worker_cpu);
	/* host_cpu: writer supervisor, reader worker. The same of the supervisor.
	 * H3 kn_park_host_is_on store release <-> H4 kn_park_host_cpu load acquire.
	 * If the supervisor dies before H3 the word is an old one. */
	KN_WORD32(host_cpu);
};
_Static_assert(sizeof(struct kn_control) <= KN_PAGE, "control fits a page");

/* A slot's words are exclusive by P1/C2 (submit) or R1/R3 (return), with one exception:
 * a worker may be copying a request while the supervisor takes it back and reuses the
 * slot. So they too are shared words: writer: the lane's producer, reader: its
 * consumer. D1 slot_write store release <-> D2 slot_read load acquire, word by word:
 * whoever saw a word of the new request sees the take-back before it, and its claim
 * (C2) fails. If the writer dies between two D1 the slot was never published (P1, R1).
 */

/* The header line of a slot. */
struct kn_slot_head {
	uint16_t kind; /* enum kn_req_kind */
	uint16_t flags;
	uint32_t task;	      /* index in the supervisor's own table */
	uint32_t gen;	      /* attempt stamp of that index, never 0 */
	uint32_t area;	      /* area index, or KN_AREA_INLINE */
	uint32_t payload_off; /* from the start of the direction's area */
	uint32_t payload_len; /* bytes */
	uint32_t type;	      /* type tag; 0 for kinds ping and exec */
	uint32_t fd_n;	      /* descriptors that travel on the socket for this task */
	uint64_t deadline_ns; /* informative */
	/* kind call, ipc/call.h; zero otherwise */
	uint32_t fn;	  /* the function, as numbered by the supervisor */
	uint32_t name_n;  /* bytes of its name at the payload's end, 0: known already */
	uint32_t abort;	  /* abort id, or KN_NO_ABORT */
	uint32_t soft_ms; /* request: the call is to give up after so long; 0: never */
	union {
		uint64_t begun_ns; /* result: CLOCK_MONOTONIC; end: deadline_ns */
		uint64_t seq; /* request in a shared bank: number of its publication */
	};
};
#define KN_NO_ABORT 0xffffffffu
#define KN_AREA_INLINE 0xffffffffu
_Static_assert(sizeof(struct kn_slot_head) == KN_LINE, "header is one line");

struct kn_slot {
	_Alignas(KN_LINE) uint8_t inline_bytes[KN_INLINE_MAX];
	struct kn_slot_head head;
};
_Static_assert(sizeof(struct kn_slot) == KN_SLOT_BYTES, "slot is nine lines");

enum kn_req_kind {
	KN_REQ_PING = 1, /* payload echoed back unchanged; proves ready */
	KN_REQ_EXEC = 2, /* payload: ipc/job.h */
	KN_REQ_CALL = 3, /* payload: ipc/call.h */
	KN_REQ_N
};

/* Geometry, kept in private memory by whoever uses it. */
struct kn_layout {
	uint32_t worker_n;
	uint64_t submit_area_bytes, return_area_bytes;
	/* offsets from the start of a slice */
	uint64_t submit_slots_off, return_slots_off, submit_area_off, return_area_off;
	uint64_t slice_bytes;
	uint64_t arena_bytes;
	/* the submit region: bank_n banks of bank_bytes each, right after the header;
	 * all 0 where the pool does not share */
	uint32_t claimant_n, bank_n, bank_claimants;
	uint64_t bank_area_bytes, bank_bytes, region_bytes;
};
/* Pure. slice_n: 1..KN_SLICES_MAX, one a worker; for kind module two (worker w's stub
 * has slice w, its module slice N + w). Returns 0, or -1 if a number is out of range or
 * the sum overflows. */
int kn_layout_of(uint32_t slice_n, uint64_t submit_area_bytes,
    uint64_t return_area_bytes, struct kn_layout *out);
/* Offset of slice i from the start of the arena. */
uint64_t kn_layout_slice_off(const struct kn_layout *l, uint32_t worker);

/* Pure: give *l a submit region for claimant_n workers (1..KN_WORKERS_MAX), each bank
 * with a payload area of area_bytes. More than KN_CLAIMANTS get several banks, filled
 * evenly: worker w claims from bank w / bank_claimants as its claimant w %
 * bank_claimants. Slices move up; what is inside them stays. 0, or -1 and *l is as it
 * was. */
int kn_layout_share(struct kn_layout *l, uint32_t claimant_n, uint64_t area_bytes);
/* Offset of bank i from the start of the arena, and of its parts from its own. */
uint64_t kn_layout_bank_off(const struct kn_layout *l, uint32_t bank);
enum {
	KN_BANK_OWNERS_OFF = KN_PAGE, /* page 0: the supervisor's words */
	KN_BANK_SLOTS_OFF = 2 * KN_PAGE,
	KN_BANK_OWN_OFF = /* a page a claimant */
	KN_BANK_SLOTS_OFF +
	(KN_SLOTS * KN_SLOT_BYTES + KN_PAGE - 1) / KN_PAGE * KN_PAGE,
};
uint64_t kn_layout_bank_area_off(const struct kn_layout *l);

/* In a record: the numbers it is computed from, and back. 0, or -1: it makes no sense.
 */
struct kn_blob_w;
struct kn_blob_r;
void kn_layout_put(struct kn_blob_w *w, const struct kn_layout *l);
int kn_layout_get(struct kn_blob_r *r, struct kn_layout *out);

#endif
