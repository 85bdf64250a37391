/* shared_hog - memory that stays when no process has it mapped any more.
 * TRIES:    --mib MiB (safe 32, full 4096) in shared mappings of no file, or of /dev/zero
 *           (--mode zero): touched, then dropped from the process; they are still there.
 *           --mode part: all but one page of each is unmapped.
 * SANDBOX:  a cgroup limit (shmem is charged), or no such mapping.
 * OUTSIDE:  memory back after the end.
 */
#include "hostile.h"
#include <sys/mman.h>
#define PART (16l << 20)
int main(int c, char **v)
{
    h_init(c, v, 10, 60);
    const char *m = h_opt(c, v, "--mode");
    long mib = h_num(c, v, "--mib", h_full ? 4096 : 32), got = 0;
    int zero = m && !strcmp(m, "zero"), fd = -1;
    if (mib > 4096) mib = 4096;
    if (zero && (fd = open("/dev/zero", O_RDWR)) < 0) blocked("/dev/zero: %s", strerror(errno));
    while (got < mib) {
        char *p = mmap(NULL, PART, PROT_READ | PROT_WRITE,
            MAP_SHARED | (zero ? 0 : MAP_ANONYMOUS), fd, 0);
        if (p == MAP_FAILED) blocked("mmap: %s (after %ld MiB)", strerror(errno), got);
        for (long at = 0; at < PART; at += 4096) p[at] = 1;
        if (m && !strcmp(m, "part")) munmap(p + 4096, PART - 4096);
        else madvise(p, PART, MADV_DONTNEED);
        got += 16;
    }
    escape("%ld MiB are in no process", got);
}
