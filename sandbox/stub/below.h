/* sandbox/stub/below.h: the processes below one, where no PID namespace tells which
 * they are (launcher direct). Asked of the kernel's lists of children.
 */
#ifndef KN_STUB_BELOW_H
#define KN_STUB_BELOW_H

#include <stddef.h>

enum { KN_BELOW_MAX = 8192 };

/* `root` and all below it, in rising order, at most KN_BELOW_MAX: how many. Valid until
 * the next call. For the stub: its memory is one and the same each time. */
size_t kn_below_list(int proc_fd, int root, const int **out);

#endif
