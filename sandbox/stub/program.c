/* sandbox/stub/program.c: programs and their interpreters (sandbox/stub/program.h). */
#include "sandbox/stub/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "sandbox/stub/sys.h"

enum {
	HEAD = 256,   /* as the kernel reads of a file's start (BINPRM_BUF_SIZE) */
	CHAIN = 6,    /* a script's interpreter may be a script, so often */
	HEADERS = 64, /* of an ELF file, that are looked at */
	PATH_ROOM = 4096,
};

/* ---- the interpreter of one ---- */

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool
of_script(const char *head, size_t n, char out[HEAD])
{
	size_t from = 2, to;

	while (from < n && is_blank(head[from]))
		from++;
	for (to = from; to < n && !is_blank(head[to]) && head[to] != '\n' && head[to];)
		to++;
	if (to == from || to >= HEAD)
		return false;
	memcpy(out, head + from, to - from);
	out[to - from] = '\0';
	return true;
}

static bool
read_name(int fd, uint64_t at, uint64_t n, char out[HEAD])
{
	if (n < 2 || n > HEAD || kn_sys_pread(fd, out, n, (int64_t)at) != (long)n)
		return false;
	return out[n - 1] == '\0';
}

/* What is wanted of either class. */
struct table {
	uint64_t at;
	unsigned n, size;
};
struct part {
	uint64_t type, at, n;
};

static bool
read_table(const char *head, size_t n, bool wide, struct table *out)
{
	Elf64_Ehdr e64;
	Elf32_Ehdr e32;

	if (n < (wide ? sizeof e64 : sizeof e32))
		return false;
	if (wide) {
		memcpy(&e64, head, sizeof e64);
		*out = (struct table){ e64.e_phoff, e64.e_phnum, sizeof(Elf64_Phdr) };
	} else {
		memcpy(&e32, head, sizeof e32);
		*out = (struct table){ e32.e_phoff, e32.e_phnum, sizeof(Elf32_Phdr) };
	}
	return true;
}

static bool
read_part(int fd, uint64_t at, bool wide, struct part *out)
{
	Elf64_Phdr p64;
	Elf32_Phdr p32;

	if (wide) {
		if (kn_sys_pread(fd, &p64, sizeof p64, (int64_t)at) != sizeof p64)
			return false;
		*out = (struct part){ p64.p_type, p64.p_offset, p64.p_filesz };
	} else {
		if (kn_sys_pread(fd, &p32, sizeof p32, (int64_t)at) != sizeof p32)
			return false;
		*out = (struct part){ p32.p_type, p32.p_offset, p32.p_filesz };
	}
	return true;
}

static bool
of_elf(int fd, const char *head, size_t n, bool wide, char out[HEAD])
{
	struct table t;
	struct part p;

	if (!read_table(head, n, wide, &t))
		return false;
	for (unsigned i = 0; i < t.n && i < HEADERS; i++) {
		if (!read_part(fd, t.at + (uint64_t)i * t.size, wide, &p))
			return false;
		if (p.type == PT_INTERP)
			return read_name(fd, p.at, p.n, out);
	}
	return false;
}

static bool
interpreter_of(int fd, char out[HEAD])
{
	char head[HEAD];
	long n = kn_sys_pread(fd, head, sizeof head, 0);

	if (n < 2)
		return false;
	if (head[0] == '#' && head[1] == '!')
		return of_script(head, (size_t)n, out);
	if (n <= EI_CLASS || memcmp(head, ELFMAG, SELFMAG) != 0)
		return false;
	return of_elf(fd, head, (size_t)n, head[EI_CLASS] == ELFCLASS64, out);
}

/* ---- programs ---- */

static int
take(struct kn_programs *p, const char *path)
{
	int fd = kn_sys_openat(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0), r = 0;
	struct statfs fs;
	struct stat st;

	if (fd < 0)
		return fd;
	if (kn_sys_stat(fd, "", &st, AT_EMPTY_PATH) < 0 || !S_ISREG(st.st_mode))
		r = -EACCES;
	else if (KN_SYS2(SYS_fstatfs, fd, &fs) < 0 || !(fs.f_flags & ST_RDONLY))
		r = -ETXTBSY;
	else if (p->n == KN_PROGRAMS_MAX)
		r = -E2BIG;
	if (r < 0)
		kn_sys_close(fd);
	else
		p->fd[p->n++] = fd;
	return r;
}

static int
add(struct kn_programs *p, const char *path, int depth)
{
	char next[HEAD];

	for (; depth < CHAIN; depth++) {
		int r = take(p, path), fd;
		bool more;

		if (r < 0)
			return depth > 0 && r == -ENOENT ? 0 : r;
		/* Of one that cannot be read the interpreters are not known. */
		fd = kn_sys_openat(
		    AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
		if (fd < 0)
			return 0;
		more = interpreter_of(fd, next);
		kn_sys_close(fd);
		if (!more)
			return 0;
		path = next;
	}
	return 0;
}

int
kn_programs_add(struct kn_programs *p, const char *path)
{
	return add(p, path, 0);
}

void
kn_programs_add_open(struct kn_programs *p, int fd)
{
	char next[HEAD];

	if (interpreter_of(fd, next))
		(void)add(p, next, 1);
}

/* ---- a list ---- */

static int
find_name(struct kn_programs *p, const char *dir, const char *name)
{
	size_t name_n = strlen(name);
	char path[PATH_ROOM];
	int found = -ENOENT;

	for (;;) {
		size_t n = strcspn(dir, ":");
		int r = -ENOENT;

		if (n > 0 && dir[0] == '/' && n + name_n + 2 <= sizeof path) {
			memcpy(path, dir, n);
			path[n] = '/';
			memcpy(path + n + 1, name, name_n + 1);
			r = kn_programs_add(p, path);
		}
		if (r == -E2BIG)
			return r;
		if (found < 0 && (r == 0 || r == -ETXTBSY || r == -EACCES))
			found = r;
		if (dir[n] == '\0')
			return found;
		dir += n + 1;
	}
}

int
kn_programs_find(
    struct kn_programs *p, const char *list, size_t n, const char **out_what)
{
	const char *end = list + n;

	for (const char *s = list + strlen(list) + 1; s < end; s += strlen(s) + 1) {
		int r = *s == '/' ? kn_programs_add(p, s) : find_name(p, list, s);

		*out_what = s;
		if (r < 0)
			return r;
	}
	return 0;
}
