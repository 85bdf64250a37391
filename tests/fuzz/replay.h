/* tests/fuzz/replay.h: without a fuzzer: main() gives each file of the corpus to the
 * target above this line. Included once, at the end of a target.
 */
#ifndef KN_TESTS_FUZZ_REPLAY_H
#define KN_TESTS_FUZZ_REPLAY_H

#include <stdint.h>
#include <stdio.h>

#ifndef KN_LIBFUZZER
int
main(int argc, char **argv)
{
	static uint8_t buf[1 << 20];

	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "re");
		size_t n;

		if (!f) {
			perror(argv[i]);
			return 1;
		}
		n = fread(buf, 1, sizeof buf, f);
		fclose(f);
		LLVMFuzzerTestOneInput(buf, n);
	}
	printf("ok %d inputs\n", argc - 1);
	return 0;
}
#endif

#endif
