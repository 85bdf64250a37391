#include <unistd.h>

int
main(void)
{
	return setuid(0) || geteuid() ? 4 : 0;
}
