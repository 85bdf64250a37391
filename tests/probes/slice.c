/* slice - looks for the arena, the memory that supervisor and stub share.
 * TRIES:    its own descriptors for a memfd or a socket, each opened anew and mapped;
 *           its own maps and map_files for a shared mapping, which it then grows and
 *           doubles with mremap, and turns to another page with remap_file_pages; for
 *           every process it sees (PID 1 of the cell is a relative of the stub): maps,
 *           mem, auxv, environ, map_files, fd; ptrace (attach and seize),
 *           process_vm_readv and writev, pidfd_getfd of the first 64 descriptors.
 *           --no-calls: without the last line, for which some policies kill.
 *           --kin: of processes, its parent and that one's parents up to the supervisor
 *           and no other, where those of the machine are to be seen.
 * SANDBOX:  BLOCKED: no shared mapping, and every door to another process is shut.
 * OUTSIDE:  nothing to check.
 */
#include <dirent.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "tests/hostile/hostile.h"

static char found[900];
static int processes;

static void
note(const char *fmt, ...)
{
	va_list ap;
	size_t n = strlen(found);

	va_start(ap, fmt);
	vsnprintf(found + n, sizeof found - n, fmt, ap);
	va_end(ap);
}

static void
own_fds(void)
{
	char path[64], to[256];

	for (int fd = 0; fd < 1024; fd++) {
		ssize_t n;
		int again;

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		n = readlink(path, to, sizeof to - 1);
		if (n < 0)
			continue;
		to[n] = '\0';
		if (!strstr(to, "memfd:") && !strstr(to, "socket:"))
			continue;
		note(" fd %d=%.60s;", fd, to);
		again = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (again >= 0 &&
		    mmap(NULL, 4096, PROT_READ, MAP_SHARED, again, 0) != MAP_FAILED)
			note(" it opens and maps;");
		if (again >= 0)
			close(again);
	}
}

static void
try_map(unsigned long from, unsigned long to)
{
	char path[96];
	int fd;

	snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", from, to);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		note(" %s opened;", path);
		close(fd);
	}
	if (syscall(SYS_remap_file_pages, from, 4096, 0, 1, 0) == 0)
		note(" remap_file_pages shows another page;");
	if (mremap((void *)from, 0, to - from, MREMAP_MAYMOVE) != MAP_FAILED)
		note(" mremap doubles it;");
	if (mremap((void *)from, to - from, to - from + (1 << 20), MREMAP_MAYMOVE) !=
	    MAP_FAILED)
		note(" it grows;");
}

static void
own_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[600], perm[8], path[300];
	unsigned long from, to;

	if (!f)
		inconclusive("cannot read its own maps");
	while (fgets(line, sizeof line, f)) {
		path[0] = '\0';
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %299[^\n]", &from, &to, perm,
			path) < 3)
			continue;
		if (perm[3] != 's' && !strstr(path, "memfd:"))
			continue;
		note(" own map %lx-%lx %s %.60s;", from, to, perm, path);
		try_map(from, to);
	}
	fclose(f);
}

static void
try_files(int pid)
{
	static const char *const files[] = { "maps", "mem", "auxv", "environ" };
	char path[80], b[256];
	unsigned long at = 0x400000;

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		int fd;

		snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!strcmp(files[i], "mem") ? pread(fd, b, 16, (off_t)at) > 0
					     : read(fd, b, sizeof b) > 0)
			note(" %s read;", path);
		close(fd);
	}
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		note(" %s opened for writing;", path);
		close(fd);
	}
}

static void
try_folder(int pid, const char *name)
{
	char path[80], full[400], to[300];
	DIR *d;
	struct dirent *e;

	snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		ssize_t l;

		if (e->d_name[0] == '.')
			continue;
		snprintf(full, sizeof full, "%s/%s", path, e->d_name);
		l = readlink(full, to, sizeof to - 1);
		if (l > 0) {
			to[l] = '\0';
			note(" %s=%.60s;", full, to);
		}
		if (open(full, O_RDONLY | O_NONBLOCK | O_CLOEXEC) >= 0)
			note(" %s opened;", full);
	}
	if (d)
		closedir(d);
}

static void
try_calls(int pid)
{
	char b[16] = "";
	struct iovec mine = { b, sizeof b }, theirs = { (void *)0x400000, sizeof b };
	int pidfd;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0)
		note(" ptrace seized %d;", pid);
	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) == 0)
		note(" ptrace attached to %d;", pid);
	if (process_vm_readv(pid, &mine, 1, &theirs, 1, 0) > 0)
		note(" process_vm_readv of %d;", pid);
	if (process_vm_writev(pid, &mine, 0, &theirs, 0, 0) == 0 && errno == 0)
		note(" process_vm_writev of %d;", pid);
	pidfd = (int)syscall(434, pid, 0); /* pidfd_open */
	for (int fd = 0; pidfd >= 0 && fd < 64; fd++)
		if (syscall(438, pidfd, fd, 0) >= 0) /* pidfd_getfd */
			note(" descriptor %d of %d stolen;", fd, pid);
	if (pidfd >= 0)
		close(pidfd);
}

static void
one(int pid, bool calls)
{
	processes++;
	try_files(pid);
	try_folder(pid, "fd");
	try_folder(pid, "map_files");
	errno = 0;
	if (calls)
		try_calls(pid);
}

static void
others(bool calls)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		int pid = atoi(e->d_name);

		if (pid > 0 && pid != getpid())
			one(pid, calls);
	}
	if (d)
		closedir(d);
}

static int
parent_of(int pid)
{
	char path[64];
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%*d (%*[^)]) %*c %d", &parent) != 1)
		parent = 0;
	fclose(f);
	return parent;
}

/* The cell's init, the stub, the supervisor. */
static void
kin(bool calls)
{
	int pid = getppid();

	for (int i = 0; i < 3 && pid > 1; i++, pid = parent_of(pid))
		one(pid, calls);
}

int
main(int c, char **v)
{
	bool calls = !h_flag(c, v, "--no-calls"), of_kin = h_flag(c, v, "--kin");

	h_init(c, v, 20, 20);
	if (!of_kin && h_in_first_pidns())
		inconclusive("would look at the machine's own processes");
	own_fds();
	own_maps();
	if (of_kin)
		kin(calls);
	else
		others(calls);
	if (found[0])
		escape("reached:%s", found);
	blocked("no shared mapping; %d other processes seen, all shut", processes);
}
