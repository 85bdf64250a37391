/* sandbox/oci_image.c: see oci_image.h. */
#include "sandbox/oci_image.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/oci_engine.h"
#include "sandbox/stub/sys.h"

enum { ANSWER_MS = 30000, ANSWER_MAX = 4096 };

static const char lead[] = "sha256:";

/* In the child, which has our memory as it was: system calls only. */
static void __attribute__((noreturn))
become(const char *const argv[], char *const envp[], int out)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execve(argv[0], (char *const *)(uintptr_t)argv, envp);
	_exit(127);
}

/* As much of what it says as there is room for; the rest is read and dropped. 0: all of
 * it came in time. */
static int
read_all(int fd, char *text, size_t room, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char dropped[512];
	size_t n = 0;
	ssize_t r;

	do {
		int left = kn_clock_poll_ms(kn_clock_now(), deadline);

		if (left == 0 || poll(&p, 1, left) != 1)
			return -1;
		if (n + 1 < room)
			r = read(fd, text + n, room - 1 - n);
		else
			r = read(fd, dropped, sizeof(dropped));
		if (r > 0 && n + 1 < room)
			n += (size_t)r;
	} while (r > 0 || (r < 0 && errno == EINTR));
	text[n] = '\0';
	return r < 0 ? -1 : 0;
}

/* Its status, or -1. */
static int
ask(const char *const argv[], char *text, size_t room)
{
	int p[2], status = -1, pidfd = -1, r;
	struct clone_args ca = { .flags = CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd };
	char *const *envp = kn_engine_env();
	long pid;

	text[0] = '\0';
	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	/* (without a signal at its end: it is no child that our host waits for) */
	pid = kn_sys_clone3_fork(&ca);
	if (pid == 0)
		become(argv, envp, p[1]);
	close(p[1]);
	if (pid > 0) {
		r = read_all(
		    p[0], text, room, kn_clock_after_ms(kn_clock_now(), ANSWER_MS));
		if (r < 0)
			kill((pid_t)pid, SIGKILL);
		while (kn_sys_wait4((pid_t)pid, &status, __WALL, NULL) == -EINTR)
			;
		kn_fd_close(&pidfd);
	}
	close(p[0]);
	return status;
}

static void
hint(struct kn_err *e, const char *name)
{
	kn_err_hint(e,
	    "docker pull %.100s; tar -C DIR -c . | docker import - %.100s makes one of "
	    "a "
	    "directory",
	    name, name);
}

/* Its last line is what it has to say. */
static int
refused(const char *program, const char *name, char *text, struct kn_err *e)
{
	char shown[300];
	size_t n = strlen(text);
	const char *line;

	while (n > 0 && strchr("\r\n\t ", text[n - 1]) != NULL)
		text[--n] = '\0';
	line = strrchr(text, '\n');
	line = line != NULL ? line + 1 : text;
	kn_err_printable(shown, (int)sizeof(shown), line, (int)strlen(line));
	if (shown[0] == '\0')
		kn_err_set(
		    e, KN_EK_LAUNCH, "%s image inspect %s: no answer", program, name);
	else
		kn_err_set(e, KN_EK_LAUNCH, "%s", shown);
	hint(e, name);
	return -1;
}

int
kn_image_pin(const char *program, const char *name, char out_id[KN_IMAGE_ID_SIZE],
    struct kn_err *e)
{
	const char *const argv[] = { program, "image", "inspect",
		"--format={{.Id}} {{json .Config.Volumes}}", name, NULL };
	const size_t id_n = KN_IMAGE_ID_SIZE - 1;
	char text[ANSWER_MAX], shown[200];
	const char *id, *volumes;

	if (ask(argv, text, sizeof(text)) != 0)
		return refused(program, name, text, e);
	/* (a warning may come before it) */
	id = strncmp(text, lead, sizeof(lead) - 1) == 0 ? text
							: strstr(text, "\nsha256:");
	if (id != NULL && *id == '\n')
		id++;
	if (id == NULL ||
	    strspn(id + sizeof(lead) - 1, "0123456789abcdef") !=
		id_n - (sizeof(lead) - 1) ||
	    id[id_n] != ' ')
		return refused(program, name, text, e);
	volumes = id + id_n + 1;
	if (strncmp(volumes, "null\n", 5) != 0 && strncmp(volumes, "{}\n", 3) != 0) {
		kn_err_printable(
		    shown, (int)sizeof(shown), volumes, (int)strcspn(volumes, "\n"));
		kn_err_set(e, KN_EK_CONFIG,
		    "/launcher/image: %s has volumes, which docker mounts over what "
		    "the "
		    "policy shows: %s",
		    name, shown);
		kn_err_hint(e, "an image without VOLUME, or: --launcher oci:podman");
		return -1;
	}
	memcpy(out_id, id, id_n);
	out_id[id_n] = '\0';
	return 0;
}
