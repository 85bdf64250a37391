/* leftovers - what one task leaves for the next.
 * TRIES:    without --look: puts a marked file in each folder it may write to (/tmp,
 *           /dev/shm, /task, /var/tmp, /run, /dev, /, and $HOME), SysV shared memory, a
 *           semaphore, a message queue, a POSIX queue, a POSIX semaphore, a key, an
 *           abstract socket, and a daemon in a session of its own that ignores signals.
 *           With --look: searches for all of these.
 * SANDBOX:  PENDING for the first (it says what it could plant); BLOCKED for --look as
 *           the next task of the same worker: nothing is there.
 * OUTSIDE:  no process named knit-leftover.
 */
#include <dirent.h>
#include <mqueue.h>
#include <stdbool.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/hostile/hostile.h"

enum { KEY = 0x6b6e6974 };
#define MARK "knit-leftover"

static const char *const folders[] = { "/tmp", "/dev/shm", "/task", "/var/tmp", "/run",
	"/dev", "/", "/proc", "/usr", "/etc", NULL };
static char list[900];
static int n;

static void
note(const char *what)
{
	size_t at = strlen(list);

	snprintf(list + at, sizeof list - at, " %s", what);
	n++;
}

static void
path_in(const char *folder, char *out, size_t room)
{
	snprintf(out, room, "%s/%s", folder, MARK);
}

static socklen_t
abstract(struct sockaddr_un *a)
{
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	memcpy(a->sun_path + 1, MARK, sizeof MARK - 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof MARK);
}

static void
daemonize(int sock)
{
	int ready[2];
	char c;

	if (pipe(ready))
		inconclusive("pipe: %s", strerror(errno));
	if (fork() != 0) {
		close(ready[1]);
		if (read(ready[0], &c, 1) != 1)
			inconclusive("the daemon did not start");
		return;
	}
	setsid();
	if (fork() != 0)
		_exit(0);
	prctl(PR_SET_NAME, MARK, 0, 0, 0);
	for (int s = 1; s < 65; s++)
		signal(s, SIG_IGN);
	close(0);
	close(1);
	close(2);
	(void)sock; /* kept open */
	if (write(ready[1], "r", 1) != 1)
		_exit(1);
	h_sleep(60);
	_exit(0);
}

static void
plant(void)
{
	char path[300];
	struct sockaddr_un a;
	socklen_t len = abstract(&a);
	int s;

	for (int i = 0; folders[i]; i++) {
		path_in(folders[i], path, sizeof path);
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
		if (fd >= 0 && write(fd, "x", 1) == 1)
			note(path);
	}
	if (shmget(KEY, 4096, IPC_CREAT | 0666) >= 0)
		note("shm");
	if (semget(KEY, 1, IPC_CREAT | 0666) >= 0)
		note("sem");
	if (msgget(KEY, IPC_CREAT | 0666) >= 0)
		note("msg");
	if (mq_open("/" MARK, O_CREAT | O_RDWR, 0666, NULL) != (mqd_t)-1)
		note("mq");
	/* -4: the user keyring; add_key(type, name, payload, n, ring) */
	if (syscall(SYS_add_key, "user", MARK, "x", 1, -4) >= 0)
		note("key");
	s = socket(AF_UNIX, SOCK_STREAM, 0);
	if (s >= 0 && bind(s, (struct sockaddr *)&a, len) == 0 && listen(s, 1) == 0)
		note("abstract-socket");
	daemonize(s);
	note("daemon");
	pending("planted:%s; look for them in the next task with --look", list);
}

static void
look_for_process(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	char path[300], name[64];

	while (d && (e = readdir(d))) {
		FILE *f;

		snprintf(path, sizeof path, "/proc/%s/comm", e->d_name);
		f = atoi(e->d_name) > 0 ? fopen(path, "r") : NULL;
		if (f && fgets(name, sizeof name, f) && !strncmp(name, MARK, 13) &&
		    atoi(e->d_name) != getpid())
			note("daemon");
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
}

static void
look(void)
{
	char path[300];
	struct sockaddr_un a;
	socklen_t len = abstract(&a);
	int s;

	prctl(PR_SET_NAME, "looker", 0, 0, 0);
	for (int i = 0; folders[i]; i++) {
		path_in(folders[i], path, sizeof path);
		if (access(path, F_OK) == 0)
			note(path);
	}
	if (shmget(KEY, 0, 0) >= 0)
		note("shm");
	if (semget(KEY, 0, 0) >= 0)
		note("sem");
	if (msgget(KEY, 0) >= 0)
		note("msg");
	if (mq_open("/" MARK, O_RDONLY) != (mqd_t)-1)
		note("mq");
	if (syscall(SYS_keyctl, 10, -4, "user", MARK, 0) >= 0) /* KEYCTL_SEARCH */
		note("key");
	s = socket(AF_UNIX, SOCK_STREAM, 0);
	if (s >= 0 && connect(s, (struct sockaddr *)&a, len) == 0)
		note("abstract-socket");
	look_for_process();
	if (n)
		escape("%d leftovers of another task:%s", n, list);
	blocked("nothing of another task is here");
}

int
main(int c, char **v)
{
	h_init(c, v, 20, 20);
	if (h_in_first_pidns())
		inconclusive("would leave things on the machine");
	if (h_flag(c, v, "--look"))
		look();
	plant();
	return 1;
}
