/* cmd/policy_words.c: a policy in words: what a task can reach, on one screen, for
 * somebody who has never seen a system call. Said is what the merged policy holds, not
 * what this machine can enforce: that is what reports and `doctor` tell.
 */
#include "cmd/policy_words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/filter_explain.h"
#include "sandbox/layer.h"
#include "sandbox/net_rule.h"
#include "sandbox/policy.h"

enum { WIDTH = 78, INDENT = 11, SHOWN_MAX = 6 };

/* Text that is being written, and where its line stands. */
struct words {
	FILE *f;
	const struct kn_policy *p;
	const struct kn_book *b;
	size_t col;
};

/* ---- lines ---- */

static void
word(struct words *w, const char *s, size_t n)
{
	bool glued = strchr(".,;:)", *s);
	if (!glued && w->col > INDENT && w->col + 1 + n > WIDTH) {
		fprintf(w->f, "\n%*s", INDENT, "");
		w->col = INDENT;
	} else if (!glued && w->col > INDENT) {
		fputc(' ', w->f);
		w->col++;
	}
	for (size_t i = 0; i < n; i++) /* a path may hold anything */
		fputc((unsigned char)s[i] < ' ' || s[i] == 0x7f ? '?' : s[i], w->f);
	w->col += n;
}

/* Words of a sentence, each where it fits. */
__attribute__((format(printf, 2, 3))) static void
say(struct words *w, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	for (const char *s = text; s && *s;) {
		size_t n = strcspn(s, " ");
		if (n)
			word(w, s, n);
		s += n + (s[n] == ' ');
	}
	free(text);
}

static void
begin(struct words *w, const char *label)
{
	if (w->col)
		fputc('\n', w->f);
	fprintf(w->f, "%-*s", INDENT, label);
	w->col = INDENT;
}

/* ---- amounts ---- */

static const char *
bytes(uint64_t n, char room[32])
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	int u = 0;
	while (n >= 1024 && n % 1024 == 0 && u < 4) {
		n /= 1024;
		u++;
	}
	snprintf(room, 32, "%llu %s", (unsigned long long)n, units[u]);
	return room;
}

static const char *
period(uint64_t ms, char room[32])
{
	if (ms % 60000 == 0 && ms >= 120000)
		snprintf(room, 32, "%llu minutes", (unsigned long long)ms / 60000);
	else if (ms % 1000 == 0)
		snprintf(room, 32, "%llu second%s", (unsigned long long)ms / 1000,
		    ms == 1000 ? "" : "s");
	else
		snprintf(room, 32, "%llu ms", (unsigned long long)ms);
	return room;
}

/* ---- sections ---- */

/* Which mounts a sentence is about. */
enum sort { READ_ONLY, WRITABLE, LAYERED, HIDDEN };

static bool
is_of(const struct kn_mount *m, enum sort sort)
{
	if (sort == HIDDEN)
		return m->type == KN_MOUNT_MASK || m->type == KN_MOUNT_WHITE;
	if (m->overlay || sort == LAYERED)
		return m->overlay && sort == LAYERED;
	return m->type == KN_MOUNT_BIND && m->user && !m->pin &&
	       m->writable == (sort == WRITABLE);
}

static void
say_mounts(struct words *w, enum sort sort, const char *head)
{
	unsigned n = 0;
	for (size_t i = 0; i < w->p->fs.mount_n; i++) {
		const struct kn_mount *m = &w->p->fs.mounts[i];
		if (!is_of(m, sort) || ++n > SHOWN_MAX)
			continue;
		say(w, "%s", n == 1 ? head : ",");
		say(w, "%s", sort == HIDDEN ? m->at : m->source);
		if (sort != HIDDEN && strcmp(m->source, m->at) != 0)
			say(w, "(as %s)", m->at);
	}
	if (n > SHOWN_MAX)
		say(w, "and %u more", n - SHOWN_MAX);
	if (n)
		say(w, ".");
}

static void
say_tmpfs(struct words *w, const char *at, uint64_t size, uint64_t files)
{
	char room[32];
	say(w, "%s (%s", at, size ? bytes(size, room) : "no limit");
	if (files)
		say(w, "in %llu files", (unsigned long long)files);
	say(w, "),");
}

static void
files(struct words *w)
{
	const struct kn_policy *p = w->p;
	begin(w, "Files");
	if (p->fs.root == KN_ROOT_SYSTEM)
		say(w, "Reads this machine's programs and libraries and a minimal "
		       "/etc; no home directory, no other data of this machine.");
	else
		say(w, "Sees no file of this machine but those named here.");
	say_mounts(w, READ_ONLY, "Reads also");
	say_mounts(w, WRITABLE, "Reads and changes, outside too:");
	say_mounts(w, LAYERED, "Changes for itself alone, and not outside:");
	for (size_t i = 0; i < p->fs.mount_n; i++)
		if (p->fs.mounts[i].out)
			say(w,
			    "Of %s, what it made or changed is brought to a new "
			    "folder of %s.",
			    p->fs.mounts[i].at, p->fs.mounts[i].out);
	say_mounts(w, HIDDEN, "Cannot open");
	say(w, "Writes");
	say_tmpfs(w, "/task", p->fs.task_bytes, p->fs.task_inodes);
	say_tmpfs(w, "/tmp", p->fs.tmp_bytes, p->fs.tmp_inodes);
	say_tmpfs(w, "/dev/shm", p->fs.shm_bytes, 0);
	say(w, "empty at its start and gone at its end.");
	if (p->fs.task_path_n)
		say(w, "A task line may name a file below %s%s.", p->fs.task_paths[0],
		    p->fs.task_path_n > 1 ? " and other directories" : "");
}

