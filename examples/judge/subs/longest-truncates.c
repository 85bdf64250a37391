#include <stdio.h>
#include <string.h>

int
main(void)
{
	char word[9], best[9] = ""; /* cuts long words into pieces */

	while (scanf("%8s", word) == 1)
		if (strlen(word) > strlen(best))
			memcpy(best, word, sizeof best);
	puts(best);
	return 0;
}
