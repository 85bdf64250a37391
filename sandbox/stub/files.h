/* sandbox/stub/files.h: a task's files, in before it starts and out when it is gone.
 *
 * All through the descriptor of the detached tmpfs that becomes /task, beneath it and
 * without following any link: a task may leave links, pipes, sockets, deep trees and
 * strange names, and none of them leads anywhere or blocks.
 */
#ifndef KN_STUB_FILES_H
#define KN_STUB_FILES_H

#include <stdint.h>

#include "ipc/job.h"

/* Put j's files below root. fds: the job's descriptors after the stdio ones. Stops with
 * -ETIMEDOUT at deadline_ns (0: none). 0, or a negative errno with *out_path naming the
 * file. */
int kn_files_put(int root, const struct kn_job *j, const int *fds, uint32_t fd_n,
    uint64_t deadline_ns, const char **out_path);

struct kn_collect_limits {
	uint64_t file_max, total_max, count_max;
};
/* Send what j wants kept and collected, in FILES messages for (task, gen), and every
 * file of the layer (overlay.h; -1: none). Only when nothing of the cell runs any more.
 * *out_n: entries sent. 0, or a negative errno: the socket is gone. */
int kn_files_collect(int root, int layer, const struct kn_job *j,
    const struct kn_collect_limits *limits, int sock, uint32_t task, uint32_t gen,
    uint32_t *out_n);

#endif
