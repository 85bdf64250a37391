#include <stdio.h>

int
main(void)
{
	long long n, x, total = 0;

	if (scanf("%lld", &n) != 1)
		return 1;
	while (n-- > 0 && scanf("%lld", &x) == 1)
		total += x;
	printf("%lld\n", total);
	return 0;
}
