/* tests/module/says.c: a task that prints. */
#include <knit/task.h>
#include <stdio.h>

KNIT_TASK(say)
{
	puts("said");
	fflush(stdout);
	return knit_result_null(call);
}
