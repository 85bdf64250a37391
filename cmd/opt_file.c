/* cmd/opt_file.c: files that options name, and what to do where one cannot be had. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/opt.h"
#include "ipc/err.h"
#include "ipc/fd.h"
#include "ipc/near.h"

enum { LOOK_AT = 2000 }; /* names of a folder: it is only a hint */

/* A letter or a number is as near to any other one, as the processes in /proc are. */
static bool
says_nothing(const char *name)
{
	return strlen(name) < 2 || name[strspn(name, "0123456789")] == '\0';
}

/* The name in that folder which was meant by a misspelt one; fresh, or NULL. */
static char *
meant(const char *folder, const char *name)
{
	struct kn_near near = kn_near_to(name);
	DIR *d = opendir(folder);
	char *best = NULL;
	struct dirent *x;

	if (!d)
		return NULL;
	for (int i = 0; i < LOOK_AT && (x = readdir(d)); i++) {
		unsigned edits = near.edits;

		if (says_nothing(x->d_name) || strcmp(x->d_name, "..") == 0)
			continue;
		kn_near_try(&near, x->d_name);
		if (near.edits < edits) { /* the next name takes this one's place */
			free(best);
			best = strdup(x->d_name);
			near.best = best;
		}
	}
	closedir(d);
	if (!best || !kn_near_best(&near)) {
		free(best);
		return NULL;
	}
	return best;
}

/* Where path should have been; fresh, or NULL. */
static char *
folder_of(const char *path, const char **out_name)
{
	const char *slash = strrchr(path, '/');

	*out_name = slash ? slash + 1 : path;
	return slash == path ? strdup("/")
	       : slash	     ? strndup(path, (size_t)(slash - path))
			     : strdup(".");
}

bool
kn_opt_hint_near(struct kn_err *e, const char *path)
{
	const char *name;
	char *folder = folder_of(path, &name);
	char *near = folder ? meant(folder, name) : NULL;
	bool is = near && strcmp(near, name) != 0;

	if (is)
		kn_err_hint(e, "did you mean %.*s%s?", (int)(name - path), path, near);
	free(near);
	free(folder);
	return is;
}

static void
hint_missing(struct kn_err *e, const char *path)
{
	const char *name;
	char *folder = folder_of(path, &name), *cwd = NULL;
	struct stat st;

	if (!folder)
		return;
	if (stat(folder, &st) < 0)
		kn_err_hint(e, "there is no directory %s%s", folder,
		    folder[0] == '~' ? ": the shell turns ~ into a path only where it "
				       "begins a word"
				     : "");
	else if (!S_ISDIR(st.st_mode))
		kn_err_hint(e, "%s is no directory", folder);
	else if (stat(path, &st) == 0)
		kn_err_hint(e, "%s is no directory", path);
	else if (kn_opt_hint_near(e, path))
		;
	else if (path[0] != '/' && (cwd = getcwd(NULL, 0)))
		kn_err_hint(e, "looked for in the current directory, %s", cwd);
	else
		kn_err_hint(e, "nothing in %s has such a name", folder);
	free(cwd);
	free(folder);
}

void
kn_opt_hint_file(struct kn_err *e, const char *path)
{
	switch (e->sys) {
	case ENOENT:
	case ENOTDIR:
		hint_missing(e, path);
		break;
	case EACCES:
		kn_err_hint(e,
		    "user %u may not; namei -l %s shows whose each part of it is",
		    (unsigned)geteuid(), path);
		break;
	case EISDIR:
		kn_err_hint(e, "name a file in it");
		break;
	default:
		break;
	}
}

int
kn_opt_open(const char *option, const char *path, struct kn_err *e)
{
	KN_OWN_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		kn_err_sys(e, KN_EK_USAGE, "%s: open %s", option, path);
		kn_opt_hint_file(e, path);
		return -1;
	}
	/* It reads as an error that would pass for an end. */
	if (S_ISDIR(st.st_mode))
		return kn_opt_refuse(
		    e, "name a file in it", "%s: %s is a directory", option, path);
	return kn_fd_take(&fd);
}
