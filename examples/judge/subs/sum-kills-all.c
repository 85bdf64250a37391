/* Signals everything it can, and still has to answer for itself. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int
main(void)
{
	long long n, x, total = 0;

	if (scanf("%lld", &n) != 1)
		return 1;
	while (n-- > 0 && scanf("%lld", &x) == 1)
		total += x;
	kill(-1, SIGKILL);
	kill(1, SIGKILL);
	kill(getppid(), SIGKILL);
	printf("%lld\n", total);
	return 0;
}
