/* sandbox/uid.h: which host uids the workers of a root supervisor run under.
 *
 * Numbers only, from the text of /proc/self/uid_map and gid_map: pure, so that tests
 * can feed it any machine. Worker w gets uid = gid = base + w.
 *
 * Where the whole range is mapped (the initial user namespace), the base is
 * 0x40000000 + (pid << 8): far above accounts of any system, below 2^31, and different
 * for each supervisor that is alive in one PID namespace. Inside a container with a
 * smaller map, 256 ids (or as many as there are) are taken from the part least likely
 * to belong to somebody; uid 0 and the overflow uid 65534 are never taken.
 */
#ifndef KN_SANDBOX_UID_H
#define KN_SANDBOX_UID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct kn_err;

enum { KN_UID_RANGE = 256 };

struct kn_uid_range {
	uid_t base;
	uint32_t n;
};
/* 0, or -1 (KN_EK_HOST) if no unprivileged id is mapped. */
int kn_uid_choose(const char *uid_map, const char *gid_map, pid_t pid,
    struct kn_uid_range *out, struct kn_err *e);
/* Whether only one supervisor's workers have it, and no account: all processes that do
 * may be ended. What a small map has to give may be a service's, or another
 * supervisor's. */
bool kn_uid_is_one_supervisors(uid_t uid);
/* Whether a map is the initial one: one line, all 2^32 - 1 ids. */
bool kn_uid_map_is_full(const char *map);

#endif
