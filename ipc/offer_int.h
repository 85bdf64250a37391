/* ipc/offer_int.h: between offer.c and offer_look.c. */
#ifndef KN_IPC_OFFER_INT_H
#define KN_IPC_OFFER_INT_H

#include <stdint.h>

struct kn_offer;

/* Publish the toggles of flip, 0: only raise the count, so that all look again. */
void kn_offer_store_published(struct kn_offer *o, uint32_t flip);
/* Our claim word: own_ack, and the regions wanted. */
void kn_offer_store_own(struct kn_offer *o, uint32_t want);
/* area below 0: nothing. */
void kn_offer_free_area(struct kn_offer *o, int area);
/* Take in what claimant c has stored. Returns its word. */
uint64_t kn_offer_look(struct kn_offer *o, uint32_t c);

#endif
