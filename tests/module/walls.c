/* tests/module/walls.c: a task that looks for a way from its own lane to others': each
 * attempt that succeeds is named in the result.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <knit/task.h>

static char found[4000];

static void
note(const char *format, ...)
{
	size_t n = strlen(found);
	va_list ap;

	va_start(ap, format);
	vsnprintf(found + n, sizeof found - n, format, ap);
	va_end(ap);
}

/* What is mapped of the arena: the slice; where workers share a queue, also parts of a
 * bank, most of it read-only. */
struct slice {
	unsigned long from, to;
	bool writable;
};
static struct slice slices[8];
static int slice_n;

static int
find_slices(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[600];

	slice_n = 0;
	while (f && slice_n < 8 && fgets(line, sizeof line, f)) {
		struct slice *s = &slices[slice_n];
		char perm[8];

		if (!strstr(line, "knit-arena"))
			continue;
		if (sscanf(line, "%lx-%lx %7s", &s->from, &s->to, perm) != 3 ||
		    perm[3] != 's')
			return -1;
		s->writable = perm[1] == 'w';
		slice_n++;
	}
	if (f)
		fclose(f);
	return slice_n > 0 ? 0 : -1;
}

static bool
is_ours(unsigned long at)
{
	for (int i = 0; i < slice_n; i++)
		if (at >= slices[i].from && at < slices[i].to)
			return true;
	return false;
}

static void
try_descriptors(void)
{
	char path[64], to[256];

	for (int fd = 0; fd < 256; fd++) {
		struct stat st;
		ssize_t n;
		int again;

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		n = readlink(path, to, sizeof to - 1);
		if (n < 0)
			continue;
		to[n] = '\0';
		again = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (strstr(to, "memfd") || strstr(to, "socket:"))
			note(" fd %d=%s;", fd, to);
		if (again < 0)
			continue;
		if (fstat(again, &st) == 0 && S_ISREG(st.st_mode) &&
		    mmap(NULL, 4096, PROT_READ, MAP_SHARED, again, 0) != MAP_FAILED)
			note(" fd %d=%s mapped;", fd, to);
		close(again);
	}
}

static void
try_map_files(const struct slice *s)
{
	char path[96];
	int fd;

	snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", s->from, s->to);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		note(" %s opened;", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		note(" %s opened for reading;", path);
}

/* What lies around the mapping is not reachable through our memory file either. */
static void
try_mem(const struct slice *s)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	char b[16];

	if (fd < 0)
		return;
	if (!is_ours(s->to) && pread(fd, b, sizeof b, (off_t)s->to) > 0)
		note(" something readable lies right behind the slice;");
	if (!is_ours(s->from - 16) && pread(fd, b, sizeof b, (off_t)s->from - 16) > 0)
		note(" something readable lies right before the slice;");
	/* The kernel lets this file write to what cannot be written otherwise, but not
	 * where the mapping may never be written. */
	if (!s->writable && pread(fd, b, sizeof b, (off_t)s->from) > 0 &&
	    pwrite(fd, b, sizeof b, (off_t)s->from) > 0)
		note(" a read-only part was written;");
	close(fd);
}

