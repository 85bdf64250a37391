/* sandbox/stub/direct.h: a worker without namespaces (launcher direct), and what stands
 * in for them.
 *
 * Which processes are the worker's: those in its Landlock domain, which has nothing but
 * the scopes of signals and abstract sockets. A signal to all (kill(-1)) that is sent
 * from within reaches who is in it and nobody else, in one pass, as in a PID namespace.
 * The stub is in one, a cell's init in one within that, the task in a third. Where the
 * kernel has no scopes (before 6.12) init kills its children until it has none: orphans
 * come to it, as it is a subreaper; who makes processes faster than that is left to the
 * supervisor, who as root ends all of the worker's uid, where no one else can have it.
 *
 * Who ends whom: the stub dies with the supervisor and init hears of the stub's end; it
 * has left the stub's process group, which gets killed. The stub takes over from an
 * init that dies. Init holds the private socket, whose end says that nothing is left.
 *
 * Where files go: <place>/task and <place>/tmp, made for each task and emptied after
 * it.
 */
#ifndef KN_STUB_DIRECT_H
#define KN_STUB_DIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kn_boot;
struct kn_cell;
struct kn_job;
struct kn_land;

enum {
	KN_DIRECT_PATH = 512,
	KN_DIRECT_ENV = 2048,
	KN_DIRECT_TEXT = 64 * 1024,
	KN_DIRECT_SHOWN = 8 * 1024,
};

struct kn_direct {
	const char *place; /* absolute; NULL: there are namespaces */
	bool scoped;
	int place_fd;
	int scope_fd; /* rules of nothing but scopes, or -1 */
	int stub_pid;
	/* what a task is told of its directories: /task and /tmp are said so */
	char task[KN_DIRECT_PATH], tmp[KN_DIRECT_PATH];
	const char *env[KN_DIRECT_ENV];
	/* what the policy shows below /task and /tmp: those names are meant as they
	 * are; texts one after the other */
	char shown[KN_DIRECT_SHOWN];
	size_t shown_n;
	uint64_t others,
	    others_ns; /* processes of our user, and when they were counted */
	char text[KN_DIRECT_TEXT];
};

/* All return 0 or a negative errno. *out_what: a word on what failed. */

/* In the stub, first of all: its directory, its domain. */
int kn_direct_enter(struct kn_direct *d, const char **out_what);
/* Landlock rules: what the policy shows, where it stands on the machine. Each must be
 * the file that was meant, and of use to who we are. */
int kn_direct_rules(struct kn_land *l, const struct kn_boot *b, struct kn_direct *d,
    const char **out_what);
/* No capability is left. */
int kn_direct_caps(void);

/* Before a task: /task as an open directory. */
int kn_direct_task_fs(struct kn_direct *d);
/* Its directory, environment and program by the names that they have here. */
int kn_direct_plan(struct kn_direct *d, const struct kn_job *j, struct kn_cell *c);
/* Processes of our user on this machine, counted at most once a second. */
uint64_t kn_direct_others(struct kn_direct *d, int proc_fd);
/* After it, when nothing of it runs. */
int kn_direct_clear(struct kn_direct *d);
/* Whatever is left of a cell whose init has ended: killed and reaped. */
void kn_direct_drain(const struct kn_direct *d);

/* In a cell's init. */
int kn_direct_init(const struct kn_direct *d, int on_death);

#endif
