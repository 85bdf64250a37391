#include <signal.h>
#include <stdio.h>

int
main(void)
{
	raise(SIGSTOP); /* neither running nor dead */
	puts("6");
	return 0;
}
