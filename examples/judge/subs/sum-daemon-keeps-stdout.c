/* The child it leaves behind holds the output open: the answer must not wait for it. */
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
	if (fork() == 0) {
		setsid();
		signal(SIGHUP, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
		for (;;)
			sleep(60);
	}
	printf("%lld\n", total);
	return 0;
}
