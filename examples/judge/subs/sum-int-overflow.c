#include <stdio.h>

int
main(void)
{
	unsigned total = 0; /* too narrow for the third run */
	int n, x;

	if (scanf("%d", &n) != 1)
		return 1;
	while (n-- > 0 && scanf("%d", &x) == 1)
		total += (unsigned)x;
	printf("%d\n", (int)total);
	return 0;
}
