/* sandbox/stub/look.c: one process, through /proc (sandbox/stub/look.h). */
#include "sandbox/stub/look.h"

#include <fcntl.h>
#include <string.h>

#include "sandbox/stub/sys.h"
#include "sandbox/stub/text.h"

enum {
	STAT_BYTES = 1024,   /* /proc/<pid>/stat */
	ROLLUP_BYTES = 2048, /* /proc/<pid>/smaps_rollup */
	PAGE_BYTES = 4096,
	STATUS_BYTES = 2048, /* /proc/<pid>/status, as far as Threads */
};

static long
read_file(int proc_fd, const char *pid, const char *name, char *buf, size_t n)
{
	char path[64];
	struct kn_text t = { path, sizeof path, 0 };
	long got;
	int fd;

	kn_text_str(&t, pid);
	kn_text_str(&t, "/");
	kn_text_str(&t, name);
	fd = kn_sys_openat(proc_fd, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	got = kn_sys_read(fd, buf, n);
	kn_sys_close(fd);
	return got;
}

/* The fields follow the last ')': a command's name may hold anything. */
bool
kn_look_stat(int proc_fd, const char *pid, struct kn_look_stat *out)
{
	char buf[STAT_BYTES];
	long n = read_file(proc_fd, pid, "stat", buf, sizeof buf);
	const char *p, *end;
	size_t used;

	if (n <= 0)
		return false;
	end = buf + n;
	p = memrchr(buf, ')', (size_t)n);
	if (!p)
		return false;
	memset(out, 0, sizeof *out);
	/* Field 3 (state) comes next; numbers may be negative. */
	for (int field = 3; field <= 20; field++) {
		uint64_t v;

		p = memchr(p, ' ', (size_t)(end - p));
		if (!p)
			return false;
		p++;
		v = kn_text_number(p, (size_t)(end - p), &used);
		if (field == 3)
			out->state = p < end ? *p : '\0';
		else if (field == 4)
			out->ppid = (int)v;
		else if (field == 20)
			out->threads = v;
		else if (field == 16 || field == 17)
			out->waited_ticks += v;
	}
	return true;
}

bool
kn_look_thread_runs(int proc_fd, int pid)
{
	static _Alignas(16) char dents[4096];
	char path[64];
	struct kn_text t = { path, sizeof path, 0 };
	bool runs = false;
	int dir;
	long n;

	kn_text_u64(&t, (uint64_t)pid);
	kn_text_str(&t, "/task");
	dir = kn_sys_openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	while (dir >= 0 && !runs && (n = kn_sys_getdents(dir, dents, sizeof dents)) > 0)
		for (long at = 0; at < n && !runs;) {
			const struct kn_sys_dirent *d = (const void *)(dents + at);
			struct kn_look_stat s;

			at += d->reclen;
			runs = d->name[0] != '.' && kn_look_stat(dir, d->name, &s) &&
			       s.state == 'R';
		}
	kn_sys_close(dir);
	return runs;
}

/* Processor time of a process, all threads, from its own clock: exact where the numbers
 * in /proc are rounded down to ticks. */
uint64_t
kn_look_cpu_ns(int pid)
{
	return kn_sys_clock_ns((int)((~(unsigned)pid << 3) | 2));
}

/* Resident pages that are not of files: upper bound, shared ones count each time. */
uint64_t
kn_look_resident(int proc_fd, const char *pid)
{
	char buf[128];
	long n = read_file(proc_fd, pid, "statm", buf, sizeof buf);
	uint64_t v[3] = { 0, 0, 0 };
	size_t at = 0, used;

	for (int i = 0; i < 3 && n > 0 && at < (size_t)n; i++) {
		v[i] = kn_text_number(buf + at, (size_t)n - at, &used);
		at += used + 1;
	}
	/* resident counts shared memory too, and so do we: /dev/shm and memfd are
	 * memory. Mapped files come with it; the exact look takes them out. */
	return v[1] * PAGE_BYTES;
}

static uint64_t
rollup_kib(const char *buf, size_t n, const char *key)
{
	size_t key_n = strlen(key), used;
	const char *p = memmem(buf, n, key, key_n);

	if (!p)
		return 0;
	p += key_n;
	while (p < buf + n && *p == ' ')
		p++;
	return kn_text_number(p, (size_t)(buf + n - p), &used);
}

/* Its share of the pages, each page counted once over all processes; where the process
 * does not let itself be read, all of them. */
uint64_t
kn_look_exact(int proc_fd, const char *pid)
{
	char buf[ROLLUP_BYTES];
	long n = read_file(proc_fd, pid, "smaps_rollup", buf, sizeof buf);

	if (n <= 0)
		return kn_look_resident(proc_fd, pid);
	return (rollup_kib(buf, (size_t)n, "Pss_Anon:") +
		   rollup_kib(buf, (size_t)n, "Pss_Shmem:")) *
	       1024;
}

static uint64_t
number_after(const char *buf, size_t n, const char *key)
{
	size_t key_n = strlen(key), used;
	const char *p = memmem(buf, n, key, key_n);

	return p ? kn_text_number(p + key_n, n - (size_t)(p + key_n - buf), &used)
		 : UINT64_MAX;
}

uint64_t
kn_look_threads_of(int proc_fd, const char *pid, uint32_t uid)
{
	char buf[STATUS_BYTES];
	long n = read_file(proc_fd, pid, "status", buf, sizeof buf);
	uint64_t threads;

	if (n <= 0 || number_after(buf, (size_t)n, "\nUid:\t") != uid)
		return 0;
	threads = number_after(buf, (size_t)n, "\nThreads:\t");
	return threads == UINT64_MAX ? 1 : threads;
}
