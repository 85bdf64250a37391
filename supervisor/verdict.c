/* supervisor/verdict.c: result -> verdict, see verdict.h.
 *
 * Order of precedence, and why: a memory limit first, since the kernel's out-of-memory
 * kill happened whatever came after it; then the cause that was recorded before a kill
 * was sent; then limits that the task overran although it ended by itself (over the
 * limit is never "ok"); then memory that was missing around it, for which its end
 * cannot be relied on; only then how it ended.
 */
#include "supervisor/verdict.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "ipc/clock.h"

const char *
kn_errno_name(int sys, char buf[16])
{
	static const struct {
		int sys;
		const char *name;
	} names[] = {
		{ ENOENT, "ENOENT" },
		{ EACCES, "EACCES" },
		{ ENOEXEC, "ENOEXEC" },
		{ EPERM, "EPERM" },
		{ ENOTDIR, "ENOTDIR" },
		{ EISDIR, "EISDIR" },
		{ ELOOP, "ELOOP" },
		{ ENAMETOOLONG, "ENAMETOOLONG" },
		{ E2BIG, "E2BIG" },
		{ ENOMEM, "ENOMEM" },
		{ ENOSPC, "ENOSPC" },
		{ EFBIG, "EFBIG" },
		{ EDQUOT, "EDQUOT" },
		{ EEXIST, "EEXIST" },
		{ ETXTBSY, "ETXTBSY" },
		{ EINVAL, "EINVAL" },
		{ EIO, "EIO" },
		{ EAGAIN, "EAGAIN" },
		{ EMFILE, "EMFILE" },
		{ ENFILE, "ENFILE" },
		{ ENOSYS, "ENOSYS" },
		{ EROFS, "EROFS" },
		{ ELIBBAD, "ELIBBAD" },
		{ EBUSY, "EBUSY" },
		{ EBADF, "EBADF" },
		{ EFAULT, "EFAULT" },
		{ ENODEV, "ENODEV" },
		{ ENXIO, "ENXIO" },
		{ EUSERS, "EUSERS" },
		{ EAFNOSUPPORT, "EAFNOSUPPORT" },
		{ EPROTONOSUPPORT, "EPROTONOSUPPORT" },
		{ EOPNOTSUPP, "EOPNOTSUPP" },
		{ ECONNREFUSED, "ECONNREFUSED" },
		{ ENETUNREACH, "ENETUNREACH" },
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (names[i].sys == sys)
			return names[i].name;
	}
	snprintf(buf, 16, "errno %d", sys);
	return buf;
}

static void __attribute__((format(printf, 3, 4)))
say(struct kn_outcome *o, enum kn_verdict v, const char *fmt, ...)
{
	va_list ap;

	o->verdict = v;
	va_start(ap, fmt);
	vsnprintf(o->error, sizeof o->error, fmt, ap);
	va_end(ap);
}

/* Bytes as the user wrote them: 64M and not 67108864. */
static const char *
size_text(uint64_t n, char buf[32])
{
	static const char unit[] = { 'G', 'M', 'K' };

	for (unsigned i = 0; i < 3; i++) {
		unsigned shift = 30 - 10 * i;

		if (n && n % (1ull << shift) == 0) {
			snprintf(buf, 32, "%llu%c", (unsigned long long)(n >> shift),
			    unit[i]);
			return buf;
		}
	}
	snprintf(buf, 32, "%llu bytes", (unsigned long long)n);
	return buf;
}

static void
say_memory(const struct kn_verdict_in *in, struct kn_outcome *o)
{
	char buf[32];

	if (in->limits->memory)
		say(o, KN_V_MEMORY,
		    "used more than its memory limit of %s "
		    "(/limits/task/memory)",
		    size_text(in->limits->memory, buf));
	else
		say(o, KN_V_MEMORY,
		    "killed for want of memory in the worker "
		    "(/limits/worker/memory)");
}

/* Its end may be what that made of it, or not: its own process may live on. */
static void
say_outside(struct kn_outcome *o)
{
	say(o, KN_V_INTERNAL,
	    "a process of it was killed for want of memory, though at no limit of its "
	    "own: the machine, or a control group around us, had none left");
}

static void
say_hard(const struct kn_verdict_in *in, struct kn_outcome *o)
{
	say(o, KN_V_TIMEOUT, "ran longer than %u ms (/timeouts/hard_ms)",
	    in->timeouts->hard_ms);
}

static void
say_cpu(const struct kn_verdict_in *in, struct kn_outcome *o)
{
	say(o, KN_V_CPU_TIMEOUT, "used more than %llu ms of CPU (/limits/task/cpu_ms)",
	    (unsigned long long)in->limits->cpu_ms);
}

static void
say_output(const struct kn_verdict_in *in, struct kn_outcome *o)
{
	char buf[32];

	if (in->over)
		say(o, KN_V_OUTPUT_LIMIT, "wrote more than %s to %s (/limits/task/%s)",
		    size_text(in->over_cap, buf), in->over, in->over);
	else
		say(o, KN_V_OUTPUT_LIMIT, "wrote more than it may");
}