static void
try_moves(const struct slice *s)
{
	size_t n = s->to - s->from;
	void *p = (void *)s->from;
	void *q;

	q = mremap(p, n, n + (1 << 20), MREMAP_MAYMOVE);
	if (q != MAP_FAILED)
		note(" mremap grew it;");
	q = mremap(p, 0, n, MREMAP_MAYMOVE);
	if (q != MAP_FAILED)
		note(" mremap doubled it;");
	/* Not even of something else: the call is refused as such. */
	q = mmap(
	    NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (q != MAP_FAILED && mremap(q, 8192, 4096, 0) != MAP_FAILED)
		note(" mremap of anything works;");
	if (syscall(SYS_remap_file_pages, p, 4096, 0, 0, 0) == 0)
		note(" remap_file_pages showed the arena's header;");
	if (syscall(SYS_remap_file_pages, p, 4096, 0, 1, 0) == 0)
		note(" remap_file_pages showed another page;");
}

/* The cell's init shares the stub's memory, and with it the stub's lane. */
static void
try_process(int pid, bool calls)
{
	static const char *const files[] = { "maps", "mem", "environ", "auxv",
		"clear_refs" };
	char path[80], b[16] = "";
	struct iovec mine = { b, sizeof b }, theirs = { (void *)0x400000, sizeof b };
	int fd;
	DIR *d;

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && pread(fd, b, sizeof b, 0x400000) > 0)
			note(" %s read;", path);
		if (fd >= 0)
			close(fd);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0)
			note(" %s opened for writing;", path);
	}
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "/proc/%d/%s", pid, i ? "fd" : "map_files");
		d = opendir(path);
		for (struct dirent *e; d && (e = readdir(d));)
			if (e->d_name[0] != '.')
				note(" %s/%s seen;", path, e->d_name);
		if (d)
			closedir(d);
	}
	if (!calls)
		return;
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0)
		note(" ptrace seized %d;", pid);
	if (process_vm_readv(pid, &mine, 1, &theirs, 1, 0) > 0)
		note(" process_vm_readv of %d;", pid);
	fd = (int)syscall(434, pid, 0); /* pidfd_open */
	for (int i = 0; fd >= 0 && i < 64; i++)
		if (syscall(438, fd, i, 0) >= 0) /* pidfd_getfd */
			note(" descriptor %d of %d taken;", i, pid);
	if (fd >= 0)
		close(fd);
}

static int
try_others(bool calls)
{
	DIR *d = opendir("/proc");
	int n = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		int pid = atoi(e->d_name);

		if (pid > 0 && pid != getpid()) {
			try_process(pid, calls);
			n++;
		}
	}
	if (d)
		closedir(d);
	return n;
}

static void
try_seal(const struct slice *s)
{
	size_t n = s->to - s->from;
	void *p = (void *)s->from;

	if (mprotect(p, n, PROT_READ | PROT_WRITE | PROT_EXEC) == 0 ||
	    (!s->writable && mprotect(p, n, PROT_READ | PROT_WRITE) == 0))
		note(" mprotect works;");
	if (mmap(p, 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
		note(" mmap over it works;");
	if (munmap((char *)p + n - 4096, 4096) == 0)
		note(" munmap works;");
}

/* "BLOCKED", or what was found. Bits of the argument: 1: also what only a sealed
 * mapping refuses (where it is not sealed it hurts nobody else); 2: also calls for
 * which some policies kill. */
KNIT_TASK(walls)
{
	int64_t flags;
	char text[4200];

	found[0] = '\0';
	if (knit_arg_i64(call, &flags) < 0)
		return -1;
	try_descriptors();
	if (find_slices() < 0)
		return knit_fail(call, "Error", "no slice is mapped");
	if (try_others(flags & 2) == 0)
		return knit_fail(call, "Error", "no other process to try");
	for (int i = 0; i < slice_n; i++) {
		try_map_files(&slices[i]);
		try_mem(&slices[i]);
		try_moves(&slices[i]);
		if (flags & 1)
			try_seal(&slices[i]);
	}
	snprintf(text, sizeof text, "%s%s", found[0] ? "ESCAPE:" : "BLOCKED", found);
	return knit_result_str(call, text);
}

static int constructed_fds = -1, constructed_seccomp = -1;

/* What the module's first instruction finds. */
__attribute__((constructor)) static void
look_around(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[200];

	while (f && fgets(line, sizeof line, f))
		(void)sscanf(line, "Seccomp: %d", &constructed_seccomp);
	if (f)
		fclose(f);
	constructed_fds = 0;
	for (int fd = 3; fd < 256; fd++)
		constructed_fds += fcntl(fd, F_GETFD) >= 0;
}

/* "SECCOMP FDS": mode of seccomp and descriptors above 2 when constructors ran. */
KNIT_TASK(constructed)
{
	char text[64];

	snprintf(text, sizeof text, "%d %d", constructed_seccomp, constructed_fds);
	return knit_result_str(call, text);
}

KNIT_TASK(crash)
{
	(void)call;
	abort();
}
