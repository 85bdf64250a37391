/* sandbox/stub/main.c: knit-worker, the first process in a sandbox. It has no
 * environment worth reading, and few arguments: the directory of a worker without
 * namespaces (direct.h), or what it is to do in a container before it begins (nest.h,
 * bridge.h). All else that it is told comes through descriptor 3. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/stub/bridge.h"
#include "sandbox/stub/nest.h"
#include "sandbox/stub/stub.h"

int
main(void)
{
	static struct kn_stub stub;
	const char *word = kn_bare_args[0] ? kn_bare_args[1] : NULL, *what = NULL;

	stub.sock = KN_STUB_SOCK_FD;
	stub.direct.scope_fd = stub.direct.place_fd = -1;
	if (word && strcmp(word, "nest") == 0) {
		enum kn_boot_step step;
		int r = kn_nest(kn_bare_args, &step, &what);

		kn_boot_fail(stub.sock, step, r, what);
		return 1;
	}
	if (word && strcmp(word, "fetch") == 0) {
		int r = kn_bridge_fetch(kn_bare_args[2], &what);

		if (r < 0) {
			kn_boot_fail(-1, KN_BSTEP_FETCH, r, what);
			return 1;
		}
	} else if (word) {
		stub.direct.place = word;
	}
	if (fcntl(stub.sock, F_SETFD, FD_CLOEXEC) < 0 ||
	    syscall(SYS_close_range, KN_STUB_EXE_FD + 1, ~0u, 0) < 0)
		return 1;
	if (kn_boot_stub(&stub) < 0)
		return 1;
	kn_serve(&stub);
	/* We are PID 1: whatever might be left of the sandbox ends with us. */
	return 0;
}
