/* sandbox/stub_text.h: between which addresses the stub's code will lie. */
#ifndef KN_SANDBOX_STUB_TEXT_H
#define KN_SANDBOX_STUB_TEXT_H

#include <stdint.h>

struct kn_err;

/* It is linked to a fixed place (Makefile), one where programs have nothing. Read from
 * the image that is started. 0, or -1 with e. */
int kn_stub_text(uint64_t *out_from, uint64_t *out_to, struct kn_err *e);

#endif
