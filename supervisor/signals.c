/* supervisor/signals.c: all that touches signals where the process is ours alone
 * (`bench`, tests); embedded in another program all this is the program's (for `run`:
 * cmd/run_signals.c). What is changed here is put back by kn_signals_close().
 *
 * SIGINT, SIGTERM, SIGHUP stop the run, the second one at once. SIGHUP stays ignored
 * where it was when we were started (nohup); SIGINT does not, though a shell without
 * job control ignores it for its background jobs: who sends it to us by name means it.
 * SIGPIPE and SIGXFSZ are ignored always: a broken pipe, or a file that may not grow
 * (ulimit -f), is an error of the write, not the end of the supervisor.
 */
#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "supervisor/inner.h"

static const int quiet[KN_QUIET_N] = { SIGPIPE, SIGXFSZ };

static void
on_signal(struct kn_sup *s, int signo)
{
	KN_LOG(&s->log, KN_NS_SIGNALS, KN_LOG_POOL, "got %s", strsignal(signo));
	if (s->stop_level == 0)
		kn_turn_stop(s, false, signo);
	else if (signo != SIGHUP)
		kn_turn_stop(s, true, signo);
}

static void
on_readable(struct kn_watch *w, uint32_t events)
{
	struct kn_sup *s = w->ctx;
	struct signalfd_siginfo si;

	(void)events;
	while (read(s->sig.fd, &si, sizeof si) == (ssize_t)sizeof si)
		on_signal(s, (int)si.ssi_signo);
}

static void
add_unless_ignored(sigset_t *set, int signo)
{
	struct sigaction sa;

	if (sigaction(signo, NULL, &sa) == 0 && sa.sa_handler != SIG_IGN)
		sigaddset(set, signo);
}

int
kn_signals_open(struct kn_sup *s, struct kn_err *e)
{
	struct kn_signals *g = &s->sig;
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	g->fd = -1;
	if (s->opt.embedded)
		return 0;
	for (int i = 0; i < KN_QUIET_N; i++)
		g->quiet_saved[i] = sigaction(quiet[i], &ignore, &g->old_quiet[i]) == 0;
	if (!s->opt.handle_signals)
		return 0;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	add_unless_ignored(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	if (sigprocmask(SIG_BLOCK, &set, &g->old_mask) < 0)
		return kn_err_sys(e, KN_EK_BUG, "block signals");
	g->mask_saved = true;
	g->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (g->fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "create a signal descriptor");
	return kn_loop_add(&s->loop, &g->w, g->fd, EPOLLIN, on_readable, s, e);
}

void
kn_signals_close(struct kn_sup *s)
{
	struct kn_signals *g = &s->sig;

	if (s->loop_open)
		kn_loop_del(&s->loop, &g->w);
	if (g->fd > 0)
		kn_fd_close(&g->fd);
	if (g->mask_saved)
		sigprocmask(SIG_SETMASK, &g->old_mask, NULL);
	g->mask_saved = false;
	for (int i = 0; i < KN_QUIET_N; i++) {
		if (g->quiet_saved[i])
			sigaction(quiet[i], &g->old_quiet[i], NULL);
		g->quiet_saved[i] = false;
	}
}
