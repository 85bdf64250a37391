/* CPU time counts over all threads. */
#include <pthread.h>
#include <unistd.h>

static void *
spin(void *unused)
{
	(void)unused;
	for (volatile unsigned long i = 0;; i++)
		;
}

int
main(void)
{
	pthread_t t;

	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, spin, NULL);
	pause();
	return 0;
}
