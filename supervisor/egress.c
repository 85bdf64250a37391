/* supervisor/egress.c: listeners, whose connections these are, and time; see egress.h.
 *
 * A worker's share of connections is its own: one whose task opens all it can does not
 * take any from the others, and what it opens beyond waits unaccepted.
 */
#include "supervisor/egress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "supervisor/egress_int.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

enum { ACCEPTS_AT_ONCE = 16, BACKLOG_AT_MOST = 1024, FDS_BESIDE = 16 };

int
kn_egress_open(struct kn_sup *s, struct kn_err *e)
{
	struct kn_egress *g = calloc(1, sizeof *g);
	struct rlimit l;
	uint64_t all = KN_EG_IN_ALL, each;

	if (!g)
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	g->sup = s;
	g->spare_fd = -1;
	s->egress = g;
	/* two descriptors each, of half of those that there may be */
	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur / 4 < all)
		all = l.rlim_cur / 4;
	each = all / (s->worker_n ? s->worker_n : 1);
	g->per_worker = each > KN_EG_PER_WORKER ? KN_EG_PER_WORKER : (unsigned)each;
	if (g->per_worker < 1)
		g->per_worker = 1;
	s->fds_most += FDS_BESIDE + 2 * (uint64_t)g->per_worker * s->worker_n;
	if (kn_resolver_open(&g->resolver, &s->loop, e) < 0)
		return -1;
	g->spare_fd = fcntl(g->resolver.null_fd, F_DUPFD_CLOEXEC, 3);
	return g->spare_fd < 0 ? kn_err_sys(e, KN_EK_HOST, "a spare descriptor") : 0;
}

void
kn_egress_close(struct kn_sup *s)
{
	struct kn_egress *g = s->egress;

	if (!g)
		return;
	kn_resolver_close(&g->resolver);
	kn_fd_close(&g->spare_fd);
	kn_net_tally_fini(&g->total);
	free(g);
	s->egress = NULL;
}

const struct kn_net_tally *
kn_egress_total(const struct kn_sup *s)
{
	return s->egress ? &s->egress->total : NULL;
}

/* ---- time ---- */

void
kn_eg_due(struct kn_egress *g, uint64_t at_ns)
{
	if (at_ns && (!g->due_ns || at_ns < g->due_ns))
		g->due_ns = at_ns;
}

uint64_t
kn_egress_due(const struct kn_sup *s)
{
	uint64_t a = s->egress->due_ns, b = s->egress->resolver.due_ns;

	return !a || (b && b < a) ? b : a;
}

static void
look_at_times(struct kn_eg_worker *w, uint64_t now_ns)
{
	struct kn_eg_conn *next;

	for (struct kn_eg_conn *c = w->first; c; c = next) {
		next = c->next;
		if (c->deadline_ns <= now_ns)
			kn_eg_conn_late(c); /* ends c at most */
	}
	for (struct kn_eg_conn *c = w->first; c; c = c->next)
		kn_eg_due(w->egress, c->deadline_ns);
	if (w->retry_ns && w->retry_ns <= now_ns) {
		w->retry_ns = 0;
		kn_eg_accept_more(w);
	}
	kn_eg_due(w->egress, w->retry_ns);
}

void
kn_egress_timer(struct kn_sup *s, uint64_t now_ns)
{
	struct kn_egress *g = s->egress;

	kn_resolver_timer(&g->resolver, now_ns);
	if (!g->due_ns || now_ns < g->due_ns)
		return;
	g->due_ns = 0;
	for (uint32_t i = 0; i < s->worker_n; i++)
		if (s->wk[i].egress)
			look_at_times(s->wk[i].egress, now_ns);
}

/* ---- accepting ---- */

void
kn_eg_accept_more(struct kn_eg_worker *w)
{
	bool room = w->conn_n < w->egress->per_worker && !w->retry_ns;

	kn_loop_mod(&w->sup->loop, &w->watch, room ? EPOLLIN : 0);
}

/* Its worker has no way out any more, and tasks to come would miss it. Watched further,
 * a listener that listens no more would wake the loop without end. */
static void
go_deaf(struct kn_eg_worker *w, const char *field)
{
	kn_loop_del(&w->sup->loop, &w->watch);
	kn_fd_close(&w->listen_fd);
	kn_view_violation(&w->sup->wk[w->index], field);
}

static bool
is_short(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;
}

static void
on_listener(struct kn_watch *wt, uint32_t events)
{
	struct kn_eg_worker *w = wt->ctx;

	(void)events;
	for (int i = 0; i < ACCEPTS_AT_ONCE && w->conn_n < w->egress->per_worker; i++) {
		int fd =
		    accept4(w->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0 && w->entry) {
			kn_eg_conn_open(w, fd);
		} else if (fd >= 0) {
			kn_fd_close(&fd); /* nobody's */
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			break;
		} else if (errno == EINVAL) {
			go_deaf(w, "egress.listening");
			return;
		} else if (is_short(errno)) {
			w->retry_ns = kn_clock_after_ms(kn_clock_now(), KN_EG_RETRY_MS);
			kn_eg_due(w->egress, w->retry_ns);
			break;
		} /* else it is gone again */
	}
	kn_eg_accept_more(w);
}

