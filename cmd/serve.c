/* cmd/serve.c: knit-sandbox serve: one pool for many clients, see serve_int.h for the
 * files and knit-serve(8) for what it promises.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cmd/delegate.h"
#include "cmd/init.h"
#include "cmd/serve_int.h"
#include "ipc/clock.h"
#include "ipc/fd.h"

/* ---- signals ---- */

static int
hold_signals(struct kn_serve *s, struct kn_err *e)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGHUP);
	kn_init_hold(&set);
	sigaction(SIGPIPE, &ignore, NULL);
	if (sigprocmask(SIG_BLOCK, &set, &s->mask) < 0)
		return kn_err_sys(e, KN_EK_BUG, "block signals");
	s->sig_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->sig_fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "create a signal descriptor");
	kn_init_reap();
	return 0;
}

static void
drain(struct kn_serve *s)
{
	if (s->state >= KN_SERVE_DRAINING)
		return;
	s->state = KN_SERVE_DRAINING;
	kn_serve_unlisten(s, KN_FOR_TASKS);
	for (struct kn_client *c = s->clients; c; c = c->next)
		kn_client_no_more(c);
	kn_notify_state(s);
	if (!s->voice.quiet)
		kn_say(&s->voice, "draining: %u connections", s->client_n);
}

static void
on_signal(struct kn_serve *s, int signo)
{
	if (signo == SIGCHLD) {
		kn_init_reap();
	} else if (signo == SIGHUP) {
		kn_serve_reload(s);
	} else if (s->state < KN_SERVE_DRAINING) {
		drain(s);
	} else {
		s->state = KN_SERVE_KILLING;
		s->signo = signo;
		kn_serve_pools_kill(s);
	}
}

/* ---- the loop ---- */

static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static int
room_to_poll(struct kn_serve *s, size_t n, struct kn_err *e)
{
	struct pollfd *v;

	if (n <= s->polled_cap)
		return 0;
	v = realloc(s->polled, n * 2 * sizeof *v);
	if (!v)
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	s->polled = v;
	s->polled_cap = n * 2;
	return 0;
}

static size_t
pool_count(const struct kn_serve *s)
{
	size_t n = 0;

	for (const struct kn_serve_pool *p = s->pools; p; p = p->next)
		n++;
	return n + (s->coming != NULL);
}

/* Everything that may have news. In the order in which wait_for_news() looks at it. */
static size_t
list(const struct kn_serve *s, struct pollfd *v)
{
	size_t n = 0;

	v[n++] = (struct pollfd){ .fd = s->sig_fd, .events = POLLIN };
	/* Nobody takes what an ended one has to tell: it would be told for ever. */
	for (const struct kn_serve_pool *p = s->pools; p; p = p->next)
		v[n++] =
		    (struct pollfd){ .fd = p->ended ? -1 : knit_pool_poll_fd(p->pool),
			    .events = POLLIN };
	if (s->coming)
		v[n++] = (struct pollfd){ .fd = knit_pool_poll_fd(s->coming->pool),
			.events = POLLIN };
	/* Full: the others wait in the listener's queue. */
	for (size_t i = 0; i < s->listener_n; i++) {
		const struct kn_serve_listener *l = &s->listeners[i];
		bool full = l->rest_until ||
			    (l->what == KN_FOR_TASKS && s->client_n >= s->opt.clients);

		v[n++] = (struct pollfd){ .fd = full ? -1 : l->fd, .events = POLLIN };
	}
	for (size_t i = 0; i < KN_HTTP_MOST; i++)
		v[n++] = (struct pollfd){ .fd = s->http[i].fd,
			.events = (short)kn_http_events(&s->http[i]) };
	for (const struct kn_client *c = s->clients; c; c = c->next)
		v[n++] = (struct pollfd){ .fd = c->fd,
			.events = (short)kn_client_events(c) };
	return n;
}

static int
wait_for_news(struct kn_serve *s, struct kn_err *e)
{
	struct signalfd_siginfo si;
	struct kn_client *clients = s->clients;
	size_t pools = pool_count(s), n;
	const struct pollfd *v;
	uint64_t by = earlier(kn_http_expire(s), kn_notify_watchdog(s));

	by = earlier(by, kn_serve_rest(s));
	by = earlier(by, kn_client_expire(s));
	kn_serve_weigh(s);
	n = 1 + pools + s->listener_n + KN_HTTP_MOST + s->client_n;
	if (room_to_poll(s, n, e) < 0)
		return -1;
	n = list(s, s->polled);
	if (poll(s->polled, n, kn_clock_poll_ms(kn_clock_now(), by)) < 0)
		return errno == EINTR || errno == ENOMEM || errno == EAGAIN
			   ? 0
			   : kn_err_sys(e, KN_EK_BUG, "poll");
	v = s->polled + 1 + pools;
	for (size_t i = 0; i < s->listener_n; i++, v++) {
		if (v->revents)
			kn_serve_take(s, &s->listeners[i]);
	}
	for (size_t i = 0; i < KN_HTTP_MOST; i++, v++) {
		if (v->fd >= 0 && v->fd == s->http[i].fd)
			kn_http_ready(s, &s->http[i], v->revents);
	}
	/* New ones stand before those that were polled. */
	for (struct kn_client *c = clients; c; c = c->next, v++)
		kn_client_ready(c, v->revents);
	while (s->polled[0].revents &&
	       read(s->sig_fd, &si, sizeof si) == (ssize_t)sizeof si)
		on_signal(s, (int)si.ssi_signo);
	return 0;
}

