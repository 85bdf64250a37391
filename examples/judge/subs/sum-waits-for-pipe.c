#include <unistd.h>

int
main(void)
{
	int fd[2];
	char c;

	if (pipe(fd))
		return 1;
	return (int)read(fd[0], &c, 1); /* its own write end stays open */
}
