/* sandbox/cgroup_find.c: find our own groups in v1, v2 and hybrid layouts.
 *
 * Our group's path counts from the root of the hierarchy as our cgroup namespace shows
 * it; a mount may show a subtree (its "root" field). Only a group that lies below the
 * mounted subtree has a directory we can name.
 */
#include "sandbox/cgroup_find.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"

enum { PROC_MAX = 16 << 20, NUMBER_MAX = 64 };

/* The n bytes at s as a string, with mountinfo's \ooo undone. false if it is too long.
 */
static bool
unescape(char *dst, size_t cap, const char *s, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (c == '\\' && i + 3 < n && s[i + 1] >= '0' && s[i + 1] <= '3') {
			c = (char)((s[i + 1] - '0') << 6 | (s[i + 2] - '0') << 3 |
				   (s[i + 3] - '0'));
			i += 3;
		}
		if (at + 1 >= cap)
			return false;
		dst[at++] = c;
	}
	dst[at] = '\0';
	return true;
}

/* Whether word (of length n) is an element of the comma-separated list. */
static bool
list_has(const char *list, size_t list_n, const char *word)
{
	size_t n = strlen(word);

	while (list_n > 0) {
		const char *comma = memchr(list, ',', list_n);
		size_t len = comma ? (size_t)(comma - list) : list_n;

		if (len == n && memcmp(list, word, n) == 0)
			return true;
		if (comma == NULL)
			return false;
		list += len + 1;
		list_n -= len + 1;
	}
	return false;
}

/* Our path in the hierarchy of controller ("" for v2): "N:controllers:/path". */
static bool
own_path(const char *text, const char *controller, char *out, size_t cap)
{
	for (const char *line = text; line != NULL && *line != '\0';) {
		const char *end = strchr(line, '\n');
		const char *a = strchr(line, ':');
		const char *b = a ? strchr(a + 1, ':') : NULL;

		if (end == NULL)
			end = line + strlen(line);
		if (b != NULL && b < end) {
			size_t n = (size_t)(b - a - 1);
			bool hit = *controller == '\0'
				       ? n == 0 && strncmp(line, "0:", 2) == 0
				       : list_has(a + 1, n, controller);

			if (hit && (size_t)(end - b - 1) < cap) {
				memcpy(out, b + 1, (size_t)(end - b - 1));
				out[end - b - 1] = '\0';
				return true;
			}
		}
		line = *end == '\n' ? end + 1 : NULL;
	}
	return false;
}

struct mount_line {
	char root[KN_CGROUP_PATH_MAX], point[KN_CGROUP_PATH_MAX];
	const char *type, *options; /* into the text */
	size_t type_n, options_n;
};

/* "36 35 98:0 /root /point opts shared:1 - type source superoptions" */
static bool
parse_mount(const char *line, const char *end, struct mount_line *m)
{
	const char *f[6], *sep, *p = line;
	size_t n[6];

	for (int i = 0; i < 6; i++) {
		f[i] = p;
		while (p < end && *p != ' ')
			p++;
		n[i] = (size_t)(p - f[i]);
		if (p < end)
			p++;
	}
	sep = memmem(p - 1, (size_t)(end - p + 1), " - ", 3);
	if (sep == NULL || n[4] == 0)
		return false;
	m->type = sep + 3;
	p = memchr(m->type, ' ', (size_t)(end - m->type));
	if (p == NULL)
		return false;
	m->type_n = (size_t)(p - m->type);
	p = memchr(p + 1, ' ', (size_t)(end - p - 1)); /* after the source */
	m->options = p ? p + 1 : end;
	m->options_n = (size_t)(end - m->options);
	return unescape(m->root, sizeof(m->root), f[3], n[3]) &&
	       unescape(m->point, sizeof(m->point), f[4], n[4]);
}