/* Each client in turn is the first to get what room the pool has. True: one has gone,
 * which a pool may have waited for: no descriptor tells of that. */
static bool
serve_clients(struct kn_serve *s)
{
	struct kn_client **last = &s->clients, *first, *next;
	bool gone = false;

	for (struct kn_client *c = s->clients; c; c = next) {
		next = c->next;
		kn_client_work(c);
		if (kn_client_done(c) || (s->state == KN_SERVE_KILLING && c->all)) {
			kn_client_close(c);
			gone = true;
		}
	}
	first = s->clients;
	if (!first || !first->next)
		return gone;
	s->clients = first->next;
	while (*last)
		last = &(*last)->next;
	*last = first;
	first->next = NULL;
	return gone;
}

static void
begin_serving(struct kn_serve *s)
{
	if (s->state != KN_SERVE_STARTING || !s->pools->ready)
		return;
	s->state = KN_SERVE_SERVING;
	kn_notify_state(s);
	if (!s->voice.quiet)
		kn_say(&s->voice, "serving, policy %s",
		    knit_policy_hash(s->pools->policy));
}

static int
run(struct kn_serve *s, struct kn_err *e)
{
	while (s->pools) {
		struct kn_err why = { 0 };
		bool gone;

		if (kn_serve_pools_work(s, &why) < 0 && !s->broken) {
			/* All is answered; that is brought home, and then it is over.
			 */
			s->broken = true;
			s->why = why;
			drain(s);
		}
		gone = serve_clients(s);
		if (!s->pools || (s->broken && s->client_n == 0))
			break;
		begin_serving(s);
		if (!gone && wait_for_news(s, e) < 0)
			return -1;
	}
	if (!s->broken)
		return 0;
	*e = s->why;
	return -1;
}

/* ---- the verb ---- */

static int
open_all(struct kn_serve *s, struct kn_err *e)
{
	knit_pool_options_init(&s->how, sizeof s->how);
	s->how.flags |= KNIT_POOL_RAISE_NOFILE | KNIT_POOL_LAZY |
			KNIT_POOL_MOVE_CGROUP | KNIT_POOL_WARM;
	s->how.say = kn_module_say;
	s->how.say_ctx = &s->module_voice;
	s->how.cwd = s->opt.run.workdir;
	if (kn_opt_debug(&s->opt.run, &s->voice, &s->how, e) < 0 ||
	    hold_signals(s, e) < 0 || kn_notify_open(s, e) < 0)
		return -1;
	/* Clients that come early wait in the queue; who cannot listen starts nothing.
	 */
	if (kn_serve_listen(s, e) < 0 || kn_notify_begin(s, e) < 0)
		return -1;
	kn_serve_room_open(s);
	return kn_serve_pool_open(s, e);
}

static void
close_all(struct kn_serve *s)
{
	kn_serve_unlisten(s, KN_FOR_TASKS);
	kn_serve_unlisten(s, KN_FOR_HTTP);
	while (s->clients)
		kn_client_close(s->clients);
	kn_serve_pools_close(s);
	for (size_t i = 0; i < KN_HTTP_MOST; i++)
		kn_http_close(&s->http[i]);
	kn_notify_close(s);
	kn_fd_close(&s->sig_fd);
	free(s->polled);
}

static int
serve(struct kn_serve *s, char **argv, unsigned closed)
{
	struct kn_err e = { 0 };
	int rc = KN_EXIT_OK;

	if (kn_delegate(s->opt.run.delegate, argv, closed, &e) < 0 ||
	    open_all(s, &e) < 0 || run(s, &e) < 0)
		rc = kn_say_error(&s->voice, &e);
	else if (s->signo)
		rc = KN_EXIT_SIGNAL + s->signo;
	close_all(s);
	return rc;
}

static int
help(void)
{
	char *text = kn_serve_opt_help();
	int rc = text && kn_say_out(NULL, text, strlen(text)) == 0 ? KN_EXIT_OK
								   : KN_EXIT_OURS;

	free(text);
	return rc;
}

int
kn_cmd_serve(int argc, char **argv, unsigned closed)
{
	struct kn_serve *s = calloc(1, sizeof *s);
	struct kn_err e = { 0 };
	int rc;

	if (!s) {
		kn_err_set(&e, KN_EK_HOST, "out of memory");
		return kn_say_error(NULL, &e);
	}
	s->sig_fd = -1;
	s->start_ns = kn_clock_now();
	for (size_t i = 0; i < KN_HTTP_MOST; i++)
		s->http[i].fd = -1;
	if (kn_serve_opt_parse(&s->opt, argc, argv, &e) < 0) {
		rc = kn_say_error(NULL, &e);
	} else {
		s->voice = (struct kn_voice){ .json = s->opt.run.log_json,
			.quiet = s->opt.run.quiet };
		rc = s->opt.help    ? help()
		     : s->opt.probe ? kn_serve_probe(&s->opt)
				    : serve(s, argv, closed);
	}
	kn_opt_fini(&s->opt.run);
	free(s);
	return rc;
}
