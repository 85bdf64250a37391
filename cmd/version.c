/* cmd/version.c: knit-sandbox version. */
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"
#include "ipc/err.h"
#include "version.h"

int
kn_cmd_version(int argc, char **argv, unsigned closed)
{
	static const char text[] = "knit-sandbox " KN_VERSION "\n";
	struct kn_err e = { 0 };

	(void)closed;

	if (argc > 1 && strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0) {
		kn_err_set(&e, KN_EK_USAGE, "version: unexpected argument %s", argv[1]);
		kn_err_hint(&e, "knit-sandbox version takes none");
		return kn_say_error(NULL, &e);
	}
	return kn_say_out(NULL, text, strlen(text)) < 0 ? KN_EXIT_OURS : KN_EXIT_OK;
}
