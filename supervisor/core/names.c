/* supervisor/core/names.c: the words for events, actions, ends and reasons, as they
 * stand in debug lines and transcripts. */
#include <stddef.h>

#include "supervisor/core/event.h"

static const char *const event_names[KN_EV_N] = {
	[KN_EV_SUBMIT] = "submit",
	[KN_EV_CANCEL] = "cancel",
	[KN_EV_SPAWNED] = "spawned",
	[KN_EV_SPAWN_FAILED] = "spawn-failed",
	[KN_EV_READY] = "ready",
	[KN_EV_PUBLISHED] = "published",
	[KN_EV_PUBLISH_FAILED] = "publish-failed",
	[KN_EV_CLAIMED] = "claimed",
	[KN_EV_BEGUN] = "begun",
	[KN_EV_OVER] = "over",
	[KN_EV_TAKEN_BACK] = "taken-back",
	[KN_EV_TAKE_FAILED] = "take-failed",
	[KN_EV_RESULT] = "result",
	[KN_EV_STOP_ACKED] = "stop-acked",
	[KN_EV_VIOLATION] = "violation",
	[KN_EV_GONE] = "gone",
	[KN_EV_TIMER] = "timer",
	[KN_EV_DRAIN] = "drain",
	[KN_EV_STOP] = "stop",
	[KN_EV_STOP_NOW] = "stop-now",
};

static const char *const action_names[KN_ACT_N] = {
	[KN_ACT_SPAWN] = "spawn",
	[KN_ACT_PUBLISH] = "publish",
	[KN_ACT_TAKE_BACK] = "take-back",
	[KN_ACT_KILL_TASK] = "kill-task",
	[KN_ACT_STOP_WORKER] = "stop-worker",
	[KN_ACT_KILL_WORKER] = "kill-worker",
	[KN_ACT_LOOK_BEGUN] = "look-begun",
	[KN_ACT_LOOK_OVER] = "look-over",
	[KN_ACT_ANSWER] = "answer",
	[KN_ACT_POOL_FAILED] = "pool-failed",
	[KN_ACT_ENDED] = "ended",
};

static const char *const how_names[KN_HOW_N] = {
	[KN_HOW_RESULT] = "result",
	[KN_HOW_HARD] = "hard",
	[KN_HOW_QUEUE_TIMEOUT] = "queue-timeout",
	[KN_HOW_CANCELLED] = "cancelled",
	[KN_HOW_WORKER_LOST] = "worker-lost",
	[KN_HOW_LAUNCH_FAILED] = "launch-failed",
	[KN_HOW_VIOLATION] = "violation",
};

static const char *const why_names[KN_WHY_N] = {
	[KN_WHY_NONE] = "none",
	[KN_WHY_NOT_READY] = "not-ready",
	[KN_WHY_NOT_CLAIMED] = "not-claimed",
	[KN_WHY_HARD] = "hard",
	[KN_WHY_NO_STOP_ACK] = "no-stop-ack",
	[KN_WHY_NO_END] = "no-end",
	[KN_WHY_VIOLATION] = "violation",
	[KN_WHY_STOP_NOW] = "stop-now",
	[KN_WHY_CRASH_LOOP] = "crash-loop",
	[KN_WHY_LAUNCH_FATAL] = "launch-fatal",
};

static const char *
name_of(const char *const *names, unsigned n, unsigned i)
{
	return i < n && names[i] != NULL ? names[i] : "?";
}

const char *
kn_event_name(enum kn_event_type t)
{
	return name_of(event_names, KN_EV_N, (unsigned)t);
}

const char *
kn_action_name(enum kn_action_type t)
{
	return name_of(action_names, KN_ACT_N, (unsigned)t);
}

const char *
kn_how_name(enum kn_how h)
{
	return name_of(how_names, KN_HOW_N, (unsigned)h);
}

const char *
kn_why_name(enum kn_why w)
{
	return name_of(why_names, KN_WHY_N, (unsigned)w);
}
