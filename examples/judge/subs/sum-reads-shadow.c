#include <stdio.h>

int
main(void)
{
	FILE *f = fopen("/etc/shadow", "r");

	return f ? 0 : 4; /* not there, or not for us */
}
