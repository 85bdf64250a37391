/* lease - holds up whoever writes to a file that the task may only read.
 * TRIES:    a lease on --file, which its owner may take on a descriptor that only reads: a
 *           writer outside then waits in open() until the task gives it back (45 s).
 * SANDBOX:  refused, whoever the file belongs to.
 * OUTSIDE:  a writer is not held up.
 */
#include "hostile.h"
int main(int c, char **v)
{
    h_init(c, v, 20, 20);
    const char *path = h_opt(c, v, "--file");
    int fd = path ? open(path, O_RDONLY) : -1;
    if (fd < 0) inconclusive("no --file to read");
    signal(SIGIO, SIG_IGN);
    if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0) blocked("F_SETLEASE: %s", strerror(errno));
    h_sleep((double)h_num(c, v, "--for", 2));
    escape("a lease on %s", path);
}
