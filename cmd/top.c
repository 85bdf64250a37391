/* cmd/top.c: knit-sandbox top: what the workers of a server do, again and again.
 *
 * On a terminal each picture is written over the last one, in one write, so that
 * nothing flickers; elsewhere one follows the other. --once and --json are for
 * programs.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "cmd/top.h"
#include "ipc/clock.h"
#include "ipc/err.h"
#include "ipc/fd.h"

static const char help_text[] =
    "usage: knit-sandbox top [--socket] PATH [OPTIONS]\n"
    "A live view of a pool that knit-sandbox serve runs.\n\n"
    "  --socket PATH      the --socket of the server, or its --http path\n"
    "  --interval DUR     between two looks (default: 1s)\n"
    "  --once             one look\n"
    "  --json             as JSON, one object a line\n\n"
    "More: man knit-serve\n";

#define ENTER "\033[?1049h\033[?25l" /* another screen, no cursor */
#define LEAVE "\033[?25h\033[?1049l"

enum { LEAST_MS = 100, MOST_MS = 3600000 };

struct top {
	const char *socket;
	uint64_t interval_ms;
	bool once, json, help;
	bool screen;
	int sig_fd;
	struct kn_top_last last;
};

/* ---- options ---- */

/* "2s", "500ms" */
static int
take_interval(struct top *t, const char *v)
{
	char *end;
	unsigned long n = strtoul(v, &end, 10);
	bool ms = strcmp(end, "ms") == 0;

	if (v[0] < '0' || v[0] > '9' || n > MOST_MS || (!ms && strcmp(end, "s") != 0))
		return -1;
	t->interval_ms = ms ? n : n * 1000;
	return t->interval_ms < LEAST_MS || t->interval_ms > MOST_MS ? -1 : 0;
}

/* A server may be named as by --socket, or by its path alone. */
static int
take_path(struct top *t, const char *path, struct kn_err *e)
{
	if (t->socket)
		return kn_opt_refuse(e, "one of them: each server has a top of its own",
		    "top: two servers named, %.60s and %.60s", t->socket, path);
	t->socket = path;
	return 0;
}

static int
parse_one(struct top *t, int argc, char **argv, int *i, struct kn_err *e)
{
	static const char *const names[] = { "socket", "interval", "once", "json",
		"help", NULL };
	const char *arg = argv[*i], *v = NULL;
	int rc = kn_opt_take("top", "--socket", argc, argv, i, &v, e);

	if (rc > 0)
		return take_path(t, v, e);
	if (rc == 0)
		rc = kn_opt_take("top", "--interval", argc, argv, i, &v, e);
	if (rc > 0 && take_interval(t, v) < 0)
		return kn_opt_refuse(e, "a number with ms or s, from 100ms to 3600s",
		    "--interval: \"%.20s\" is no time between two looks", v);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (strcmp(arg, "--once") == 0)
		t->once = true;
	else if (strcmp(arg, "--json") == 0)
		t->json = true;
	else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
		t->help = true;
	else if (arg[0] != '-')
		return take_path(t, arg, e);
	else
		return kn_opt_unknown(e, "top", arg, names);
	return 0;
}

static int
parse(struct top *t, int argc, char **argv, struct kn_err *e)
{
	for (int i = 1; i < argc && !t->help; i++)
		if (parse_one(t, argc, argv, &i, e) < 0)
			return -1;
	if (!t->help && !t->socket)
		return kn_opt_refuse(e, "name its socket, as knit-sandbox serve has it",
		    "top: no server named");
	return 0;
}

/* ---- one look ---- */

static void
look_of(const struct top *t, struct kn_top_look *look)
{
	const char *no_color = getenv("NO_COLOR");
	struct winsize ws = { 0 };

	*look = (struct kn_top_look){ 0 };
	if (!t->screen)
		return;
	look->color = !no_color || !no_color[0];
	look->columns = 80;
	look->rows = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 &&
	    ws.ws_row > 0) {
		look->columns = ws.ws_col;
		look->rows = ws.ws_row;
	}
}

