/* ipc/call.h: the wire form of one call into a resident module, and of its answer.
 *
 * Supervisor -> module (KN_REQ_CALL): head.type and the payload's first bytes are the
 * argument; head.fn names the function by a number that the supervisor chose for the
 * life of the pool. A worker that has not answered a call of that number yet gets the
 * name with it: the last head.name_n bytes of the payload, without a NUL. So no message
 * must come before another. The module's process keeps number -> address.
 *
 * Module -> supervisor: kind, task, gen as asked; head.type and the payload are the
 * value, or KN_TYPE_ERROR and an encoded error; begun_ns and deadline_ns say when the
 * call began and ended. Every field of it is hostile input. flags: enum kn_call_flag.
 *
 * Payloads: up to KN_INLINE_MAX in the slot, else in the direction's area
 * (ipc/payload.h); the consumer frees the area by one xor when it has read it: the
 * module when the call has returned (its argument is read in place), the supervisor
 * once it has copied.
 *
 * Ready is the echo of a PING in the module's lane (see KN_PING_TELL). A module that
 * cannot be loaded, or whose init hook fails, answers the PING with KN_CALL_FAILED and
 * an encoded error.
 */
#ifndef KN_IPC_CALL_H
#define KN_IPC_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/layout.h"

/* Type tags of values. Numbers are wire; 0 is no type. Integers and floats are the
 * machine's own (both sides run on it). Arrays are elements back to back. */
enum kn_type {
	KN_TYPE_NULL = 1, /* no bytes */
	KN_TYPE_BOOL,	  /* one byte, 0 or 1 */
	KN_TYPE_I64,
	KN_TYPE_F64,
	KN_TYPE_TEXT,  /* UTF-8, checked by whoever receives it */
	KN_TYPE_BYTES, /* anything */
	KN_TYPE_JSON,  /* UTF-8 text of one JSON value */
	KN_TYPE_I32S,
	KN_TYPE_I64S,
	KN_TYPE_U64S,
	KN_TYPE_F64S,
	KN_TYPE_ERROR, /* results only: kn_call_error_decode() */
	KN_TYPE_N
};
const char *kn_type_name(enum kn_type t); /* "i64", "numbers of f64", ... */
/* Whether n bytes can be a value of type t (sizes, bool's byte, UTF-8 of text; JSON is
 * only held to be UTF-8). bytes: a private copy. */
bool kn_value_check(uint32_t type, const void *bytes, size_t n);

enum kn_call_flag {
	KN_CALL_FAILED = 1 << 0,    /* the payload is an error */
	KN_CALL_NOT_FOUND = 1 << 1, /* with FAILED: the module exports no such task */
	KN_CALL_GAVE_UP = 1 << 2,   /* the task saw that it should give up */
};

/* Flag of a PING to a resident: its echo may have text behind the nonce, inline: which
 * file it loaded, with which libraries, and the tasks that it exports. */
enum { KN_PING_TELL = 1 << 8 };

/* An error with its chain of causes, outermost first. */
enum { KN_CALL_CAUSES = 8, KN_CALL_ERROR_TEXT = 2048 };
struct kn_call_error {
	uint32_t n; /* 1..KN_CALL_CAUSES */
	struct {
		const char *name, *message, *detail; /* detail "" if none */
	} link[KN_CALL_CAUSES];
};
/* Size needed; writes at most cap bytes. Texts are cut at KN_CALL_ERROR_TEXT. */
size_t kn_call_error_encode(const struct kn_call_error *e, void *buf, size_t cap);
/* Strings point into buf (a private copy). 0 or -1. Each text is valid UTF-8. */
int kn_call_error_decode(const void *buf, size_t n, struct kn_call_error *out);

/* What the module's process is told at its start: a sealed memfd. Descriptors of the
 * process, put there by the stub (KN_JOB_RESIDENT): */
enum kn_resident_fd {
	KN_RESIDENT_EXE = 3, /* its own image; closed by execve */
	KN_RESIDENT_ARENA,   /* closed once the slice is mapped */
	KN_RESIDENT_BELL,    /* kept: the doorbell's eventfd */
	KN_RESIDENT_RECORD,  /* closed once read */
	KN_RESIDENT_REGION,  /* where there is a submit region: the arena, open for
				reading only; closed once that is mapped */
	KN_RESIDENT_FD_END
};
struct kn_resident {
	struct kn_layout layout; /* recomputed by the reader */
	uint8_t pool_id[16];
	uint32_t slice;	  /* index */
	uint32_t spin_us; /* before it parks; 0: parks at once */
	uint32_t need_mseal;
	uint32_t may_place; /* it may choose its CPU */
	uint32_t may_name;  /* and what it is called */
	/* where the layout has a submit region: it claims from its bank, and its own
	 * submit lane has the PING only */
	uint32_t claim, region_lanes; /* enum kn_claim_how; slots a region */
	uint64_t payload_max;	      /* of one result */
	const char *module;	      /* path inside */
	const char *init;	      /* text for the init hook, "" if none */
};
struct kn_err;
int kn_resident_seal(const struct kn_resident *r, int *out_fd, struct kn_err *e);
/* Strings point into buf. 0 or -1. */
int kn_resident_decode(const void *buf, size_t n, struct kn_resident *out);

#endif
