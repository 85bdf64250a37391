#include <assert.h>
#include <stdio.h>

int
main(void)
{
	int n = getchar();

	assert(n == EOF && "input was expected to be empty");
	return 0;
}
