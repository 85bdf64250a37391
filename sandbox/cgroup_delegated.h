/* sandbox/cgroup_delegated.h: was a cgroup really handed to us? Asked after somebody
 * (systemd) was told to do so. */
#ifndef KN_SANDBOX_CGROUP_DELEGATED_H
#define KN_SANDBOX_CGROUP_DELEGATED_H

struct kn_cgroup_where;
struct kn_err;

/* Can this process limit memory and processes of its workers? 0, or -1 with what is
 * missing, by name. Makes a pool's directories to find out, and removes them. */
int kn_cgroup_delegated(struct kn_err *e);
/* The part that only looks, at any place. */
int kn_cgroup_delegated_at(const struct kn_cgroup_where *w, struct kn_err *e);

#endif
