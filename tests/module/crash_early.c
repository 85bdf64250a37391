/* tests/module/crash_early.c: a module whose constructor crashes. */
#include <signal.h>

#include <knit/task.h>

__attribute__((constructor)) static void
early(void)
{
	raise(SIGSEGV);
}

KNIT_TASK(nothing)
{
	return 0;
}
