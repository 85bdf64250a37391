#include <stdio.h>
#include <string.h>

int
main(void)
{
	static char word[100001], best[100001];

	while (scanf("%100000s", word) == 1)
		if (strlen(word) > strlen(best))
			memcpy(best, word, sizeof best);
	puts(best);
	return 0;
}