/* What happens when it asks for a local socket, or one of a network. */
static bool
may_socket(const struct words *w, uint64_t family)
{
	struct kn_ask q;
	struct kn_answer a;
	struct kn_err *no = NULL;
	if (kn_book_parse("socket", &q, no) < 0)
		return false;
	q.args[0] = family;
	q.args[1] = 1;
	return kn_book_ask(w->b, &q, &a, no) == 0 && strncmp(a.does, "allowed", 7) == 0;
}

static void
allowed_hosts(struct words *w)
{
	const struct kn_policy *p = w->p;
	say(w, "Of its own none. Through a broker of ours it reaches");
	for (size_t i = 0; i < p->net.allow_n && i < SHOWN_MAX; i++) {
		const struct kn_net_rule *r = &p->net.allow[i];
		say(w, "%s%s%s%s", i ? "and " : "", r->below ? "*." : "", r->host.text,
		    r->port ? "" : " (each port)");
		if (r->port)
			say(w, "(port %u)", r->port);
	}
	if (p->net.allow_n > SHOWN_MAX)
		say(w, "and %zu more", p->net.allow_n - SHOWN_MAX);
	say(w, p->net.allow_n ? "and nothing else." : "nothing.");
}

static void
network(struct words *w)
{
	begin(w, "Network");
	switch (w->p->network) {
	case KN_NET_NONE:
		say(w, "None: no address can be reached, not even of this machine, "
		       "and no name is looked up.");
		break;
	case KN_NET_ALLOW:
		allowed_hosts(w);
		break;
	case KN_NET_HOST:
	default:
		say(w, "This machine's own: whatever it reaches, the task reaches%s.",
		    may_socket(w, 2) ? "" : ", but it may open no connection");
		break;
	}
	if (may_socket(w, 1))
		say(w, "Local sockets are allowed: also those that lie below a "
		       "directory that is shown to it.");
}

static void
programs(struct words *w)
{
	const struct kn_policy *p = w->p;
	if (p->run.set && p->run.n == 0)
		say(w, "It executes nothing but its own command, once.");
	for (size_t i = 0; i < p->run.n && i < SHOWN_MAX; i++)
		say(w, "%s %s", i ? "," : "It executes its own command and",
		    p->run.v[i]);
	if (p->run.n > SHOWN_MAX)
		say(w, "and %zu more", p->run.n - SHOWN_MAX);
	if (p->run.n)
		say(w, "; nothing that it writes. These may load other code "
		       "themselves.");
}

static void
processes(struct words *w)
{
	const struct kn_policy *p = w->p;
	begin(w, "Processes");
	if (p->pool.kind == KN_KIND_MODULE)
		say(w,
		    "Calls of functions of %s, in a process that stays from call "
		    "to call.",
		    p->pool.module);
	if (p->task.pids)
		say(w, "At most %llu at one time, threads included.",
		    (unsigned long long)p->task.pids);
	say(w, "It sees and reaches no others, has no capability and can get none; "
	       "at its end all of them are ended.");
	programs(w);
	say(w, "Environment:");
	for (size_t i = 0; i < p->env.set_n && i < 12; i++)
		say(w, "%.*s", (int)strcspn(p->env.set[i], "="), p->env.set[i]);
	if (p->env.set_n > 12)
		say(w, "and %zu more", p->env.set_n - 12);
	for (size_t i = 0; i < p->env.inherit_n && i < SHOWN_MAX; i++)
		say(w, "%s %s", i ? "and" : "as set here; from the caller",
		    p->env.inherit[i]);
	if (p->env.inherit_n > SHOWN_MAX)
		say(w, "and %zu more", p->env.inherit_n - SHOWN_MAX);
	say(w, p->env.inherit_n ? "." : "as set here; nothing from the caller.");
}

