/* sandbox/stub/ipcns.c: is an IPC namespace untouched (sandbox/stub/ipcns.h)? */
#include "sandbox/stub/ipcns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "sandbox/stub/sys.h"

enum { MODE = 0600, SHM_BYTES = 4096 };

/* An object made just now, which is gone at once: its number, or a negative errno. */
static int
make_one(int kind)
{
	long id, r;

	if (kind == 0) {
		id = KN_SYS2(SYS_msgget, IPC_PRIVATE, MODE);
		r = id < 0 ? id : KN_SYS3(SYS_msgctl, id, IPC_RMID, 0);
	} else if (kind == 1) {
		id = KN_SYS3(SYS_semget, IPC_PRIVATE, 1, MODE);
		r = id < 0 ? id : KN_SYS4(SYS_semctl, id, 0, IPC_RMID, 0);
	} else {
		id = KN_SYS3(SYS_shmget, IPC_PRIVATE, SHM_BYTES, MODE);
		r = id < 0 ? id : KN_SYS3(SYS_shmctl, id, IPC_RMID, 0);
	}
	return (int)(r < 0 ? r : id);
}

/* Numbers come around after some four million objects, so that one could be left behind
 * under cover of others: those that are there now are counted, too. */
static bool
has_objects(int kind)
{
	struct msginfo msg = { 0 };
	struct seminfo sem = { 0 };
	struct shm_info shm = { 0 };
	long r;

	if (kind == 0)
		r = KN_SYS3(SYS_msgctl, 0, MSG_INFO, &msg);
	else if (kind == 1)
		r = KN_SYS4(SYS_semctl, 0, 0, SEM_INFO, &sem);
	else
		r = KN_SYS3(SYS_shmctl, 0, SHM_INFO, &shm);
	return r < 0 || msg.msgpool != 0 || sem.semusz != 0 || shm.used_ids != 0;
}

/* A detached mount of the namespace's own file system of message queues. */
static int
open_queues(void)
{
	int fs = (int)KN_SYS2(SYS_fsopen, "mqueue", FSOPEN_CLOEXEC), r;

	if (fs < 0)
		return fs;
	r = (int)KN_SYS5(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (r == 0)
		r = (int)KN_SYS3(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
		    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	kn_sys_close(fs);
	return r;
}

static bool
look_at_queues(const struct kn_ipcns *n, struct stat *out)
{
	memset(out, 0, sizeof *out); /* it is compared byte by byte */
	return kn_sys_stat(n->queues_fd, "", out, AT_EMPTY_PATH) == 0;
}

/* The numbers go up by one, and after the 64th begin at 0 with another high part: that
 * is not told from what a task made, and costs a new namespace each 64 tasks. */
static bool
is_untouched(struct kn_ipcns *n)
{
	struct stat now;

	if (!n->known)
		return false;
	for (int i = 0; i < KN_IPCNS_KINDS; i++) {
		int id = make_one(i);

		if (id < 0 || id != n->last[i] + 1 || has_objects(i))
			return false;
		n->last[i] = id;
	}
	return look_at_queues(n, &now) && memcmp(&now, &n->queues, sizeof now) == 0;
}

static void
get_to_know(struct kn_ipcns *n)
{
	n->queues_fd = open_queues();
	n->known = n->queues_fd >= 0 && look_at_queues(n, &n->queues);
	for (int i = 0; n->known && i < KN_IPCNS_KINDS; i++) {
		n->last[i] = make_one(i);
		n->known = n->last[i] >= 0;
	}
}

void
kn_ipcns_init(struct kn_ipcns *n)
{
	*n = (struct kn_ipcns){ .queues_fd = -1 };
}

int
kn_ipcns_renew(struct kn_ipcns *n)
{
	int r;

	if (is_untouched(n))
		return 0;
	kn_sys_close_at(&n->queues_fd);
	n->known = false;
	r = (int)KN_SYS1(SYS_unshare, CLONE_NEWIPC);
	if (r < 0)
		return r;
	/* In part or not at all where the kernel lacks something: then the next task's
	 * end is followed by a new one in any case. */
	get_to_know(n);
	return 0;
}
