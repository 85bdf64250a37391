/* supervisor/resident.h: kind module: the process behind a worker's lane.
 *
 * A worker of kind module is two things: a stub, launched as for commands, and the
 * resident that the stub starts in a cell and that answers calls in a lane of its own
 * (slice N + w). The stub's lane carries the ping that says it is up, and one job, the
 * resident; that job's result says, past anything a module can reach, how the resident
 * ended. An incarnation of the core is one resident; the stub lives on from one to the
 * next while it behaves.
 */
#ifndef KN_SUPERVISOR_RESIDENT_H
#define KN_SUPERVISOR_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/call.h"
#include "ipc/err.h"
#include "ipc/job.h"
#include "ipc/lane.h"
#include "ipc/payload.h"
#include "supervisor/loop.h"
#include "supervisor/task_env.h"

struct kn_sup;
struct kn_wk;
struct kn_entry;

#define KN_RESIDENT_TASK 0xfffffffeu /* names the job to the stub */
enum {
	KN_RESIDENT_KILL_MS = 200, /* a stub that has not ended it by then goes too */
	KN_RESIDENT_LINE = 960,
	KN_RESIDENT_QUIET_MS = 3000, /* then payload pages are given back */
};

/* One stream of a resident: shown on our stderr by the line. */
struct kn_say_stream {
	struct kn_watch w;
	int fd; /* ours; -1: none */
	char line[KN_RESIDENT_LINE];
	size_t n;
	uint64_t shown;
	bool cut;
	uint64_t again_ns; /* what nobody will be shown is thrown away from then on */
};

/* Which abort ids of a bitmap are given out, and which bits are set. */
struct kn_abort_ids {
	uint32_t used[KN_ABORT_WORDS], set[KN_ABORT_WORDS];
	uint32_t at;
};

/* What the call that it is at has used of the processors; call_cpu.c. */
struct kn_call_cpu {
	bool on;	    /* something of it is watched: */
	uint64_t due_ns;    /* when to look; 0: not before the next answer */
	uint64_t results;   /* of the worker, when this began */
	bool based;	    /* seen at work, and then its processes had used */
	uint64_t base_ns;   /* this */
	bool over;	    /* it is being ended for it: */
	uint32_t task, gen; /* the call that had used too much */
};

struct kn_resident_wk {
	/* the stub's */
	bool up;    /* launched, and not known to be gone */
	bool ready; /* its ping came back */
	bool bad;   /* its lane or socket is not to be trusted */
	struct kn_slice slice;
	struct kn_submit tx;
	struct kn_return_rx rx;
	struct kn_payload pay;
	int ping_slot, job_slot, job_area;
	uint32_t launch, job_gen; /* incarnations: of the ping, of the job */
	uint64_t ping_nonce;
	bool bell_armed;
	/* the resident's */
	bool running; /* the job is out and its result has not come */
	bool ended;   /* it has: */
	struct kn_job_result end;
	bool load_failed; /* the pong was an error: */
	struct kn_err load_err;
	enum kn_cause killed; /* what the stub was told, NONE: it was not */
	uint64_t killed_ns;   /* and when */
	uint64_t kill_by_ns;  /* the stub was told to end it: else all goes then */
	bool over; /* nothing of it runs any more, the stub says: it has teardown_ms */
	int bell_fd;
	struct kn_watch w_bell;
	struct kn_say_stream out, err;
	uint64_t unread; /* lines that our stderr had no room for */
	uint32_t *known; /* by function: the incarnation that has answered one */
	uint32_t known_n;
	struct kn_abort_ids ids;
	struct kn_call_cpu cpu;
	bool rested;	     /* stopped, as it has nothing to do */
	uint64_t rest_ns;    /* when it will be, if nothing comes; 0: not */
	uint64_t backed;     /* of its submit area: bytes from the start */
	uint64_t returned;   /* of its return area: bytes ever used */
	uint64_t payload_ns; /* last use of either; 0: nothing to give back */
};

/* What all workers of kind module share. */
struct kn_module {
	int exe_fd, null_fd;
	struct kn_env env;
	uint8_t *value; /* a result that did not fit its slot */
	size_t value_room;
	char **name; /* of functions, by number; 0 is none */
	uint32_t name_n, name_room;
	uint32_t *bucket; /* hash of names -> number */
	uint32_t bucket_n;
};

/* Refuses a module file that cannot be one. */
int kn_module_open(struct kn_sup *s, struct kn_err *e);
void kn_module_close(struct kn_sup *s);
/* Number of a function, 0: none left. */
uint32_t kn_module_function(struct kn_module *m, const char *name);

/* The slice of worker w's resident. */
uint32_t kn_resident_slice(const struct kn_sup *s, uint32_t w);
/* A worker as new, before its launcher starts; and the ping that goes with BOOT. */
void kn_resident_fresh(struct kn_wk *w);
int kn_resident_ping(struct kn_wk *w, struct kn_err *e);
/* The stub is up already: a new incarnation. */
int kn_resident_again(struct kn_wk *w, uint32_t incarnation, struct kn_err *e);
/* The stub's lane. Returns how much news there was. */
unsigned kn_resident_look(struct kn_wk *w);
/* Kill the resident and leave the stub. False: the whole worker has to go. */
bool kn_resident_kill(struct kn_wk *w, enum kn_cause cause);
/* The resident's or the launcher's end, and late kills. */
void kn_resident_gone(struct kn_wk *w, uint64_t now_ns);
/* What it was at is answered by how it ended. Before GONE. */
void kn_resident_answer(struct kn_wk *w);
/* Why it was never ready. False: the launcher's end says it. */
bool kn_resident_explain(struct kn_wk *w, struct kn_err *e);
/* Watches and descriptors of one resident. */
void kn_resident_close(struct kn_wk *w);
/* The worker's launcher is gone. */
void kn_resident_free(struct kn_wk *w);
/* When something of it is due; 0: never. And do it. */
uint64_t kn_resident_due(const struct kn_wk *w);
void kn_resident_timer(struct kn_wk *w, uint64_t now_ns);

/* resident_rest.c: a resident that has had nothing to do for a while is stopped where
 * its memory has to be watched, and goes on before it is woken. When it will be, 0:
 * never; and do it. */
bool kn_rest_wanted(const struct kn_sup *s);
uint64_t kn_rest_due(struct kn_wk *w, uint64_t now_ns);
void kn_rest_timer(struct kn_wk *w, uint64_t now_ns);
void kn_rest_end(struct kn_wk *w);

/* resident_say.c */
/* A line of ours among what the module prints. */
void kn_say_note(struct kn_wk *w, const char *text);
int kn_say_open(struct kn_wk *w, struct kn_say_stream *p, int fd_own, struct kn_err *e);
void kn_say_drain(struct kn_wk *w, struct kn_say_stream *p);
uint64_t kn_say_due(const struct kn_resident_wk *r); /* 0: never */
void kn_say_timer(struct kn_wk *w, uint64_t now_ns);
void kn_say_close(struct kn_wk *w, struct kn_say_stream *p);

#endif
