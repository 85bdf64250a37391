/* CPU time counts over all processes: no single one here reaches the limit soon. */
#include <sys/wait.h>
#include <unistd.h>

int
main(void)
{
	for (;;) {
		if (fork() == 0) {
			for (volatile unsigned long i = 0; i < 2000000; i++)
				;
			_exit(0);
		}
		wait(0);
	}
}
