/* upper.c: text in, text out, written in place.
 *
 *   knit-sandbox run --module ./upper.so --call upper --input 'straight'
 */
#include <knit/task.h>

/* ASCII letters become capitals; all other characters stay as they are. */
KNIT_TASK(upper)
{
	size_t n;
	const char *text = knit_arg_text(call, &n);
	char *out;

	if (!text)
		return -1; /* the caller is told what was wrong with the argument */
	out = knit_result_reserve(call, KNIT_TEXT, n);
	if (!out)
		return -1;
	for (size_t i = 0; i < n; i++)
		out[i] = text[i] >= 'a' && text[i] <= 'z' ? text[i] - 'a' + 'A' : text[i];
	return knit_result_commit(call, n);
}
