/* sandbox/cgroup_delegated.c: looks first, so that what is missing has a name; then
 * does what a pool does, since only the kernel knows whether that works. */
#include "sandbox/cgroup_delegated.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/cgroup.h"
#include "sandbox/cgroup_dir.h"
#include "sandbox/cgroup_find.h"

enum { CONTROLLERS_MAX = 512 };

static const struct {
	const char *name;
	size_t v1; /* its place in a v1 machine */
} wanted[] = {
	{ "memory", offsetof(struct kn_cgroup_where, memory) },
	{ "pids", offsetof(struct kn_cgroup_where, pids) },
};
enum { WANTED_N = sizeof wanted / sizeof wanted[0] };

static const struct kn_cgroup_place *
v1_place(const struct kn_cgroup_where *w, int i)
{
	return (const void *)((const char *)w + wanted[i].v1);
}

static int
writable(const char *dir, const char *file, struct kn_err *e)
{
	char path[KN_CGROUP_PATH_MAX + 64];

	snprintf(path, sizeof path, "%s/%s", dir, file);
	if (access(path, W_OK) < 0)
		return kn_err_sys(
		    e, KN_EK_HOST, "cgroup %.130s: %s may not be written", dir, file);
	return 0;
}

static int
has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = text; (p = strstr(p, word)) != NULL; p += n) {
		if ((p == text || p[-1] == ' ') && (p[n] == '\0' || p[n] == ' '))
			return 1;
	}
	return 0;
}

static int
unified(const char *dir, unsigned want, struct kn_err *e)
{
	char have[CONTROLLERS_MAX], lacks[64] = "";
	KN_OWN_FD int fd = -1;
	size_t n = 0;

	if (!dir[0])
		return kn_err_set(e, KN_EK_HOST,
		    "no cgroup hierarchy is mounted here "
		    "that shows this process's group");
	if (writable(dir, ".", e) < 0 || writable(dir, "cgroup.procs", e) < 0 ||
	    writable(dir, "cgroup.subtree_control", e) < 0)
		return -1;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 ||
	    kn_cgroup_dir_read(fd, "cgroup.controllers", have, sizeof have) < 0)
		return kn_err_sys(
		    e, KN_EK_HOST, "cgroup %.150s: read cgroup.controllers", dir);
	have[strcspn(have, "\n")] = '\0';
	for (int i = 0; i < WANTED_N; i++) {
		if ((want & 1u << i) && !has_word(have, wanted[i].name))
			n += (size_t)snprintf(lacks + n, sizeof lacks - n, "%s%s",
			    n ? ", " : "", wanted[i].name);
	}
	if (n)
		return kn_err_set(e, KN_EK_HOST,
		    "cgroup %.100s: controllers missing: %s (there are: %.60s)", dir,
		    lacks, have[0] ? have : "none");
	return 0;
}

int
kn_cgroup_delegated_at(const struct kn_cgroup_where *w, struct kn_err *e)
{
	unsigned in_v2 = 0;

	for (int i = 0; i < WANTED_N; i++) {
		const struct kn_cgroup_place *p = v1_place(w, i);

		if (!p->dir[0])
			in_v2 |= 1u << i;
		else if (writable(p->dir, ".", e) < 0)
			return -1;
	}
	return in_v2 ? unified(w->unified.dir, in_v2, e) : 0;
}

int
kn_cgroup_delegated(struct kn_err *e)
{
	struct kn_cgroup_where w;
	struct kn_cgroup *g;
	uint8_t id[16];
	bool memory, pids;

	if (kn_cgroup_where(&w, e) < 0 || kn_cgroup_delegated_at(&w, e) < 0)
		return -1;
	if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id)
		return kn_err_sys(e, KN_EK_HOST, "get random bytes");
	if (kn_cgroup_open(id, 1, &g, e) < 0)
		return -1;
	memory = kn_cgroup_has_memory(g);
	pids = kn_cgroup_has_pids(g);
	kn_cgroup_close(g);
	if (memory && pids)
		return 0;
	return kn_err_set(e, KN_EK_HOST,
	    "cgroup %.130s: %s cannot be handed on to groups below it (other processes "
	    "are in it?)",
	    w.unified.dir,
	    memory ? "pids"
	    : pids ? "memory"
		   : "memory, pids");
}
