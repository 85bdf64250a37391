/* keepers_first - when memory runs out, its keepers are killed and not the task.
 * TRIES:    takes its own oom_score_adj back to 0 (no privilege is needed to go down to
 *           what the parent had), stays tiny, and fills files, which are memory of nobody:
 *           the kernel then picks the largest process, which is the launcher.
 * SANDBOX:  the value stays; --full ends as "memory" and not as a lost worker.
 * OUTSIDE:  the worker is the same one afterwards.
 */
#include "hostile.h"
#include <sys/mman.h>
int main(int c, char **v)
{
    h_init(c, v, 20, 30);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY), got = fd < 0 ? errno : 0;
    if (fd >= 0 && write(fd, "0", 1) < 0) got = errno;
    if (!h_full) {
        if (got) blocked("oom_score_adj: %s", strerror(got));
        escape("oom_score_adj was set to 0");
    }
    static const char *const dirs[] = { "/tmp", "/dev/shm", "/task" };
    static char b[65536];
    memset(b, 1, sizeof b);
    for (int i = 0; i < 30; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/full%d", dirs[i % 3], i);
        int f = open(name, O_CREAT | O_WRONLY, 0600);
        while (f >= 0 && write(f, b, sizeof b) > 0) { }
        if (f >= 0) close(f);
    }
    for (int i = 0; i < 1000; i++) {
        int m = memfd_create("full", 0);
        if (m < 0) break;
        for (int k = 0; k < 16; k++) if (write(m, b, sizeof b) <= 0) break;
    }
    blocked("files were full before the memory was");
}
