/* cmd/serve_int.h: what the files of `serve` share.
 *
 *   serve.c         the verb: open, loop, drain, end
 *   serve_opt.c     its options
 *   serve_pool.c    pools: the one of today's policy, and those of before a reload
 *   serve_client.c  one connection: task lines in, result lines out
 *   serve_listen.c  sockets that are made here or handed over by whoever starts us
 *   serve_room.c    descriptors: connections never take those of the pool
 *   serve_weigh.c   memory: what clients send and do not read is bounded for all
 *   serve_http.c    /health and /metrics
 *   serve_metrics.c the numbers
 *   serve_view.c    /workers
 *   serve_notify.c  whoever started us is told; the health file
 *
 * One thread, one poll(): nothing here waits for anybody. All of it goes through
 * <knit/pool.h>.
 */
#ifndef KN_CMD_SERVE_INT_H
#define KN_CMD_SERVE_INT_H

#include <knit/pool.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/cmd.h"
#include "cmd/module_say.h"
#include "cmd/opt.h"
#include "cmd/out.h"
#include "ipc/err.h"

enum {
	KN_SERVE_CLIENTS = 64, /* connections at one time, unless asked for others */
	KN_SERVE_CLIENTS_MOST = 4096,
	KN_SERVE_GRACE_S = 10, /* a drain waits so long for one that reads nothing */
	KN_SERVE_GRACE_MOST = 86400,
	KN_SERVE_LISTEN_MOST = 8,
	KN_SERVE_PATH_MOST = 107, /* of a socket's name, struct sockaddr_un */
};

struct kn_serve_opts {
	struct kn_run_opts run; /* those that run has too */
	const char *socket;	/* NULL: only such as are handed over */
	const char *http;	/* path, or a loopback address with a port */
	const char *health_file;
	const char *probe; /* ask the server that answers there, and serve nothing */
	bool alive;	   /* of the probe: whatever it answers */
	unsigned socket_mode;
	unsigned clients;
	unsigned grace_ms; /* draining: for one that reads nothing */
	bool help;
};
/* argv[0] is the verb. 0, or -1 with e; kn_opt_fini(&o->run) in both cases. */
int kn_serve_opt_parse(
    struct kn_serve_opts *o, int argc, char **argv, struct kn_err *e);
/* Fresh. */
char *kn_serve_opt_help(void);
/* --probe: the status of the process. */
int kn_serve_probe(const struct kn_serve_opts *o);

/* ---- sockets ---- */

enum kn_serve_for { KN_FOR_TASKS, KN_FOR_HTTP };
struct kn_serve_listener {
	int fd;
	enum kn_serve_for what;
	char path[KN_SERVE_PATH_MOST + 1]; /* to be removed at the end; "": none */
	dev_t dev;			   /* so that only our own is removed */
	ino_t ino;
	bool local;	     /* a unix socket */
	uint64_t rest_until; /* no connection is taken before; 0: at any time */
};

/* ---- pools ---- */

struct kn_serve_pool {
	struct knit_policy *policy;
	struct knit_pool *pool;
	unsigned clients; /* that give it lines */
	int trace_fd;	  /* its own: each writes a whole document */
	bool draining;
	bool ended;		    /* there will be no news of it */
	bool ready;		    /* a worker has been */
	struct kn_serve_pool *next; /* older */
};

/* Of those that have ended, so that no number ever falls. */
struct kn_serve_totals {
	uint64_t clients, accepted, abandoned, stolen;
	uint64_t workers_started, workers_lost, failed_launches;
	uint64_t reloads, failed_reloads;
	uint64_t verdicts[KNIT_VERDICT_N];
};

/* ---- connections ---- */

