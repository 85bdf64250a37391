#include <signal.h>
#include <stdio.h>

int
main(void)
{
	volatile int zero = 0;

	printf("%d\n", 6 / zero);
	raise(SIGFPE); /* machines whose division does not trap */
	return 0;
}
