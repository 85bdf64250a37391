#include <stdio.h>

int
main(void)
{
	volatile int *nowhere = NULL;

	return *nowhere;
}
