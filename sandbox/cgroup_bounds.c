/* sandbox/cgroup_bounds.c: does a v2 group limit what is in it? Who leaves it would
 * leave that behind.
 *
 * The kernel has a file for each limit, and gets new ones: memory.max, io.max,
 * hugetlb.2MB.max, rdma.max. Those that are called so are read alike, also ones that
 * nobody knows here; what cannot be read or understood counts as a limit. Of cpuset an
 * empty file sets none. Weights are no limits, and programs of BPF in the group have no
 * file (IPAddressDeny= and DeviceAllow= of systemd): knit-policy(5) says so.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ipc/fd.h"
#include "sandbox/cgroup_dir.h"
#include "sandbox/cgroup_tree.h"

static bool
ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

/* "max", "max 100000" (of each period), "8:16 rbps=max wbps=max", "res_a max"; cut off
 * where the text was. */
static bool
is_max(char *line)
{
	char *save = NULL, *word = strtok_r(line, " ", &save);

	if (word == NULL || strcmp(word, "max") == 0)
		return true;
	word = strtok_r(NULL, " ", &save);
	if (word == NULL)
		return false;
	for (; word != NULL; word = strtok_r(NULL, " ", &save))
		if (strcmp(word, "max") != 0 && !ends_in(word, "=max"))
			return false;
	return true;
}

static bool
limits(int fd, const char *file)
{
	char text[4096], *save = NULL;

	if (kn_cgroup_dir_read(fd, file, text, sizeof(text)) < 0)
		return errno != ENOENT;
	if (strncmp(file, "cpuset.", 7) == 0)
		return text[strspn(text, " \n")] != '\0';
	for (char *line = strtok_r(text, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save))
		if (!is_max(line))
			return true;
	return false;
}

bool
kn_cgroup_has_no_limit(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *ent;
	bool free_of_all = d != NULL;

	while (free_of_all && (errno = 0, ent = readdir(d)) != NULL) {
		const char *f = ent->d_name;

		if (ends_in(f, ".max") || ends_in(f, ".high") ||
		    strcmp(f, "cpuset.cpus") == 0 || strcmp(f, "cpuset.mems") == 0)
			free_of_all = !limits(dirfd(d), f);
	}
	if (d != NULL) {
		free_of_all = free_of_all && errno == 0;
		closedir(d);
	}
	return free_of_all;
}
