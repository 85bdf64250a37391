#include <stdio.h>
#include <string.h>

int
main(void)
{
	static char b[1 << 20];
	char name[32];

	memset(b, 'x', sizeof b);
	for (int i = 0; i < 4096; i++) {
		FILE *f;

		snprintf(name, sizeof name, "fill%d", i);
		if (!(f = fopen(name, "w")) || fwrite(b, 1, sizeof b, f) != sizeof b ||
		    fclose(f))
			return 4; /* full: this is what should happen */
	}
	return 0;
}
