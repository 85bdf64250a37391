/* supervisor/log.h: debug and diagnostic lines on stderr; the only logger.
 *
 *   [w0 +12.3ms lifecycle] ready pid=41
 *
 * One line per event, one write per line. A namespace that is off costs the test of a
 * bit: use KN_LOG(), which does not evaluate its arguments then.
 */
#ifndef KN_SUPERVISOR_LOG_H
#define KN_SUPERVISOR_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum kn_log_ns {
	KN_NS_HOST,
	KN_NS_LIFECYCLE,
	KN_NS_SIGNALS,
	KN_NS_IMPORTS,
	KN_NS_SANDBOX,
	KN_NS_POLICY,
	KN_NS_N
};

struct kn_log {
	uint32_t mask; /* 1 << enum kn_log_ns */
	bool json;     /* one JSON object a line */
	int fd;
	uint64_t start_ns;
};

/* Lines that belong to no worker. */
enum { KN_LOG_POOL = -1 };

#define KN_LOG(log, ns, worker, ...) \
	do { \
		if ((log)->mask & (1u << (ns))) \
			kn_log_line((log), (ns), (worker), __VA_ARGS__); \
	} while (0)

void kn_log_line(const struct kn_log *l, enum kn_log_ns ns, int worker, const char *fmt,
    ...) __attribute__((format(printf, 4, 5)));
const char *kn_log_ns_name(enum kn_log_ns ns);
/* "lifecycle,policy" or "*" -> mask. 0, or -1 with *out_bad pointing at the first
 * unknown name and *out_bad_n its length. */
int kn_log_mask(
    const char *list, uint32_t *out_mask, const char **out_bad, int *out_bad_n);

#endif
