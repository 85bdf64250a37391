/* shm_leave - shared memory that nobody removes.
 * TRIES:    a System V segment of --mib, touched and left. Its namespace ends with the task,
 *           but the kernel frees it some time later: until then the worker is charged for it.
 * SANDBOX:  the next task on the same worker has all of its own memory, and its peak is its
 *           own: --use takes --mib of plain memory and gives it back.
 * OUTSIDE:  nothing.
 */
#include "hostile.h"
#include <sys/mman.h>
#include <sys/shm.h>
int main(int c, char **v)
{
    h_init(c, v, 60, 60);
    size_t n = (size_t)h_num(c, v, "--mib", 8) << 20;
    if (h_flag(c, v, "--use")) {
        char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) blocked("mmap: %s", strerror(errno));
        memset(p, 1, n);
        pending("used %zu bytes", n);
    }
    int id = shmget(IPC_PRIVATE, n, 0600);
    if (id < 0) blocked("shmget: %s", strerror(errno));
    char *p = shmat(id, NULL, 0);
    if (p == (char *)-1) blocked("shmat: %s", strerror(errno));
    memset(p, 1, n);
    pending("left %zu bytes", n);
}
