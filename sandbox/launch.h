/* sandbox/launch.h: turns a policy into running, confined workers.
 *
 * A launcher is built once per pool: argument vectors, bind sources resolved to
 * descriptors once (never again by name), stub image in a sealed memfd, cgroups. Then
 * kn_launch_start() per worker: fork, join cgroup, as root take the worker's own uid
 * (idmapped mounts for the caller's files), exec bwrap, which execs the stub as PID 1.
 */
#ifndef KN_SANDBOX_LAUNCH_H
#define KN_SANDBOX_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/fd.h"
#include "ipc/layout.h"
#include "sandbox/layer.h"

/* Files that one task may hand back: bytes of one, and of all. */
#define KN_FILE_BYTES_MAX (16ull << 20)
#define KN_FILES_BYTES_MAX (64ull << 20)

struct kn_policy;
struct kn_host;
struct kn_err;
struct kn_launcher;
struct kn_filter;

/* Checks everything that can be checked before a process is started: binds exist,
 * required layers can be had (else -1: refused, by name). policy and host are
 * borrowed for the launcher's life. */
int kn_launcher_new(const struct kn_policy *p, const struct kn_host *h,
    const uint8_t pool_id[16], uint32_t worker_n, const struct kn_layout *layout,
    struct kn_launcher **out, struct kn_err *e);
void kn_launcher_free(struct kn_launcher *l); /* also removes the cgroups */
const struct kn_layers *kn_launcher_layers(const struct kn_launcher *l);
/* Where files of w's tasks lie if not in memory: *out_dev, and whose they are. l may be
 * NULL. */
bool kn_launcher_files(
    const struct kn_launcher *l, uint32_t w, uint64_t *out_dev, uint32_t *out_uid);
/* What goes without a layer that is not enforced, in words; NULL: this kind of launcher
 * has nothing of its own to say. */
const char *kn_launcher_lacks(const struct kn_launcher *l, enum kn_layer layer);
/* The mount whose changes are brought out, and the directory that they go to; NULL:
 * there is none. l may be NULL. */
struct kn_mount;
const struct kn_mount *kn_launcher_out(const struct kn_launcher *l, int *out_dir);

struct kn_launched {
	struct kn_proc proc; /* the launcher process (bwrap's outer one) */
	int sock;	     /* our end of the private socket */
	int err_fd;  /* read end, non-blocking: what the launcher prints on stderr */
	int bell_fd; /* the worker's doorbell eventfd (ours to poll) */
	bool up;     /* set by the caller: the worker has answered once */
};
#define KN_LAUNCHED_NONE \
	{ \
		{ -1, 0 }, -1, -1, -1, false \
	}

/* Start worker w. Fails before or at exec with the step in e. On success the child is
 * on its way; nothing is ready yet. The BOOT message is sent by kn_launch_boot(), so
 * that the filter can be compiled while bwrap starts. */
int kn_launch_start(struct kn_launcher *l, uint32_t w, uint32_t incarnation,
    struct kn_launched *out, struct kn_err *e);
int kn_launch_boot(struct kn_launcher *l, uint32_t w, uint32_t incarnation,
    const struct kn_filter *f, int arena_fd, const struct kn_launched *lw,
    struct kn_err *e);
/* Kill all of worker w, best means first: cgroup.kill, then SIGKILL to proc. */
void kn_launch_kill(struct kn_launcher *l, uint32_t w, const struct kn_launched *lw);
/* After the reap: wait, a second at most, until what the launcher started has gone too.
 * For the end of a pool: a loop watches the socket for its end instead. */
void kn_launch_await_gone(const struct kn_launched *lw);
/* After the reap: release cgroup directories and descriptors. Waits for nobody. */
void kn_launch_release(struct kn_launcher *l, uint32_t w, struct kn_launched *lw);
/* How many ms the launcher's process may live on after its sandbox: the client of an
 * engine removes the container first. l may be NULL. */
unsigned kn_launcher_end_ms(const struct kn_launcher *l);
/* The path of the launcher's program; owned by the launcher. */
const char *kn_launcher_program(const struct kn_launcher *l);
/* The whole argument vector as it would be executed, for --dry-run: NULL-terminated,
 * owned by the launcher. */
const char *const *kn_launcher_argv(const struct kn_launcher *l);
uint64_t kn_launcher_idle_memory(struct kn_launcher *l, uint32_t w);
/* Processor time of all processes of worker w until now: what its cgroup has counted,
 * or else the sum over those that live and those that they waited for. 0, or -1: there
 * is nothing to read. */
int kn_launch_cpu_now(
    struct kn_launcher *l, uint32_t w, const struct kn_launched *lw, uint64_t *out_ns);
/* Bytes that worker w has charged now; 0: there is no cgroup to say it. */
uint64_t kn_launch_memory_now(struct kn_launcher *l, uint32_t w);
/* Text for a worker that ended before it was ready: its stderr (made printable), exit
 * status and the likely cause turned into one error with a hint. */
void kn_launch_explain(const struct kn_launcher *l, const char *stderr_text,
    int wait_status, struct kn_err *e);

#endif