/* Directory of group path below the mount, if it is visible there. */
static void
place_set(const struct mount_line *m, const char *path, struct kn_cgroup_place *out)
{
	size_t root_n = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);
	char dir[2 * KN_CGROUP_PATH_MAX];
	int n;

	if (out->dir[0] != '\0' || strncmp(path, m->root, root_n) != 0 ||
	    (path[root_n] != '/' && path[root_n] != '\0') ||
	    strstr(path, "/..") != NULL)
		return;
	path += root_n;
	n = snprintf(dir, sizeof(dir), "%s%s", m->point, strcmp(path, "/") ? path : "");
	if (n <= 0 || (size_t)n >= sizeof(out->dir))
		return;
	memcpy(out->dir, dir, (size_t)n + 1);
	out->mount_n = (unsigned)strlen(m->point);
}

void
kn_cgroup_parse(
    const char *self_cgroup, const char *mountinfo, struct kn_cgroup_where *out)
{
	const struct {
		const char *controller;
		struct kn_cgroup_place *place;
	} want[] = {
		{ "memory", &out->memory },
		{ "pids", &out->pids },
		{ "cpuacct", &out->cpuacct },
		{ "cpu", &out->cpu },
		{ "", &out->unified },
	};
	char path[KN_CGROUP_PATH_MAX];

	memset(out, 0, sizeof(*out));
	for (const char *line = mountinfo; line != NULL && *line != '\0';) {
		const char *end = strchr(line, '\n');
		struct mount_line m;

		if (end == NULL)
			end = line + strlen(line);
		if (memmem(line, (size_t)(end - line), " - cgroup", 9) != NULL &&
		    parse_mount(line, end, &m)) {
			bool v2 = m.type_n == 7 && memcmp(m.type, "cgroup2", 7) == 0;

			for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
				bool hit = *want[i].controller == '\0'
					       ? v2
					       : !v2 && list_has(m.options, m.options_n,
							    want[i].controller);

				if (hit && own_path(self_cgroup, want[i].controller,
					       path, sizeof(path)))
					place_set(&m, path, want[i].place);
			}
		}
		line = *end == '\n' ? end + 1 : NULL;
	}
}

static char *
read_proc(const char *path, struct kn_err *e)
{
	KN_OWN_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	size_t n;

	if (fd < 0) {
		kn_err_sys(e, KN_EK_HOST, "open %s", path);
		return NULL;
	}
	return kn_fd_read_all(fd, PROC_MAX, &text, &n, e) < 0 ? NULL : text;
}

int
kn_cgroup_where(struct kn_cgroup_where *out, struct kn_err *e)
{
	char *self = read_proc("/proc/self/cgroup", e);
	char *mounts = self ? read_proc("/proc/self/mountinfo", e) : NULL;

	if (mounts != NULL)
		kn_cgroup_parse(self, mounts, out);
	free(self);
	free(mounts);
	return mounts != NULL ? 0 : -1;
}

static uint64_t
read_limit(const char *dir, const char *file)
{
	char path[KN_CGROUP_PATH_MAX + 64], text[NUMBER_MAX];
	KN_OWN_FD int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (n <= 0 || text[0] < '0' || text[0] > '9')
		return UINT64_MAX; /* absent, or "max" */
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

uint64_t
kn_cgroup_memory_bound(const struct kn_cgroup_where *w)
{
	const struct kn_cgroup_place *p = w->memory.dir[0] ? &w->memory : &w->unified;
	const char *file = p == &w->memory ? "memory.limit_in_bytes" : "memory.max";
	char dir[KN_CGROUP_PATH_MAX];
	uint64_t least = UINT64_MAX;

	memcpy(dir, p->dir, sizeof(dir));
	for (size_t n = strlen(dir); n >= p->mount_n && n > 0;) {
		uint64_t v;

		dir[n] = '\0';
		v = read_limit(dir, file);
		least = v < least ? v : least;
		if (n == p->mount_n)
			break;
		while (n > p->mount_n && dir[n] != '/')
			n--;
		while (n > p->mount_n && dir[n - 1] == '/')
			n--;
	}
	return least;
}
