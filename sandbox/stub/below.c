/* sandbox/stub/below.c: children of children (sandbox/stub/below.h). */
#include "sandbox/stub/below.h"

#include <fcntl.h>
#include <string.h>

#include "sandbox/stub/children.h"
#include "sandbox/stub/sys.h"
#include "sandbox/stub/text.h"

enum { DIGITS = 24 };

static int found[KN_BELOW_MAX];
static size_t found_n;

static void
take(int pid)
{
	if (pid > 1 && found_n < KN_BELOW_MAX)
		found[found_n++] = pid;
}

static int
open_at(int proc_fd, int pid, const char *rest, const char *more, int flags)
{
	char path[96];
	struct kn_text t = { path, sizeof path, 0 };

	kn_text_u64(&t, (uint64_t)pid);
	kn_text_str(&t, rest);
	kn_text_str(&t, more);
	return kn_sys_openat(proc_fd, path, flags | O_CLOEXEC, 0);
}

/* Children are those of the thread that made them. */
static void
take_children(int proc_fd, int pid)
{
	static _Alignas(16) char dents[4096];
	int dir = open_at(proc_fd, pid, "/task", "", O_RDONLY | O_DIRECTORY);
	long n;

	while (dir >= 0 && (n = kn_sys_getdents(dir, dents, sizeof dents)) > 0) {
		for (long at = 0; at < n;) {
			const struct kn_sys_dirent *d = (const void *)(dents + at);
			char path[DIGITS + 16];
			struct kn_text t = { path, sizeof path, 0 };
			int fd;

			at += d->reclen;
			if (d->name[0] == '.')
				continue;
			kn_text_str(&t, d->name);
			kn_text_str(&t, "/children");
			fd = kn_sys_openat(dir, path, O_RDONLY | O_CLOEXEC, 0);
			if (fd >= 0)
				kn_children_each(fd, take);
			kn_sys_close(fd);
		}
	}
	kn_sys_close(dir);
}

/* Nearly in order as it comes. */
static void
sort(void)
{
	for (size_t gap = found_n / 2; gap > 0; gap /= 2)
		for (size_t i = gap; i < found_n; i++) {
			int v = found[i];
			size_t j = i;

			for (; j >= gap && found[j - gap] > v; j -= gap)
				found[j] = found[j - gap];
			found[j] = v;
		}
}

size_t
kn_below_list(int proc_fd, int root, const int **out)
{
	size_t kept = 0;

	found_n = 0;
	take(root);
	for (size_t i = 0; i < found_n; i++)
		take_children(proc_fd, found[i]);
	sort();
	/* One that changed its parent meanwhile may have been met twice. */
	for (size_t i = 0; i < found_n; i++)
		if (kept == 0 || found[kept - 1] != found[i])
			found[kept++] = found[i];
	*out = found;
	return kept;
}
