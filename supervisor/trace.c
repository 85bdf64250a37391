/* supervisor/trace.c: writes Chrome trace events, buffered; see trace.h. */
#include "supervisor/trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ipc/call.h"
#include "ipc/err.h"
#include "ipc/fd.h"
#include "supervisor/egress_tally.h"

enum { EVENT_MAX = 1024, ID_MAX = 480 };

static void
flush(struct kn_trace *t)
{
	if (t->n && !t->failed && kn_fd_write_all(t->fd, t->buf, t->n) < 0)
		t->failed = true;
	t->n = 0;
}

static void __attribute__((format(printf, 2, 3)))
put(struct kn_trace *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->fd < 0)
		return;
	if (t->n + EVENT_MAX > sizeof t->buf)
		flush(t);
	if (!t->first)
		t->buf[t->n++] = ',';
	t->first = false;
	t->buf[t->n++] = '\n';
	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->n, sizeof t->buf - t->n, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->n += (unsigned)n;
}

/* A JSON string body, cut at a whole character where it is too long. libknit's callers
 * name jobs by any bytes: those that are not UTF-8 are written out, as in result lines.
 */
static const char *
escape(char dst[ID_MAX], const char *src)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *s = (const unsigned char *)(src ? src : "");
	char clean[ID_MAX];
	int n = 0;

	if (src && !kn_value_check(KN_TYPE_TEXT, src, strlen(src))) {
		kn_err_printable(
		    clean, sizeof clean, src, (int)strnlen(src, sizeof clean));
		s = (const unsigned char *)clean;
	}

	for (; *s; s++) {
		if (n + 10 > ID_MAX && (*s & 0xc0) != 0x80)
			break;
		if (*s == '"' || *s == '\\') {
			dst[n++] = '\\';
			dst[n++] = (char)*s;
		} else if (*s < 0x20 || *s == 0x7f) {
			memcpy(dst + n, "\\u00", 4);
			dst[n + 4] = hex[*s >> 4];
			dst[n + 5] = hex[*s & 15];
			n += 6;
		} else if (n + 1 < ID_MAX) {
			dst[n++] = (char)*s;
		}
	}
	dst[n] = '\0';
	return dst;
}

/* Microseconds since the start, with three decimals. */
static const char *
us(char dst[32], const struct kn_trace *t, uint64_t ns)
{
	uint64_t d = ns > t->start_ns ? ns - t->start_ns : 0;

	snprintf(dst, 32, "%llu.%03llu", (unsigned long long)(d / 1000),
	    (unsigned long long)(d % 1000));
	return dst;
}

void
kn_trace_open(struct kn_trace *t, int fd, uint64_t start_ns, uint32_t worker_n)
{
	memset(t, 0, sizeof *t);
	t->fd = fd;
	t->start_ns = start_ns;
	t->first = true;
	if (fd < 0)
		return;
	t->buf[t->n++] = '[';
	put(t, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,"
	       "\"args\":{\"name\":\"knit-sandbox\"}}");
	for (uint32_t w = 0; w < worker_n; w++)
		put(t,
		    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":%u,"
		    "\"args\":{\"name\":\"w%u\"}}",
		    w + 1, w);
}

int
kn_trace_close(struct kn_trace *t)
{
	int rc = 0;

	if (t->fd < 0)
		return 0;
	if (t->n + 4 > sizeof t->buf)
		flush(t);
	memcpy(t->buf + t->n, "\n]\n", 3);
	t->n += 3;
	flush(t);
	if (t->failed) {
		rc = -1;
		if (!errno)
			errno = EIO;
	}
	t->fd = -1;
	return rc;
}

