/* tests/fault/stubborn.c: a launcher and worker in one that becomes ready as any other
 * and then does not stop.
 *
 * Started in bwrap's place (KNIT_BWRAP), outside of any sandbox: it maps its slice,
 * answers the ping, claims its tasks and never ends one, and ignores every signal that
 * it can. Asked to stop it acknowledges and goes on, or does not even acknowledge; the
 * storm test writes which into the copy that it starts.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/arena.h"
#include "ipc/bell.h"
#include "ipc/control.h"
#include "ipc/err.h"
#include "ipc/fd.h"
#include "ipc/lane.h"

static const volatile char mode[] = "stubborn-mode:acknowledge";
enum { MODE_AT = 14, FDS = KN_BOOT_FD_BELL + 1 };

static struct kn_return_tx tx;

static int
acknowledges(void)
{
	return mode[MODE_AT] == 'a';
}

/* Record, arena and bell come first; of the rest nothing is needed. */
static int
boot(struct kn_slice *out, int *out_bell)
{
	static struct kn_boot_bind binds[512];
	static char body[KN_MSG_BODY_MAX];
	int fds[KN_MSG_FDS_MAX], n = 0, sealed;
	struct kn_boot b;
	struct kn_err e;
	struct kn_map m;
	struct stat st;
	void *record;

	if (kn_fd_recv(
		KN_STUB_SOCK_FD, body, sizeof body, fds, KN_MSG_FDS_MAX, &n, 0) <= 0 ||
	    n < FDS || fstat(fds[KN_BOOT_FD_RECORD], &st) < 0)
		return -1;
	record = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE,
	    fds[KN_BOOT_FD_RECORD], 0);
	if (record == MAP_FAILED ||
	    kn_boot_decode(record, (size_t)st.st_size, &b, binds, 512) < 0 ||
	    kn_arena_map_slice(fds[KN_BOOT_FD_ARENA], &b.layout, b.pool_id, b.worker,
		&m, &sealed, &e) < 0)
		return -1;
	kn_slice_at(m.p, &b.layout, out);
	*out_bell = fds[KN_BOOT_FD_BELL];
	return 0;
}

static void
take(const struct kn_slice *s, const struct kn_msg *m, int bell)
{
	struct kn_slot_head head;
	uint8_t bytes[KN_INLINE_MAX];

	if (m->arg >= KN_SLOTS || !kn_submit_claim(s, (int)m->arg, &head, bytes))
		return;
	if (head.kind == KN_REQ_PING) {
		if (kn_return_publish(&tx, s, &head, bytes))
			kn_bell_ring(s->control, bell);
		return;
	}
	kn_control_begin(s->control, head.task, head.gen, 1);
	kn_bell_ring(s->control, bell);
}

int
main(void)
{
	static char body[KN_MSG_BODY_MAX];
	struct kn_slice s;
	int bell;

	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction ign = { .sa_handler = SIG_IGN };

		sigaction(sig, &ign, NULL);
	}
	if (boot(&s, &bell) < 0)
		return 1;
	for (;;) {
		int fds[KN_MSG_FDS_MAX], n = 0;
		struct kn_msg m;

		if (kn_fd_recv(KN_STUB_SOCK_FD, body, sizeof body, fds, KN_MSG_FDS_MAX,
			&n, 0) <= 0)
			pause(); /* also then */
		for (int i = 0; i < n; i++)
			kn_fd_close(&fds[i]);
		memcpy(&m, body, sizeof m);
		if (m.type == KN_MSG_TASK)
			take(&s, &m, bell);
		if (kn_control_stopping(s.control) && acknowledges()) {
			kn_control_ack_stop(s.control);
			kn_bell_ring(s.control, bell);
		}
	}
}
