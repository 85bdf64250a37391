/* in_flight - descriptors that travel in local sockets and never arrive.
 * TRIES:    --leave FILE: a lock on FILE and --mib of memory, sent into a pair of sockets
 *           that hold each other: nobody has them, and they outlive the task.
 *           --look FILE: as the next task on the same worker, looks for that lock.
 *           --fill: as many as the user may have in flight, kept for --for seconds: then
 *           whoever of that user sends a descriptor is refused, supervisor included.
 * SANDBOX:  the next task finds nothing, and does not pay for the memory; neighbours go on.
 * OUTSIDE:  FILE can be locked as soon as the result is there.
 */
#include "hostile.h"
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
static int send_fds(int s, int fd, int n)
{
    char b = 0, cb[CMSG_SPACE(sizeof(int) * 200)];
    struct iovec io = { &b, 1 };
    struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = cb,
        .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n) };
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n);
    for (int i = 0; i < n; i++) memcpy(CMSG_DATA(h) + sizeof(int) * (size_t)i, &fd, sizeof fd);
    return (int)sendmsg(s, &m, MSG_DONTWAIT);
}
static void leave(const char *path, long mib)
{
    int f = open(path, O_RDONLY), s[2], m = memfd_create("left", 0);
    static char b[1 << 20];
    if (f < 0 || flock(f, LOCK_EX | LOCK_NB) < 0) inconclusive("lock %s: %s", path, strerror(errno));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) < 0) blocked("socketpair: %s", strerror(errno));
    memset(b, 1, sizeof b);
    for (long i = 0; m >= 0 && i < mib; i++) if (write(m, b, sizeof b) < 0) break;
    if (send_fds(s[0], f, 1) < 0 || send_fds(s[0], s[0], 1) < 0 || send_fds(s[0], s[1], 1) < 0 ||
        send_fds(s[1], s[0], 1) < 0) blocked("sendmsg: %s", strerror(errno));
    if (m >= 0) send_fds(s[0], m, 1);
    pending("left");
}
static void look(const char *path)
{
    int f = open(path, O_RDONLY);
    if (f < 0) inconclusive("%s: %s", path, strerror(errno));
    if (flock(f, LOCK_EX | LOCK_NB) < 0) escape("%s is still locked by a task that is gone", path);
    blocked("%s is free", path);
}
int main(int c, char **v)
{
    h_init(c, v, 60, 60);
    if (h_opt(c, v, "--leave")) leave(h_opt(c, v, "--leave"), h_num(c, v, "--mib", 8));
    if (h_opt(c, v, "--look")) look(h_opt(c, v, "--look"));
    long n = 0;
    for (int s[2]; socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) == 0;)
        while (send_fds(s[0], 0, 200) > 0) n += 200;
    h_sleep((double)h_num(c, v, "--for", 1));
    pending("%ld descriptors were in flight", n);
}
