#include <pthread.h>
#include <unistd.h>

static void *
sit(void *unused)
{
	pause();
	return unused;
}

int
main(void)
{
	pthread_t t;

	for (int i = 0; i < 10000; i++)
		if (pthread_create(&t, NULL, sit, NULL))
			_exit(5); /* refused: this is what should happen */
	return 0;
}
