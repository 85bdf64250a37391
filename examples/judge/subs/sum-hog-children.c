/* Each process stays below the limit, together they are far over it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *volatile keep;

int
main(void)
{
	for (int i = 0; i < 6; i++) {
		if (fork() == 0) {
			keep = malloc(40 << 20);
			if (keep)
				memset(keep, 1, 40 << 20);
			for (;;)
				pause();
		}
	}
	for (;;)
		pause();
}
