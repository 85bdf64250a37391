/* init_limits - the cell's init is ended by a limit that the task sets for it.
 * TRIES:    prlimit() reaches any process of one's own user, dumpable or not: PID 1 gets a
 *           processor time of 0, then orphans to reap, until the kernel ends it.
 * SANDBOX:  refused, or the task ends as killed; never as a failure of the sandbox's own,
 *           which would be tried again: a task that runs once, runs once.
 * OUTSIDE:  the line that it writes to --mark FILE is there once.
 */
#include "hostile.h"
int main(int c, char **v)
{
    h_init(c, v, 20, 30);
    const char *mark = h_opt(c, v, "--mark");
    if (mark) {
        int fd = open(mark, O_WRONLY | O_APPEND | O_CREAT, 0666);
        if (fd < 0 || write(fd, "begun\n", 6) != 6) inconclusive("cannot write %s", mark);
        close(fd);
    }
    struct rlimit none = { 0, 0 };
    if (getpid() == 1) inconclusive("is PID 1 itself");
    if (prlimit(1, RLIMIT_CPU, &none, NULL) < 0) blocked("prlimit(1): %s", strerror(errno));
    double end = h_now() + 3;
    for (int k = 0; k < 3; k++) {
        if (fork() != 0) continue;
        while (h_now() < end) {
            pid_t p = fork();
            if (p == 0) {
                for (int i = 0; i < 8; i++) if (fork() == 0) _exit(0);
                _exit(0);
            }
            if (p > 0) waitpid(p, NULL, 0);
        }
        _exit(0);
    }
    h_sleep(3.5);
    escape("limits of PID 1 can be set (it survived them)");
}