static void
calls(struct words *w)
{
	const struct kn_policy *p = w->p;
	struct kn_count n;
	uint32_t from = 0;
	unsigned shown = 0;
	char *name;
	kn_book_count(w->b, &n);
	begin(w, "Calls");
	say(w,
	    "Of %u requests that a program can make of the kernel (system calls) "
	    "%u are allowed, %u in some forms only.",
	    n.allowed + n.partly + n.killed + n.refused, n.allowed, n.partly);
	if (n.killed)
		say(w, "%u end who tries:", n.killed);
	while (n.killed && shown++ < SHOWN_MAX &&
	       (name = kn_book_next_killed(w->b, &from))) {
		say(w, "%s%s", name, shown == n.killed ? "." : ",");
		free(name);
	}
	if (n.killed > SHOWN_MAX)
		say(w, "and more.");
	say(w, "The other %u fail with an error.", n.refused);
	if (p->seccomp.profiled)
		say(w, "A foreign profile says which (%s).",
		    kn_policy_origin(p, "/seccomp/profile"));
	if (p->seccomp.abis >> KN_ABI_I386 & 1)
		say(w, "Programs of i386 may run.");
	for (size_t i = 0; i < p->seccomp.note_n && i < SHOWN_MAX; i++) {
		begin(w, "  passed over");
		w->col = strlen("  passed over");
		say(w, "%s", p->seccomp.notes[i]);
	}
	if (p->seccomp.note_n > SHOWN_MAX) {
		begin(w, "");
		say(w, "and %zu more, which policy check lists",
		    p->seccomp.note_n - SHOWN_MAX);
	}
}

static void
amounts(struct words *w)
{
	const struct kn_task_limits *t = &w->p->task;
	char room[32];
	begin(w, "Memory");
	say(w, "%s%s.", t->memory ? "" : "No limit",
	    t->memory ? bytes(t->memory, room) : "");
	if (t->fsize)
		say(w, "A file it writes: %s.", bytes(t->fsize, room));
	if (t->nofile)
		say(w, "Open files: %llu.", (unsigned long long)t->nofile);
	begin(w, "Output");
	if (!w->p->console)
		say(w, "None reaches the caller: what it prints is thrown away.");
	if (t->stdout_bytes == UINT64_MAX)
		say(w, "All of it is kept.");
	else
		say(w, "%s are kept;", bytes(t->stdout_bytes, room));
	if (t->stdout_bytes != UINT64_MAX)
		say(w, w->p->output_kill ? "a task that writes more is ended; "
					   "of a single command all is passed "
					   "on, unless you name a limit."
					 : "the rest is dropped; of a single "
					   "command it is passed on, unless you "
					   "name a limit.");
}

static void
times(struct words *w)
{
	const struct kn_policy *p = w->p;
	char room[32];
	begin(w, "Time");
	if (p->task.cpu_ms)
		say(w, "%s of the processor.", period(p->task.cpu_ms, room));
	if (p->task_cpus)
		say(w, "At most %g processor%s at one time.",
		    (double)p->task_cpus / 1000, p->task_cpus == 1000 ? "" : "s");
	if (p->timeouts.task_ms)
		say(w, "After %s it is asked to end,",
		    period(p->timeouts.task_ms, room));
	if (p->timeouts.task_ms)
		say(w, "and ended %s later.", period(p->timeouts.grace_ms, room));
	if (p->timeouts.hard_ms)
		say(w, "Whatever it does, it is ended after %s.",
		    period(p->timeouts.hard_ms, room));
	else if (!p->timeouts.task_ms)
		say(w, "No limit by the clock.");
}

/* What follows is written for sandboxes; without namespaces less of it is so. */
static void
launcher(struct words *w)
{
	if (w->p->launcher != KN_LAUNCHER_DIRECT)
		return;
	begin(w, "Launcher");
	say(w, "Direct, which has no namespaces: a task is on this machine itself. "
	       "What is "
	       "said below of /task, /tmp and /dev/shm, of their sizes, and of what it "
	       "does not see is not so there: LAUNCHER DIRECT in knit-policy(5).");
}

static unsigned
layer_list(struct words *w, uint32_t bits, const char *head)
{
	unsigned n = 0;
	for (unsigned l = 0; l < KN_LAYER_N; l++) {
		if (!(bits >> l & 1))
			continue;
		say(w, "%s", n++ ? "," : head);
		say(w, "%s", kn_layer_name(l));
	}
	if (n)
		say(w, ".");
	return n;
}

static void
layers(struct words *w)
{
	begin(w, "Walls");
	if (!layer_list(w, w->p->require, "Not run unless these hold:"))
		say(w, "None must hold.");
	layer_list(w, w->p->allow_degraded, "Weaker where the machine lacks it:");
}

char *
kn_policy_words(const struct kn_policy *p, const struct kn_book *b, const char *name)
{
	char *text = NULL;
	size_t n = 0;
	struct words w = { .p = p, .b = b };
	w.f = open_memstream(&text, &n);
	if (!w.f)
		return NULL;
	fprintf(w.f, "What a task can reach under %.60s (%.14s...)\n\n", name,
	    kn_policy_hash(p));
	launcher(&w);
	files(&w);
	network(&w);
	processes(&w);
	calls(&w);
	amounts(&w);
	times(&w);
	layers(&w);
	/* Options need quotes that only the caller's shell knows. */
	if (strstr(name, " -") || *name == '-')
		name = "...";
	fprintf(w.f,
	    "\n\nWho decides about one call: knit-sandbox policy explain %s --call "
	    "NAME\n"
	    "Each value and who set it:  knit-sandbox policy show %s\n",
	    name, name);
	if (fclose(w.f) == 0)
		return text;
	free(text);
	return NULL;
}
