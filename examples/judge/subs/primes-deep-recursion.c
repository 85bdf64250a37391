#include <stdio.h>

static long
deep(long n, volatile char *above)
{
	volatile char here[1024];

	here[n % 1024] = above[0];
	return deep(n + 1, here) + here[0];
}

int
main(void)
{
	volatile char top[1] = { 1 };

	printf("%ld\n", deep(0, top));
	return 0;
}
