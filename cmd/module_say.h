/* cmd/module_say.h: what modules print, on our stderr, line by line.
 *
 * Nobody who does not read it holds us up: lines that do not go out are counted, and
 * the worker's next one that does is preceded by their number.
 */
#ifndef KN_CMD_MODULE_SAY_H
#define KN_CMD_MODULE_SAY_H

#include <stdint.h>

struct kn_module_voice { /* zeroed by its owner */
	uint64_t unread[256];
};
/* The `say` of struct knit_pool_options; ctx is a struct kn_module_voice. */
void kn_module_say(void *ctx, unsigned worker, const char *line);

#endif
