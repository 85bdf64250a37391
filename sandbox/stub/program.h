/* sandbox/stub/program.h: the files that the kernel opens to execute a program: the
 * file itself, and its interpreters: that of "#!", and a dynamic program's loader.
 *
 * Only what lies on a read-only mount counts: in another a task could put something
 * else into the file. Raw calls only; 0 or a negative errno.
 */
#ifndef KN_STUB_PROGRAM_H
#define KN_STUB_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { KN_PROGRAMS_MAX = 128 };
struct kn_programs {
	int fd[KN_PROGRAMS_MAX]; /* by O_PATH */
	uint32_t n;
};

/* The program at `path`. -EACCES: it is no file, -ETXTBSY: a task could write to it. An
 * interpreter that is not there is not missed: execve says so. */
int kn_programs_add(struct kn_programs *p, const char *path);
/* The interpreters of a program that is open for reading. */
void kn_programs_add_open(struct kn_programs *p, int fd);
/* Those of a list in the boot record (ipc/control.h). A name means each file that has
 * it along the PATH. *out_what: the entry that means none. */
int kn_programs_find(
    struct kn_programs *p, const char *list, size_t n, const char **out_what);

#endif
