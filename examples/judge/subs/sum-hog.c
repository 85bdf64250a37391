#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *volatile keep; /* so that no compiler leaves the touching out */

int
main(void)
{
	for (int i = 0; i < 1024; i++) {
		keep = malloc(1 << 20);
		if (keep)
			memset(keep, 1, 1 << 20);
	}
	pause();
	return 0;
}
