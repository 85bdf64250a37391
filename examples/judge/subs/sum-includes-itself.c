#include "main.c"

int
main(void)
{
	return 0;
}
