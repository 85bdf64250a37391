/* cmd/bench_peer.h: other sandboxes, as a user would start one per task. */
#ifndef KN_CMD_BENCH_PEER_H
#define KN_CMD_BENCH_PEER_H

#include "cmd/bench.h"

enum kn_peer {
	KN_PEER_BWRAP,
	KN_PEER_UNSHARE,
	KN_PEER_FIREJAIL,
	KN_PEER_CRUN,
	KN_PEER_RUNC,
	KN_PEER_NSJAIL,
	KN_PEER_MINIJAIL,
	KN_PEER_ISOLATE,
	KN_PEER_N
};
const char *kn_peer_name(int peer);

enum { KN_PEER_ARGS = 64 };
struct kn_peers {
	char path[KN_PEER_N][256]; /* "": absent */
	const char *argv[KN_PEER_N][KN_PEER_ARGS];
	struct kn_bench_cmd cmd[KN_PEER_N];
	char bundle[128], state[128], text[4][192]; /* what argv points to */
	bool isolate_made;
};
/* Which are here, and how each runs the task's program. */
void kn_peers_find(struct kn_peers *p, struct kn_bench *b, int lanes);
void kn_peers_end(struct kn_peers *p, struct kn_bench *b);

#endif
