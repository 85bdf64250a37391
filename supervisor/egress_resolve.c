/* supervisor/egress_resolve.c: see egress_resolve.h. */
#include "supervisor/egress_resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/err.h"

enum { OUTPUT_MAX = 16 * 1024 };

struct kn_lookup {
	struct kn_resolver *r;
	struct kn_lookup *next, **prev;
	char name[KN_NET_NAME_MAX + 1];
	uint32_t worker;
	int pidfd, out_fd;
	struct kn_watch watch;
	uint64_t by_ns; /* killed then */
	bool late;
};

/* ---- the list of who waits ---- */

void
kn_resolve_cancel(struct kn_resolve_wait *w)
{
	if (!w->prev)
		return;
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->next = NULL;
	w->prev = NULL;
}

static void
enlist(struct kn_resolver *r, struct kn_resolve_wait *w)
{
	struct kn_resolve_wait **at = &r->first;

	while (*at)
		at = &(*at)->next;
	w->next = NULL;
	w->prev = at;
	*at = w;
}

/* ---- answers that are kept ---- */

static const struct kn_addresses *
find_kept(const struct kn_resolver *r, const char *name, uint64_t now)
{
	for (unsigned i = 0; i < KN_RESOLVE_KEPT; i++)
		if (r->kept[i].until_ns > now && strcmp(r->kept[i].name, name) == 0)
			return &r->kept[i].a;
	return NULL;
}

static void
keep(struct kn_resolver *r, const char *name, const struct kn_addresses *a)
{
	struct kn_kept *k = &r->kept[r->kept_at++ % KN_RESOLVE_KEPT];

	memcpy(k->name, name, sizeof k->name);
	k->a = *a;
	k->until_ns = kn_clock_after_ms(
	    kn_clock_now(), a->n ? KN_RESOLVE_KEEP_MS : KN_RESOLVE_KEEP_BAD_MS);
}

void
kn_resolve_read(const char *text, size_t n, struct kn_addresses *out)
{
	memset(out, 0, sizeof *out);
	while (n > 0 && out->n < KN_RESOLVE_ADDRESSES) {
		const char *end = memchr(text, '\n', n);
		size_t len = end ? (size_t)(end - text) : n, word = 0;
		struct kn_net_host h;
		bool again = false;

		while (word < len && text[word] != ' ' && text[word] != '\t')
			word++;
		if (kn_net_host_read(text, word, &h) && h.family) {
			for (unsigned i = 0; i < out->n; i++)
				again |= strcmp(out->v[i].text, h.text) == 0;
			if (!again)
				out->v[out->n++] = h;
		}
		len += end ? 1 : 0;
		text += len;
		n -= len;
	}
}

/* ---- one look-up ---- */