static int
accept_any_way(struct kn_eg_worker *w)
{
	struct kn_egress *g = w->egress;
	int fd = accept4(w->listen_fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 || (errno != EMFILE && errno != ENFILE))
		return fd;
	kn_fd_close(&g->spare_fd);
	return accept4(w->listen_fd, NULL, NULL, SOCK_CLOEXEC);
}

/* What waits to be accepted is of a task that has ended: away with it. */
static void
clear_backlog(struct kn_eg_worker *w)
{
	const struct linger now = { 1, 0 };
	struct kn_egress *g = w->egress;
	bool empty = false;

	for (int i = 0; i < BACKLOG_AT_MOST && !empty; i++) {
		int fd = accept_any_way(w);

		empty = fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
		if (fd >= 0)
			(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
		else if (errno == EINVAL || is_short(errno))
			break;
		kn_fd_close(&fd);
	}
	if (g->spare_fd < 0)
		g->spare_fd = fcntl(g->resolver.null_fd, F_DUPFD_CLOEXEC, 3);
	if (!empty)
		go_deaf(w, "egress.backlog"); /* rather none than another's */
}

/* ---- the listener ---- */

static bool
option_is(int fd, int name, int want)
{
	int v = -1;
	socklen_t n = sizeof v;

	return getsockopt(fd, SOL_SOCKET, name, &v, &n) == 0 && v == want;
}

static bool
cookie_of(int fd, uint64_t *out)
{
	socklen_t n = sizeof *out;

	return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, out, &n) == 0 &&
	       n == sizeof *out;
}

/* Whether the socket is of another network than ours; before Linux 5.14 by the
 * namespace's file, which whoever made the sandbox may ask for. */
static bool
is_elsewhere(int fd)
{
	KN_OWN_FD int here = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	KN_OWN_FD int there_ns = -1;
	uint64_t a = 0, b = 0;
	struct stat x, y;

	if (here >= 0 && cookie_of(here, &a) && cookie_of(fd, &b))
		return a != b;
	there_ns = ioctl(fd, SIOCGSKNS);
	return there_ns >= 0 && fstat(there_ns, &x) == 0 &&
	       stat("/proc/self/ns/net", &y) == 0 &&
	       (x.st_ino != y.st_ino || x.st_dev != y.st_dev);
}

static const char *
fault_of(int fd)
{
	const struct linger never = { 0, 0 }; /* nor those that are accepted on it */
	struct sockaddr_in at;
	socklen_t n = sizeof at;

	if (!option_is(fd, SO_DOMAIN, AF_INET) ||
	    !option_is(fd, SO_TYPE, SOCK_STREAM) ||
	    !option_is(fd, SO_PROTOCOL, IPPROTO_TCP))
		return "egress.type";
	if (!option_is(fd, SO_ACCEPTCONN, 1))
		return "egress.listening";
	if (getsockname(fd, (struct sockaddr *)&at, &n) < 0 || n != sizeof at ||
	    at.sin_addr.s_addr != htonl(INADDR_LOOPBACK) ||
	    at.sin_port != htons(KN_EGRESS_PORT))
		return "egress.address";
	if (!is_elsewhere(fd))
		return "egress.network";
	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &never, sizeof never) < 0 ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return "egress.flags";
	return NULL;
}

int
kn_egress_listener(struct kn_wk *wk, int fd_own, const char **out_field)
{
	const char *fault = wk->egress ? "egress.again" : fault_of(fd_own);
	struct kn_eg_worker *w = fault ? NULL : calloc(1, sizeof *w);
	struct kn_err e;

	if (!w) {
		close(fd_own);
		*out_field = fault ? fault : "egress";
		return -1;
	}
	*w = (struct kn_eg_worker){ .egress = wk->sup->egress,
		.sup = wk->sup,
		.index = wk->index,
		.listen_fd = fd_own };
	if (kn_loop_add(
		&wk->sup->loop, &w->watch, fd_own, EPOLLIN, on_listener, w, &e) < 0) {
		close(fd_own);
		free(w);
		*out_field = "egress";
		return -1;
	}
	wk->egress = w;
	return 0;
}

/* ---- tasks ---- */

void
kn_egress_task(struct kn_wk *wk, struct kn_entry *e)
{
	if (wk->egress)
		wk->egress->entry = e;
}

/* What it has said and we have not heard is still passed on, once. */
static void
last_words(struct kn_eg_conn *c)
{
	bool reset;

	if (c->phase == KN_EG_RELAY)
		(void)kn_eg_pump(c, &reset);
}

void
kn_egress_task_end(struct kn_wk *wk, const struct kn_entry *e)
{
	struct kn_eg_worker *w = wk->egress;

	if (!w || w->entry != e)
		return;
	while (w->first) {
		last_words(w->first);
		kn_eg_conn_end(w->first, false);
	}
	if (w->listen_fd >= 0)
		clear_backlog(w);
	w->entry = NULL;
}

void
kn_egress_release(struct kn_wk *wk)
{
	struct kn_eg_worker *w = wk->egress;

	if (!w)
		return;
	while (w->first)
		kn_eg_conn_end(w->first, true);
	kn_loop_del(&w->sup->loop, &w->watch);
	kn_fd_close(&w->listen_fd);
	free(w);
	wk->egress = NULL;
}