struct kn_serve;
struct kn_client {
	struct kn_serve *serve;
	struct kn_serve_pool *pool; /* of its time */
	struct knit_batch *batch;
	struct kn_out out;
	int fd;
	unsigned number;
	uint64_t held;	  /* bytes of its lines, when it was last looked at */
	uint64_t deaf_at; /* draining: it is let go then, if it has read nothing */
	uint64_t seen_sent;
	int seen_kept; /* by the kernel, unread */
	bool fresh;    /* nothing has come from it */
	bool is_http;  /* it was none of ours */
	bool counted;
	bool reading;	/* it may send more */
	bool told;	/* why none of it can be taken was said */
	bool stopped;	/* we take no more of it */
	bool all;	/* all that it sent is answered */
	bool gone;	/* nobody takes the results any more */
	bool no_memory; /* a result could not be written: the connection ends */
	struct kn_client *next;
};

enum {
	KN_HTTP_HEAD_MOST = 8192,
	KN_HTTP_MOST = 16,
	KN_HTTP_LEAST = 4, /* whatever else is open */
	KN_HTTP_MS = 5000,
};
struct kn_http {
	int fd; /* -1: free */
	uint64_t by_ns;
	bool local; /* came by a unix socket */
	size_t got, sent, n;
	char *answer; /* NULL: the request is still coming */
	char head[KN_HTTP_HEAD_MOST];
};

enum kn_serve_state {
	KN_SERVE_STARTING, /* no worker has been ready yet */
	KN_SERVE_SERVING,
	KN_SERVE_DRAINING, /* takes nothing more, ends what it took */
	KN_SERVE_KILLING,  /* all is cancelled; clients that do not read are left */
};
struct kn_serve {
	struct kn_serve_opts opt;
	struct kn_voice voice;
	struct kn_module_voice module_voice;
	struct knit_pool_options how;
	struct kn_serve_pool *pools;  /* the first is the current one */
	struct kn_serve_pool *coming; /* of a reload: no worker of it is ready yet */
	unsigned traces;	      /* files of trace events that were made */
	struct kn_client *clients;
	unsigned client_n;
	unsigned number;     /* of the last client */
	bool crowded;	     /* they hold as much as all together may */
	unsigned first;	     /* which of those that hold much goes on all the same */
	unsigned client_fds; /* that one may come to have open, at most */
	struct kn_serve_listener listeners[KN_SERVE_LISTEN_MOST];
	size_t listener_n;
	struct kn_http http[KN_HTTP_MOST];
	struct kn_serve_totals totals;
	enum kn_serve_state state;
	int sig_fd;
	int signo; /* that stopped it */
	sigset_t mask;
	uint64_t start_ns;
	uint64_t base_fds; /* open before the first pool was */
	bool full_said;
	struct pollfd *polled;
	size_t polled_cap;
	uint64_t watchdog_ns, watchdog_at; /* 0: nobody watches */
	bool health_written;
	bool broken; /* a pool cannot go on */
	struct kn_err why;
};

/* ---- serve_pool.c ---- */

/* The current one; what was it before serves on until its last client has gone. */
int kn_serve_pool_open(struct kn_serve *s, struct kn_err *e);
/* Do the pools' work; pools that nobody needs any more end. -1 with e: the current one
 * cannot go on. */
int kn_serve_pools_work(struct kn_serve *s, struct kn_err *e);
/* SIGHUP: read the policy again. What is wrong with it is said, and nothing changes;
 * nor does it before a worker of the new pool is ready. */
void kn_serve_reload(struct kn_serve *s);
void kn_serve_pools_close(struct kn_serve *s);
/* All that runs is cancelled. */
void kn_serve_pools_kill(struct kn_serve *s);

/* ---- serve_client.c ---- */

/* Takes fd. */
void kn_client_open(struct kn_serve *s, int fd);
/* What its socket is to be polled for, -1: not at all. */
int kn_client_events(const struct kn_client *c);
void kn_client_ready(struct kn_client *c, short revents);
/* After the pools' work: results, and tasks that can begin. */
void kn_client_work(struct kn_client *c);
/* Nothing is left to do for it. */
bool kn_client_done(const struct kn_client *c);
/* Its lines end here; those that were taken are answered. */
void kn_client_no_more(struct kn_client *c);
/* While draining: those that do not read are let go. When to look again, 0: not. */
uint64_t kn_client_expire(struct kn_serve *s);
/* Unlinks and frees it; what still runs for it is cancelled. */
void kn_client_close(struct kn_client *c);