/* In the child: nothing but plain system calls. */
static _Noreturn void
become_getent(const char *name, int null_fd, int out_fd, pid_t parent)
{
	static char *const env[] = { NULL };
	static const char *const at[] = { "/usr/bin/getent", "/bin/getent" };
	char prog[] = "getent", database[] = "ahosts", host[KN_NET_NAME_MAX + 1];
	char *argv[] = { prog, database, host, NULL };
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;

	memcpy(host, name, sizeof host);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		(void)sigaction(sig, &dfl, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(null_fd, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(null_fd, 2) < 0 ||
	    syscall(SYS_close_range, 3, ~0u, 0) < 0)
		_exit(127);
	for (size_t i = 0; i < sizeof at / sizeof *at; i++)
		(void)execve(at[i], argv, env);
	_exit(127);
}

static void
free_lookup(struct kn_lookup *k)
{
	*k->prev = k->next;
	if (k->next)
		k->next->prev = k->prev;
	k->r->running_n--;
	kn_loop_del(k->r->loop, &k->watch);
	kn_fd_close(&k->pidfd);
	kn_fd_close(&k->out_fd);
	free(k);
}

static void answer(
    struct kn_resolver *r, const char *name, const struct kn_addresses *a);
static void begin_some(struct kn_resolver *r);

/* It is not a child that the program around us would hear of or could wait for. */
static void
reap(const struct kn_lookup *k, bool wait)
{
	siginfo_t si;

	while (waitid(P_PIDFD, (id_t)k->pidfd, &si,
		   WEXITED | __WALL | (wait ? 0 : WNOHANG)) < 0 &&
	       errno == EINTR)
		;
}

static void
on_exit_of(struct kn_watch *wt, uint32_t events)
{
	struct kn_lookup *k = wt->ctx;
	struct kn_resolver *r = k->r;
	char text[OUTPUT_MAX], name[KN_NET_NAME_MAX + 1];
	struct kn_addresses a = { .n = 0 };
	size_t n = 0;
	ssize_t got = 1;

	(void)events;
	while (!k->late && n < sizeof text &&
	       (got = read(k->out_fd, text + n, sizeof text - n)) > 0)
		n += (size_t)got;
	kn_resolve_read(text, n, &a);
	reap(k, false);
	memcpy(name, k->name, sizeof name);
	free_lookup(k);
	keep(r, name, &a);
	answer(r, name, &a);
	begin_some(r);
}

static struct kn_lookup *
start(struct kn_resolver *r, const char *name, uint32_t worker)
{
	struct kn_lookup *k = calloc(1, sizeof *k);
	struct clone_args ca = { .flags = CLONE_PIDFD };
	int out[2] = { -1, -1 };
	pid_t self = getpid();
	struct kn_err e;
	long pid;

	if (!k)
		return NULL;
	*k = (struct kn_lookup){ .r = r, .worker = worker, .pidfd = -1, .out_fd = -1 };
	k->watch.fd = -1;
	memcpy(k->name, name, sizeof k->name);
	if (pipe2(out, O_CLOEXEC) < 0) {
		free(k);
		return NULL;
	}
	k->out_fd = out[0];
	ca.pidfd = (uint64_t)(uintptr_t)&k->pidfd;
	pid = fcntl(out[0], F_SETFL, O_NONBLOCK) < 0
		  ? -1
		  : syscall(SYS_clone3, &ca, sizeof ca);
	if (pid == 0)
		become_getent(name, r->null_fd, out[1], self);
	kn_fd_close(&out[1]);
	if (pid < 0) {
		kn_fd_close(&k->out_fd);
		free(k);
		return NULL;
	}
	k->by_ns = kn_clock_after_ms(kn_clock_now(), KN_RESOLVE_MS);
	if (!r->due_ns || k->by_ns < r->due_ns)
		r->due_ns = k->by_ns;
	k->next = r->running;
	k->prev = &r->running;
	if (k->next)
		k->next->prev = &k->next;
	r->running = k;
	r->running_n++;
	if (kn_loop_add(r->loop, &k->watch, k->pidfd, EPOLLIN, on_exit_of, k, &e) == 0)
		return k;
	(void)syscall(SYS_pidfd_send_signal, k->pidfd, SIGKILL, NULL, 0);
	reap(k, true);
	free_lookup(k);
	return NULL;
}

/* ---- who waits, and who is next ---- */

static void
answer(struct kn_resolver *r, const char *name, const struct kn_addresses *a)
{
	struct kn_resolve_wait *w = r->first;

	/* What is told may cancel others, or begin new ones: from the start again. */
	while (w) {
		if (strcmp(w->name, name) != 0) {
			w = w->next;
			continue;
		}
		kn_resolve_cancel(w);
		w->done(w, a);
		w = r->first;
	}
}

static bool
may_begin(const struct kn_resolver *r, const struct kn_resolve_wait *w)
{
	unsigned own = 0;

	if (r->running_n >= KN_RESOLVE_AT_ONCE)
		return false;
	for (const struct kn_lookup *k = r->running; k; k = k->next)
		own += k->worker == w->worker;
	return own < KN_RESOLVE_PER_WORKER;
}

static bool
is_running(const struct kn_resolver *r, const char *name)
{
	for (const struct kn_lookup *k = r->running; k; k = k->next)
		if (strcmp(k->name, name) == 0)
			return true;
	return false;
}

static void
begin_some(struct kn_resolver *r)
{
	const struct kn_addresses none = { .n = 0 };
	struct kn_resolve_wait *w = r->first;

	while (w) {
		char name[KN_NET_NAME_MAX + 1];

		if (is_running(r, w->name) || !may_begin(r, w)) {
			w = w->next;
			continue;
		}
		if (start(r, w->name, w->worker)) {
			w = w->next;
			continue;
		}
		memcpy(name, w->name, sizeof name);
		answer(r, name, &none);
		w = r->first;
	}
}

void
kn_resolve(
    struct kn_resolver *r, struct kn_resolve_wait *w, const char *name, uint32_t worker)
{
	const struct kn_addresses *kept = find_kept(r, name, kn_clock_now());
	struct kn_addresses a;

	if (kept) {
		a = *kept;
		w->done(w, &a);
		return;
	}
	memset(w->name, 0, sizeof w->name);
	memcpy(w->name, name, strnlen(name, KN_NET_NAME_MAX));
	w->worker = worker;
	enlist(r, w);
	begin_some(r);
}

void
kn_resolver_timer(struct kn_resolver *r, uint64_t now_ns)
{
	if (!r->due_ns || now_ns < r->due_ns)
		return;
	r->due_ns = 0;
	for (struct kn_lookup *k = r->running; k; k = k->next) {
		if (!k->late && k->by_ns <= now_ns) {
			k->late = true; /* its end is told as any other's */
			(void)syscall(
			    SYS_pidfd_send_signal, k->pidfd, SIGKILL, NULL, 0);
		}
		if (!k->late && (!r->due_ns || k->by_ns < r->due_ns))
			r->due_ns = k->by_ns;
	}
}

int
kn_resolver_open(struct kn_resolver *r, struct kn_loop *l, struct kn_err *e)
{
	memset(r, 0, sizeof *r);
	r->loop = l;
	r->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	return r->null_fd < 0 ? kn_err_sys(e, KN_EK_HOST, "open /dev/null") : 0;
}

void
kn_resolver_close(struct kn_resolver *r)
{
	while (r->running) {
		(void)syscall(
		    SYS_pidfd_send_signal, r->running->pidfd, SIGKILL, NULL, 0);
		reap(r->running, true);
		free_lookup(r->running);
	}
	if (r->loop)
		kn_fd_close(&r->null_fd);
}