void
kn_trace_queued(struct kn_trace *t, const char *id, uint64_t serial, uint64_t from_ns,
    uint64_t to_ns)
{
	char name[ID_MAX], a[32], b[32];

	if (t->fd < 0)
		return;
	escape(name, id);
	put(t,
	    "{\"ph\":\"b\",\"cat\":\"queued\",\"name\":\"%s\",\"id\":%llu,\"ts\":%s,"
	    "\"pid\":1,\"tid\":0}",
	    name, (unsigned long long)serial, us(a, t, from_ns));
	put(t,
	    "{\"ph\":\"e\",\"cat\":\"queued\",\"name\":\"%s\",\"id\":%llu,\"ts\":%s,"
	    "\"pid\":1,\"tid\":0}",
	    name, (unsigned long long)serial, us(b, t, to_ns));
}

void
kn_trace_ran(struct kn_trace *t, const char *id, int worker, uint64_t from_ns,
    uint64_t to_ns, const char *verdict)
{
	char name[ID_MAX], a[32];
	uint64_t dur = to_ns > from_ns ? to_ns - from_ns : 0;

	if (t->fd < 0)
		return;
	put(t,
	    "{\"ph\":\"X\",\"cat\":\"task\",\"name\":\"%s\",\"ts\":%s,"
	    "\"dur\":%llu.%03llu,\"pid\":1,\"tid\":%d,\"args\":{\"verdict\":\"%s\"}}",
	    escape(name, id), us(a, t, from_ns), (unsigned long long)(dur / 1000),
	    (unsigned long long)(dur % 1000), worker + 1, verdict);
}

void
kn_trace_instant(
    struct kn_trace *t, const char *what, const char *id, int worker, uint64_t at_ns)
{
	char name[ID_MAX], a[32];

	if (t->fd < 0)
		return;
	put(t,
	    "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"%s\",\"name\":\"%s %s\",\"ts\":%s,"
	    "\"pid\":1,\"tid\":%d}",
	    what, what, escape(name, id), us(a, t, at_ns), worker + 1);
}

void
kn_trace_moved(struct kn_trace *t, const char *id, uint64_t serial, int from, int to,
    uint64_t from_ns, uint64_t to_ns)
{
	char name[ID_MAX], a[32];

	if (t->fd < 0)
		return;
	escape(name, id);
	put(t,
	    "{\"ph\":\"s\",\"cat\":\"moved\",\"name\":\"%s\",\"id\":%llu,\"ts\":%s,"
	    "\"pid\":1,\"tid\":%d,\"args\":{\"from\":\"w%d\",\"to\":\"w%d\"}}",
	    name, (unsigned long long)serial, us(a, t, from_ns), from + 1, from, to);
	put(t,
	    "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"moved\",\"name\":\"%s\",\"id\":%llu,"
	    "\"ts\":%s,\"pid\":1,\"tid\":%d}",
	    name, (unsigned long long)serial, us(a, t, to_ns), to + 1);
}

void
kn_trace_net(struct kn_trace *t, int worker, uint64_t serial, uint64_t from_ns,
    uint64_t to_ns, const struct kn_net_end *end)
{
	char host[ID_MAX], why[ID_MAX], buf[128], a[32], b[32];

	if (t->fd < 0)
		return;
	escape(host, end->host);
	escape(why, kn_net_why_text(end->why, end->sys, buf));
	put(t,
	    "{\"ph\":\"b\",\"cat\":\"net\",\"name\":\"%s:%u\",\"id\":%llu,\"ts\":%s,"
	    "\"pid\":1,\"tid\":%d,\"args\":{\"address\":\"%s\",\"bytes_out\":%llu,"
	    "\"bytes_in\":%llu,\"refused\":\"%s\"}}",
	    host, end->port, (unsigned long long)serial, us(a, t, from_ns), worker + 1,
	    end->address, (unsigned long long)end->out_bytes,
	    (unsigned long long)end->in_bytes, why);
	put(t,
	    "{\"ph\":\"e\",\"cat\":\"net\",\"name\":\"%s:%u\",\"id\":%llu,\"ts\":%s,"
	    "\"pid\":1,\"tid\":%d}",
	    host, end->port, (unsigned long long)serial, us(b, t, to_ns), worker + 1);
}