/* ---- serve_listen.c ---- */

int kn_serve_listen(struct kn_serve *s, struct kn_err *e);
void kn_serve_unlisten(struct kn_serve *s, enum kn_serve_for what);
/* -1: nobody there now. */
int kn_serve_accept(const struct kn_serve_listener *l);

/* ---- serve_room.c ---- */

enum {
	/* Its connection, the files that it keeps, its ids when they are many. */
	KN_SERVE_CLIENT_FDS = 3,
	KN_SERVE_PATHS_MOST = 64, /* and one for each path of the policy, up to this */
};
/* One client, some connections for health, and one that is turned away. */
unsigned kn_serve_fds_least(const struct kn_serve *s);
struct kn_serve_fds {
	uint64_t open, limit;
	uint64_t kept; /* for pools and what else is always served, used or not */
};
void kn_serve_fds(const struct kn_serve *s, struct kn_serve_fds *out);
/* Once, before the first pool. */
void kn_serve_room_open(struct kn_serve *s);
/* Before a pool is opened with that policy. */
void kn_serve_room_policy(struct kn_serve *s, struct knit_policy *policy);
/* Take a connection that came; it rests otherwise, until one has ended or time has
 * passed: poll() would tell of it at once, again and again. */
void kn_serve_take(struct kn_serve *s, struct kn_serve_listener *l);
/* A connection has ended. */
void kn_serve_room_freed(struct kn_serve *s);
/* When a rest is over, 0: none. Those that are over end. */
uint64_t kn_serve_rest(struct kn_serve *s);

/* ---- serve_weigh.c ---- */

/* What all of them hold. */
void kn_serve_weigh(struct kn_serve *s);
/* By that: may more of its lines be read? */
bool kn_client_may_send(const struct kn_client *c);
/* Is there room for more of its answers? */
bool kn_client_room(const struct kn_client *c);

/* ---- serve_http.c, serve_metrics.c ---- */

/* Takes fd. local: of a unix socket. */
void kn_http_open(struct kn_serve *s, int fd, bool local);
unsigned kn_http_count(const struct kn_serve *s);
/* The one that came first, if there is one, goes. */
void kn_http_drop_oldest(struct kn_serve *s);
int kn_http_events(const struct kn_http *h);
void kn_http_ready(struct kn_serve *s, struct kn_http *h, short revents);
/* Those that take too long are let go. When to look again, 0: not. */
uint64_t kn_http_expire(struct kn_serve *s);
void kn_http_close(struct kn_http *h);
struct kn_serve_sums {
	uint64_t accepted, live, running, workers, pools;
	struct kn_serve_totals t;
};
void kn_serve_sum(const struct kn_serve *s, struct kn_serve_sums *sum); /* into 0 */
/* Fresh; NULL: no memory. */
char *kn_serve_view(const struct kn_serve *s, size_t *out_n);
char *kn_serve_metrics(struct kn_serve *s, size_t *out_n);
/* "starting", "serving", "draining". */
const char *kn_serve_state_name(const struct kn_serve *s);

/* ---- serve_notify.c ---- */

/* Reads and removes NOTIFY_SOCKET and WATCHDOG_USEC from the environment. */
int kn_notify_open(struct kn_serve *s, struct kn_err *e);
/* sd_notify(3): "READY=1". Nobody asked: nothing. */
void kn_notify(const char *text);
void kn_notify_state(struct kn_serve *s);
/* The watchdog's turn; when the next one is, 0: never. */
uint64_t kn_notify_watchdog(struct kn_serve *s);
/* What a killed server left must not say that this one serves, and what is somebody
 * else's file is not replaced. Once the sockets are ours: a second server that is
 * started over a live one must not take that one's. */
int kn_notify_begin(const struct kn_serve *s, struct kn_err *e);
void kn_notify_close(struct kn_serve *s);

#endif
