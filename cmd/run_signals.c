/* cmd/run_signals.c: signals while something runs, and the waiting between turns.
 *
 * SIGINT, SIGTERM, SIGHUP stop the run, the second one at once; a single command gets
 * them first. SIGHUP stays ignored where it was when we were started (nohup); SIGINT
 * does not, though a shell without job control ignores it for its background jobs: who
 * sends it to us by name means it. SIGPIPE is ignored: a broken pipe is an error of the
 * write, not the end of us.
 *
 * As process 1 we reap what is handed to us, and hand on SIGUSR1 and SIGUSR2 too, which
 * would be dropped: to end us by them is not what anybody means there.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cmd/init.h"
#include "cmd/run_int.h"
#include "ipc/clock.h"
#include "ipc/fd.h"

static void
add_unless_ignored(sigset_t *set, int signo)
{
	struct sigaction sa;

	if (sigaction(signo, NULL, &sa) == 0 && sa.sa_handler != SIG_IGN)
		sigaddset(set, signo);
}

static void
stop_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	add_unless_ignored(set, SIGHUP);
	sigaddset(set, SIGQUIT);
}

int
kn_run_hold_signals(struct kn_run *r, struct kn_err *e)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	stop_signals(&set);
	if (r->opt.argv) { /* there is a job, and it may have a terminal */
		sigaddset(&set, SIGWINCH);
		sigaddset(&set, SIGCONT);
		add_unless_ignored(&set, SIGTSTP);
		if (kn_init_is()) {
			sigaddset(&set, SIGUSR1);
			sigaddset(&set, SIGUSR2);
		}
	}
	kn_init_hold(&set);
	sigaction(SIGPIPE, &ignore, NULL);
	if (sigprocmask(SIG_BLOCK, &set, &r->mask) < 0)
		return kn_err_sys(e, KN_EK_BUG, "block signals");
	r->sig_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->sig_fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "create a signal descriptor");
	kn_init_reap();
	return 0;
}

void
kn_run_free_signals(struct kn_run *r)
{
	const struct timespec now = { 0, 0 };
	sigset_t set;

	stop_signals(&set);
	while (sigtimedwait(&set, NULL, &now) > 0)
		;
	sigprocmask(SIG_SETMASK, &r->mask, NULL);
}

void
kn_run_stop(struct kn_run *r, bool now, int signo)
{
	int level = now ? 2 : 1;

	if (r->stop_level >= level)
		return;
	r->stop_level = level;
	r->hold_signal = 0;
	r->stop_ns = 0;
	if (signo && !r->signo)
		r->signo = signo;
	(void)(now ? knit_pool_kill(r->pool, NULL) : knit_pool_stop(r->pool, NULL));
}

static void
on_stop_signal(struct kn_run *r, int signo)
{
	uint64_t grace = 0;

	if (r->stop_level > 0 || r->hold_signal) {
		if (signo != SIGHUP)
			kn_run_stop(r, true, signo);
		return;
	}
	if (r->job && knit_job_signal(r->job, signo, NULL) > 0) {
		if (signo == SIGHUP)
			return; /* the command's to decide */
		(void)knit_policy_number(r->policy, "/timeouts/grace_ms", &grace);
		r->hold_signal = signo;
		r->stop_ns = kn_clock_after_ms(kn_clock_now(), grace);
		return;
	}
	kn_run_stop(r, false, signo);
}

/* Stop ourselves as the caller asked, the terminal as it was meanwhile. The command
 * gets SIGSTOP: its process group is an orphaned one, where the kernel drops SIGTSTP.
 */
static void
on_suspend(struct kn_run *r)
{
	(void)knit_job_signal(r->job, SIGSTOP, NULL);
	(void)knit_job_terminal(r->job, KNIT_TERMINAL_YIELD, NULL);
	(void)kill(getpid(), SIGSTOP);
	(void)knit_job_terminal(r->job, KNIT_TERMINAL_TAKE, NULL);
}

static void
on_signal(struct kn_run *r, int signo)
{
	char text[80];

	if (signo == SIGCHLD) {
		kn_init_reap();
		return;
	}
	snprintf(text, sizeof text, "got %s", strsignal(signo));
	knit_pool_note(r->pool, "signals", text);
	switch (signo) {
	case SIGWINCH:
		(void)knit_job_terminal(r->job, KNIT_TERMINAL_SIZE, NULL);
		break;
	case SIGTSTP:
		on_suspend(r);
		break;
	case SIGUSR1:
	case SIGUSR2:
		(void)knit_job_signal(r->job, signo, NULL);
		break;
	case SIGCONT:
		(void)knit_job_terminal(r->job, KNIT_TERMINAL_TAKE, NULL);
		(void)knit_job_signal(r->job, SIGCONT, NULL);
		break;
	default:
		on_stop_signal(r, signo);
		break;
	}
}

void
kn_run_wait(struct kn_run *r, struct pollfd *others, int n, uint64_t by_ns)
{
	struct pollfd v[6];
	struct signalfd_siginfo si;

	if (r->stop_ns && (!by_ns || r->stop_ns < by_ns))
		by_ns = r->stop_ns;
	v[0] = (struct pollfd){ .fd = knit_pool_poll_fd(r->pool), .events = POLLIN };
	v[1] = (struct pollfd){ .fd = r->sig_fd, .events = POLLIN };
	for (int i = 0; i < n; i++)
		v[2 + i] = others[i];
	if (poll(v, (nfds_t)(2 + n), kn_clock_poll_ms(kn_clock_now(), by_ns)) < 0)
		v[1].revents = 0;
	for (int i = 0; i < n; i++)
		others[i].revents = v[2 + i].revents;
	while (v[1].revents && read(r->sig_fd, &si, sizeof si) == (ssize_t)sizeof si)
		on_signal(r, (int)si.ssi_signo);
	if (r->stop_ns && r->stop_ns <= kn_clock_now())
		kn_run_stop(r, false, r->hold_signal);
}