static void
say_cancelled(const struct kn_verdict_in *in, struct kn_outcome *o)
{
	say(o, KN_V_CANCELLED, "%s",
	    in->stopping ? "the run was stopped" : "by request");
}

/* Streams that we failed to carry on: neither the task's fault nor an end of it. */
static void
say_broken(const struct kn_verdict_in *in, struct kn_outcome *o)
{
	char buf[16];

	say(o, KN_V_INTERNAL, "its %s could not be carried on: %s (%s)", in->broken,
	    strerror(in->broken_sys), kn_errno_name(in->broken_sys, buf));
}

/* The task's own files and directory are its own fault; the rest of a cell is ours. */
static void
step_files(const struct kn_job_result *r, const char *err, const char *behind,
    struct kn_outcome *o)
{
	const char *what = r->detail[0] ? r->detail : "a file";

	if (r->sys == ENOSPC || r->sys == EFBIG || r->sys == EDQUOT)
		say(o, KN_V_TOO_LARGE, "files: %s does not fit into /task: %s (%s)",
		    what, strerror((int)r->sys), err);
	else if (r->sys == EEXIST || r->sys == ENOTDIR || r->sys == EISDIR ||
		 r->sys == ENAMETOOLONG || r->sys == ELOOP || r->sys == EINVAL)
		say(o, KN_V_INVALID, "files: cannot put %s into /task: %s (%s)", what,
		    strerror((int)r->sys), err);
	else
		say(o, KN_V_INTERNAL, "putting files in place: %s: %s (%s)%s", what,
		    strerror((int)r->sys), err, behind ? behind : "");
}

/* What is behind such an error most times. */
static const char *
often(const struct kn_verdict_in *in, int sys)
{
	switch (sys) {
	case EACCES:
		if (in->run_only)
			return "; has it the x bit, and is it where a task cannot "
			       "write "
			       "(/permissions/run)?";
		return strchr(in->program, '/') ? "; has it the x bit (chmod +x; of a "
						  "task's file \"mode\":\"755\")?"
						: "";
	case ENOEXEC:
		return "; neither a program of this machine nor a script with #!";
	case EAGAIN:
		return "; as many processes as the caller's user may have (ulimit -u)?";
	default:
		return "";
	}
}

static void
step_exec(const struct kn_verdict_in *in, const struct kn_job_result *r,
    const char *err, struct kn_outcome *o)
{
	if (r->sys == ENOMEM || r->sys == EAGAIN)
		say(o,
		    in->limits->memory && r->sys == ENOMEM ? KN_V_MEMORY
							   : KN_V_INTERNAL,
		    "%s: not enough memory or processes to start it: %s (%s)",
		    in->program, strerror((int)r->sys), err);
	else if (r->sys == ENOENT)
		say(o, KN_V_NOT_EXECUTABLE,
		    "%s: found, but the interpreter or loader it asks for is missing "
		    "inside the sandbox (%s)",
		    in->program, err);
	else
		say(o, KN_V_NOT_EXECUTABLE, "%s: cannot be executed: %s (%s)%s",
		    in->program, strerror((int)r->sys), err, often(in, (int)r->sys));
}

/* The program was not reached. */
static void
not_started(const struct kn_verdict_in *in, struct kn_outcome *o)
{
	const struct kn_job_result *r = in->result;
	char buf[16];
	const char *err = kn_errno_name((int)r->sys, buf);

	switch (r->step) {
	case KN_EXEC_LOOKUP:
		if (r->sys == EACCES)
			say(o, KN_V_NOT_EXECUTABLE, "%s: cannot be executed: %s (%s)%s",
			    in->program, strerror((int)r->sys), err,
			    often(in, (int)r->sys));
		else
			say(o, KN_V_NOT_FOUND, "%s: not found in the sandbox (%s)",
			    in->program, err);
		return;
	case KN_EXEC_EXEC:
		step_exec(in, r, err, o);
		return;
	case KN_EXEC_CWD:
		say(o, KN_V_INVALID, "working directory %s: %s (%s)",
		    r->detail[0] ? r->detail
		    : in->cwd	 ? in->cwd
				 : "/task",
		    strerror((int)r->sys), err);
		return;
	case KN_EXEC_FILES:
		step_files(r, err, in->behind, o);
		return;
	case KN_EXEC_STARTED:
	case KN_EXEC_CELL:
	case KN_EXEC_LIMITS:
	case KN_EXEC_WALL:
	case KN_EXEC_STEP_N:
		break;
	}
	say(o, KN_V_INTERNAL, "the cell could not be built: %s%s%s: %s (%s)%s",
	    kn_exec_step_name(r->step), r->detail[0] ? ": " : "", r->detail,
	    strerror((int)r->sys), err, often(in, (int)r->sys));
}