/* Each line ends what was there before, and the last one all below. */
static int
put_screen(const char *text)
{
	char *out = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&out, &n);
	int rc;

	if (!f)
		return -1;
	fputs("\033[H", f);
	for (const char *c = text; *c; c++) {
		if (*c == '\n')
			fputs("\033[K\r\n", f);
		else
			fputc(*c, f);
	}
	fputs("\033[J", f);
	rc = fclose(f) == 0 ? kn_say_out(NULL, out, n) : -1;
	free(out);
	return rc;
}

static int
put_json(json_t *doc)
{
	char *text = json_dumps(doc, JSON_COMPACT | JSON_ENSURE_ASCII);
	int rc = -1;

	if (text)
		rc = kn_say_out(NULL, text, strlen(text)) < 0 ||
			     kn_say_out(NULL, "\n", 1) < 0
			 ? -1
			 : 0;
	free(text);
	return rc;
}

static int
one_look(struct top *t, struct kn_err *e)
{
	json_t *doc = kn_top_fetch(t->socket, e);
	struct kn_top_look look;
	char *text = NULL;
	size_t n = 0;
	int rc;

	if (!doc)
		return -1;
	if (t->json) {
		rc = put_json(doc);
	} else {
		look_of(t, &look);
		text = kn_top_draw(doc, &t->last, &look, &n);
		rc = !text	 ? -1
		     : t->screen ? put_screen(text)
				 : kn_say_out(NULL, text, n);
		if (rc == 0 && !t->screen && !t->once)
			rc = kn_say_out(NULL, "\n", 1);
	}
	free(text);
	json_decref(doc);
	if (rc < 0 && e->kind == KN_EK_NONE)
		kn_err_set(e, KN_EK_HOST, "top: nowhere to show it");
	return rc;
}

/* ---- the loop ---- */

static int
hold_signals(struct top *t, struct kn_err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return kn_err_sys(e, KN_EK_BUG, "block signals");
	t->sig_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return t->sig_fd < 0 ? kn_err_sys(e, KN_EK_HOST, "create a signal descriptor")
			     : 0;
}

/* Until the next look is due. The signal that ends it, 0: none. */
static int
wait_for_next(const struct top *t, uint64_t by_ns)
{
	struct pollfd v = { .fd = t->sig_fd, .events = POLLIN };
	struct signalfd_siginfo si;

	if (poll(&v, 1, kn_clock_poll_ms(kn_clock_now(), by_ns)) <= 0)
		return 0;
	if (read(t->sig_fd, &si, sizeof si) != (ssize_t)sizeof si)
		return 0;
	return si.ssi_signo == SIGWINCH ? 0 : (int)si.ssi_signo;
}

static int
watch(struct top *t, struct kn_err *e)
{
	int signo = 0, rc = 0;

	if (t->screen)
		(void)kn_say_out(NULL, ENTER, sizeof ENTER - 1);
	while (rc == 0 && !signo) {
		rc = one_look(t, e);
		if (rc == 0)
			signo = wait_for_next(
			    t, kn_clock_after_ms(kn_clock_now(), t->interval_ms));
	}
	if (t->screen)
		(void)kn_say_out(NULL, LEAVE, sizeof LEAVE - 1);
	/* Somebody who watches ends it so: that is no failure. */
	return rc < 0 ? -1 : signo == SIGINT ? KN_EXIT_OK : KN_EXIT_SIGNAL + signo;
}

int
kn_cmd_top(int argc, char **argv, unsigned closed)
{
	struct top *t = calloc(1, sizeof *t);
	struct kn_err e = { 0 };
	const char *term = getenv("TERM");
	int rc = -1;

	(void)closed;
	if (!t) {
		kn_err_set(&e, KN_EK_HOST, "out of memory");
		return kn_say_error(NULL, &e);
	}
	t->interval_ms = 1000;
	t->sig_fd = -1;
	if (parse(t, argc, argv, &e) == 0) {
		t->screen = !t->once && !t->json && isatty(STDOUT_FILENO) &&
			    (!term || strcmp(term, "dumb") != 0);
		if (t->help)
			rc = kn_say_out(NULL, help_text, sizeof help_text - 1) < 0
				 ? KN_EXIT_OURS
				 : KN_EXIT_OK;
		else if (t->once)
			rc = one_look(t, &e);
		else if (hold_signals(t, &e) == 0)
			rc = watch(t, &e);
	}
	kn_fd_close(&t->sig_fd);
	free(t);
	return rc < 0 ? kn_say_error(NULL, &e) : rc;
}
