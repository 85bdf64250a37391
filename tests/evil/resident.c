/* tests/evil/resident.c: lies about the process that a module lives in. To the stub it
 * is one job; what a stub says of its end is what the supervisor goes by. */
#include <signal.h>
#include <sys/syscall.h>

#include "evil.h"
#include "sandbox/stub/sys.h"

static struct kn_stub *stub;

/* ---- it has ended, and goes on answering calls ---- */

static void
say_ended(uint32_t *task, uint32_t *gen, uint64_t *ns)
{
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_slot_head h;

	(void)ns;
	evil_answer(&h, bytes, *task, *gen, 0);
	(void)evil_publish(stub, &h, bytes);
}

static void
ended_early(struct kn_stub *s)
{
	stub = s;
	evil.begin = say_ended;
}

/* ---- it is ended by the stub, when it has been at it for a while ---- */

static void
end_it_later(uint32_t *task, uint32_t *gen, uint64_t *ns)
{
	(void)task;
	(void)gen;
	(void)ns;
	if (evil_fork() == 0) {
		evil_pause_ms(100);
		(void)KN_SYS2(SYS_kill, -1, SIGKILL); /* all but us and the stub */
		kn_sys_exit(0);
	}
}

static void
killed(struct kn_stub *s)
{
	(void)s;
	evil.begin = end_it_later;
}

/* ---- its end is not told ---- */

static void
end_untold(struct kn_stub *s)
{
	(void)s;
	evil.no_result = true;
}

const struct evil_lie evil_resident_lies[] = {
	{ "resident-ended-early", EVIL_SERVE, ended_early },
	{ "resident-end-untold", EVIL_SERVE, end_untold },
	{ "resident-killed", EVIL_SERVE, killed },
	{ NULL, EVIL_START, NULL },
};
