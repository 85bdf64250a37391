/* tests/module/needs.c: a module that needs a function which nobody has. */
#include <knit/task.h>

int knit_from_a_later_version(struct knit_call *call);

KNIT_TASK(nothing)
{
	return knit_from_a_later_version(call);
}