/* It ran, nobody ended it, it broke no limit: its own end. */
static void
own_end(const struct kn_job_result *r, struct kn_outcome *o)
{
	int st = r->wait_status;

	if (WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS)
		say(o, KN_V_DENIED,
		    "killed for a system call that the policy does not "
		    "allow (/seccomp)");
	else if (WIFSIGNALED(st))
		say(o, KN_V_SIGNAL, "ended by signal %d (%s)", WTERMSIG(st),
		    strsignal(WTERMSIG(st)));
	else if (WEXITSTATUS(st))
		say(o, KN_V_EXIT, "%s", "");
	else
		say(o, KN_V_OK, "%s", "");
}

/* True if the cause recorded before the kill decides. */
static bool
by_cause(const struct kn_verdict_in *in, struct kn_outcome *o)
{
	switch (in->result->cause) {
	case KN_CAUSE_HARD:
		say_hard(in, o);
		return true;
	case KN_CAUSE_SOFT:
		say(o, KN_V_SOFT_TIMEOUT, "ran longer than %u ms (/timeouts/task_ms)",
		    in->timeouts->task_ms);
		return true;
	case KN_CAUSE_CPU:
		say_cpu(in, o);
		return true;
	case KN_CAUSE_MEMORY:
		say_memory(in, o);
		return true;
	case KN_CAUSE_OUTPUT:
		say_output(in, o);
		return true;
	case KN_CAUSE_CANCEL:
	case KN_CAUSE_STOP:
		say_cancelled(in, o);
		return true;
	case KN_CAUSE_NONE:
	case KN_CAUSE_N:
		break;
	}
	return false;
}

static bool
by_overrun(const struct kn_verdict_in *in, struct kn_outcome *o)
{
	const struct kn_job_result *r = in->result;
	uint64_t cpu_us = r->user_us + r->system_us;

	if (in->timeouts->hard_ms &&
	    in->wall_ns > (uint64_t)in->timeouts->hard_ms * KN_MS_NS)
		say_hard(in, o);
	else if (in->limits->cpu_ms && cpu_us / 1000 >= in->limits->cpu_ms &&
		 cpu_us > in->limits->cpu_ms * 1000)
		say_cpu(in, o);
	else if (in->timeouts->task_ms &&
		 in->wall_ns > (uint64_t)in->timeouts->task_ms * KN_MS_NS)
		say(o, KN_V_SOFT_TIMEOUT, "ran longer than %u ms (/timeouts/task_ms)",
		    in->timeouts->task_ms);
	else if (in->over)
		say_output(in, o);
	else
		return false;
	return true;
}

static void
by_result(const struct kn_verdict_in *in, struct kn_outcome *o)
{
	const struct kn_job_result *r = in->result;

	if (r->step == KN_EXEC_STARTED) {
		o->started = true;
		if (WIFSIGNALED(r->wait_status))
			o->signal = WTERMSIG(r->wait_status);
		else
			o->exit_code = WEXITSTATUS(r->wait_status);
	}
	if (r->oom_kills && !r->oom_outside) {
		say_memory(in, o);
		return;
	}
	if (in->broken && (r->cause == KN_CAUSE_NONE || r->cause == KN_CAUSE_CANCEL)) {
		say_broken(in, o);
		return;
	}
	if (by_cause(in, o))
		return;
	if (r->step == KN_EXEC_STARTED && by_overrun(in, o))
		return;
	if (r->oom_outside)
		say_outside(o);
	else if (r->step != KN_EXEC_STARTED)
		not_started(in, o);
	else
		own_end(r, o);
}

void
kn_verdict_of(const struct kn_verdict_in *in, struct kn_outcome *o)
{
	o->started = false;
	o->exit_code = -1;
	o->signal = 0;
	o->error[0] = '\0';
	switch (in->how) {
	case KN_HOW_RESULT:
		by_result(in, o);
		return;
	case KN_HOW_HARD:
		say_hard(in, o);
		return;
	case KN_HOW_QUEUE_TIMEOUT:
		say(o, KN_V_QUEUE_TIMEOUT,
		    "waited longer than %u ms for a worker (/timeouts/queue_ms)",
		    in->timeouts->queue_ms);
		return;
	case KN_HOW_CANCELLED:
		say_cancelled(in, o);
		return;
	case KN_HOW_WORKER_LOST:
		say(o, KN_V_WORKER_LOST, "the worker ended while the task ran%s%s",
		    in->note ? ": " : "", in->note ? in->note : "");
		return;
	case KN_HOW_LAUNCH_FAILED:
		say(o, KN_V_LAUNCH_FAILED, "%s",
		    in->note ? in->note : "no worker could be started");
		return;
	case KN_HOW_VIOLATION:
		say(o, KN_V_PROTOCOL_VIOLATION,
		    "the worker broke the protocol and was killed%s%s",
		    in->note ? ": " : "", in->note ? in->note : "");
		return;
	case KN_HOW_N:
		break;
	}
	say(o, KN_V_INTERNAL, "ended in a way that has no name (%d)", (int)in->how);
}
