/* cmd/init.h: being process 1, where a container runs us without an init. */
#ifndef KN_CMD_INIT_H
#define KN_CMD_INIT_H

#include <signal.h>
#include <stdbool.h>

bool kn_init_is(void);
/* At the start: signals that end a program end this one too, until a verb holds them.
 */
void kn_init_begin(void);
/* Add SIGCHLD to the signals that a loop holds; when it comes, and once before, reap.
 * Nothing of each, unless we are process 1. */
void kn_init_hold(sigset_t *set);
void kn_init_reap(void);

#endif
