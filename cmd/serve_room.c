/* cmd/serve_room.c: descriptors. Workers, their next launch and the streams of their
 * tasks need some, and a connection that takes one of those makes tasks of others fail:
 * so a further connection is accepted only while all that the pools count on stays
 * below the limit as it is now. Others wait in the queue of the socket.
 *
 * One connection for tasks is always served, and some for health: pools are opened with
 * room for them.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "cmd/serve_int.h"
#include "ipc/clock.h"

enum {
	REST_MS = 200,	  /* until a descriptor may be free again */
	LAUNCH_FDS = 32,  /* at hand, whatever else is open: a launch, a task */
	UNKNOWN = 1 << 8, /* /proc cannot be read: nobody has so many */
};

static uint64_t
open_now(void)
{
	struct stat st;
	uint64_t n = 0;
	DIR *d;

	/* Since Linux 6.2 that is their number. */
	if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
		return (uint64_t)st.st_size;
	d = opendir("/proc/self/fd");
	if (!d)
		return UNKNOWN;
	while (readdir(d))
		n++;
	closedir(d);
	return n > 3 ? n - 3 : 0; /* ".", "..", and the directory's own */
}

void
kn_serve_room_open(struct kn_serve *s)
{
	s->base_fds = open_now();
	s->client_fds = KN_SERVE_CLIENT_FDS;
}

/* Where task lines may name files from: each batch opens those that are named. */
static size_t
paths_of(struct knit_policy *policy)
{
	char *text = knit_policy_get(policy, "/filesystem/task_paths");
	size_t quotes = 0;

	/* An array of strings, each between two: a quote in one makes it a few more. */
	for (const char *c = text ? text : ""; *c; c++)
		quotes += *c == '"';
	free(text);
	return quotes / 2 < KN_SERVE_PATHS_MOST ? quotes / 2 : KN_SERVE_PATHS_MOST;
}

void
kn_serve_room_policy(struct kn_serve *s, struct knit_policy *policy)
{
	unsigned n = KN_SERVE_CLIENT_FDS + (unsigned)paths_of(policy);

	if (n > s->client_fds)
		s->client_fds = n;
}

unsigned
kn_serve_fds_least(const struct kn_serve *s)
{
	return s->client_fds + KN_HTTP_LEAST + 1;
}

static uint64_t
of_pool(const struct kn_serve_pool *p)
{
	struct knit_pool_counts n = { .size = sizeof n };

	return p && knit_pool_count(p->pool, &n, NULL) == 0
		   ? n.descriptors + (p->trace_fd >= 0)
		   : 0;
}

void
kn_serve_fds(const struct kn_serve *s, struct kn_serve_fds *out)
{
	struct rlimit now;

	out->open = open_now();
	out->limit = getrlimit(RLIMIT_NOFILE, &now) == 0 ? now.rlim_cur : 0;
	out->kept = s->base_fds + kn_serve_fds_least(s) + of_pool(s->coming);
	for (const struct kn_serve_pool *p = s->pools; p; p = p->next)
		out->kept += of_pool(p);
}

/* Of what is not kept for others: nobody knows beforehand what files tasks bring, so
 * that is looked at as well. */
static bool
has_room(const struct kn_serve *s)
{
	uint64_t more = (uint64_t)s->client_n * s->client_fds + kn_http_count(s);
	struct kn_serve_fds f;

	kn_serve_fds(s, &f);
	return f.kept + more < f.limit && f.open + LAUNCH_FDS < f.limit;
}

static void
rest(struct kn_serve *s, struct kn_serve_listener *l, const char *why, const char *hint)
{
	l->rest_until = kn_clock_after_ms(kn_clock_now(), REST_MS);
	if (!s->full_said)
		kn_say(&s->voice, "a connection waits: %s%s", why, hint);
	s->full_said = true;
}

/* Of accept(2). What was wrong with one connection only says nothing about the next;
 * all else would be met again at once, for ever. */
static void
accept_failed(struct kn_serve *s, struct kn_serve_listener *l)
{
	if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
		return;
	rest(s, l, strerror(errno),
	    errno == EMFILE || errno == ENFILE
		? "; raise the limit of descriptors (ulimit -n), or lower --clients"
		: "");
}

void
kn_serve_take(struct kn_serve *s, struct kn_serve_listener *l)
{
	bool tasks = l->what == KN_FOR_TASKS;
	int fd;

	if (tasks && s->client_n > 0 && !has_room(s)) {
		rest(s, l, "the workers need the descriptors that are left",
		    "; raise the limit of descriptors (ulimit -n), or lower "
		    "--clients");
		return;
	}
	if (!tasks && kn_http_count(s) >= KN_HTTP_LEAST && !has_room(s))
		kn_http_drop_oldest(s);
	fd = kn_serve_accept(l);
	if (fd < 0) {
		accept_failed(s, l);
	} else if (tasks) {
		kn_client_open(s, fd);
	} else {
		kn_http_open(s, fd, l->local);
	}
}

void
kn_serve_room_freed(struct kn_serve *s)
{
	for (size_t i = 0; i < s->listener_n; i++)
		s->listeners[i].rest_until = 0;
}

uint64_t
kn_serve_rest(struct kn_serve *s)
{
	uint64_t now = kn_clock_now(), next = 0;

	for (size_t i = 0; i < s->listener_n; i++) {
		struct kn_serve_listener *l = &s->listeners[i];

		if (l->rest_until && l->rest_until <= now)
			l->rest_until = 0;
		if (l->rest_until && (!next || l->rest_until < next))
			next = l->rest_until;
	}
	return next;
}
