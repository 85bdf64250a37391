/* supervisor/capture.h: the bytes kept of one stream: the first part and the last.
 *
 * Up to cap bytes all is kept. Beyond it the first half of the cap stays as it is and
 * the second half is a ring that holds the newest bytes; the rest is only counted. So
 * a task that floods costs its cap and nothing more.
 */
#ifndef KN_SUPERVISOR_CAPTURE_H
#define KN_SUPERVISOR_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

struct kn_capture;

struct kn_cap {
	char *p;
	size_t room; /* allocated */
	uint64_t cap;
	uint64_t total; /* bytes that came */
};

void kn_cap_init(struct kn_cap *c, uint64_t cap);
void kn_cap_fini(struct kn_cap *c);
/* Out of memory lowers the cap to what is there. */
void kn_cap_put(struct kn_cap *c, const char *p, size_t n);
/* Move the bytes out in order: head, then tail. Leaves c empty. */
void kn_cap_take(struct kn_cap *c, struct kn_capture *out);

#endif
