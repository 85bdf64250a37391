/* tests/module/refused.c: a module that makes calls which a policy refuses: one as it
 * is loaded, others in its tasks. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <knit/task.h>

__attribute__((constructor)) static void
loaded(void)
{
	(void)syscall(SYS_keyctl, 17, 0, 0, 0, 0);
}

KNIT_TASK(internet)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return knit_result_i64(call, fd < 0 ? -errno : fd);
}

KNIT_TASK(nothing)
{
	return knit_result_null(call);
}
