/* ipc_round - a message queue that outlives its task, behind numbers that say there is none.
 * TRIES:    --leave: a queue with a key and a message in it. Each object's number tells how many
 *           there were before it, until the count begins anew after some million: queues are made
 *           and removed until it does, and the next number is the one it would have been.
 * SANDBOX:  the next task on the same worker (--look) finds no queue.
 * OUTSIDE:  nothing.
 */
#include "hostile.h"
#include <sys/msg.h>
enum { KEY = 0x6b6e, PLACES = 64, PLACE = 0x7fff, KEEP = 40, NEAR = 10, MOST = 8000000 };
static int next_queue(key_t key)
{
    int q = msgget(key, IPC_CREAT | 0600);
    if (q < 0) blocked("msgget: %s", strerror(errno));
    return q;
}
int main(int c, char **v)
{
    struct { long type; char text[8]; } m = { 1, "secret" };
    int keep[KEEP], n = 0, before, q;
    long made = 1;
    h_init(c, v, 120, 120);
    if (h_flag(c, v, "--look")) {
        q = msgget(KEY, 0);
        if (q < 0) blocked("no queue: %s", strerror(errno));
        escape("found a queue of the task before");
    }
    q = next_queue(IPC_PRIVATE);
    before = q - 1; /* that of whoever looked before us whether all is new */
    msgctl(q, IPC_RMID, 0);
    /* The more places are taken, the shorter the rounds; those that are next stay free. */
    for (; n < KEEP && made < 4 * PLACES; made++) {
        int far;
        q = next_queue(n == 0 ? KEY : IPC_PRIVATE);
        far = ((q & PLACE) - (before & PLACE) + PLACES) % PLACES;
        if (far > NEAR && far < PLACES - NEAR)
            keep[n++] = q;
        else
            msgctl(q, IPC_RMID, 0);
    }
    if (n < KEEP || msgsnd(keep[0], &m, sizeof m.text, 0) < 0) blocked("no queue to leave");
    do {
        q = next_queue(IPC_PRIVATE);
        msgctl(q, IPC_RMID, 0);
        made++;
    } while (q != before && made < MOST);
    for (int i = 1; i < n; i++)
        msgctl(keep[i], IPC_RMID, 0);
    if (q != before) blocked("the numbers did not begin anew");
    pending("left a queue after %ld others", made);
}
