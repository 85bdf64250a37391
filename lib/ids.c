/* lib/ids.c: each worker of a root's pool runs under a uid of its own, out of a range
 * that is the process's (sandbox/uid.h). Several pools in one process divide it.
 */
#include <string.h>

#include "lib/lib.h"
#include "sandbox/uid.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool used[KN_UID_RANGE];

int
kn_ids_take(struct kn_host *h, uint32_t n, struct kn_ids *out, struct knit_error *e)
{
	uint32_t at = 0, run = 0, end = h->worker_uid_n;
	int rc = -1;

	*out = (struct kn_ids){ 0 };
	if (!h->ids || n == 0)
		return 0;
	if (end > KN_UID_RANGE)
		end = KN_UID_RANGE;
	if (n > end)
		n = end; /* the launcher says it if that is too few */
	pthread_mutex_lock(&lock);
	for (; at < end && run < n; at++)
		run = used[at] ? 0 : run + 1;
	if (run == n) {
		memset(used + at - n, true, n);
		*out = (struct kn_ids){ .at = at - n, .n = n };
		rc = 0;
	}
	pthread_mutex_unlock(&lock);
	if (rc < 0)
		return kn_lib_fail(e, KNIT_E_HOST,
		    "the %u user ids for workers of this process are in use: no %u "
		    "left for another pool",
		    end, n);
	h->worker_uid_base += out->at;
	h->worker_uid_n = n;
	return 0;
}

void
kn_ids_give_back(struct kn_ids *ids)
{
	if (ids->n == 0)
		return;
	pthread_mutex_lock(&lock);
	memset(used + ids->at, false, ids->n);
	pthread_mutex_unlock(&lock);
	*ids = (struct kn_ids){ 0 };
}
