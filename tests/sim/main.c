/* tests/sim/main.c: the simulator's command line.
 *
 *   sim [--seeds N] [--steps N] [--seed S] [--transcript]     seeded worlds, from S on;
 *                                                             --seed alone: that one
 *   sim --script FILE... [--update]                           transcripts
 *
 * Without --seed and --script: the transcripts that stand in tests/sim/transcripts (as
 * seen from the top of the tree), and some hundred seeds of 10,000 steps, or N. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

enum { SEEDS = 200, STEPS = 10000 };

struct options {
	uint64_t seeds, steps, seed;
	bool one, transcript, update;
	char **script;
	int script_n;
};

static struct sim sim;

static bool
run_seed(uint64_t seed, const struct options *o)
{
	sim.transcript = o->transcript;
	if (setjmp(sim.failed_at) == 0) {
		driver_seed(&sim, seed, o->steps);
		return true;
	}
	trace_dump(&sim);
	printf("seed %llu, episode %llu, step %llu: %s\n", (unsigned long long)seed,
	    (unsigned long long)sim.episode, (unsigned long long)sim.steps,
	    sim.message);
	printf("replay: sim --seed %llu --steps %llu\n", (unsigned long long)seed,
	    (unsigned long long)o->steps);
	return false;
}

static int
usage(void)
{
	fprintf(stderr, "usage: sim [--seeds N] [--steps N] [--seed S] [--transcript]\n"
			"       sim --script FILE... [--update]\n");
	return 2;
}

static bool
number(const char *text, uint64_t *out)
{
	char *end;

	*out = text != NULL ? strtoull(text, &end, 0) : 0;
	return text != NULL && *text != 0 && *end == 0;
}

static int
parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		uint64_t *to = strcmp(argv[i], "--seeds") == 0	 ? &o->seeds
			       : strcmp(argv[i], "--steps") == 0 ? &o->steps
			       : strcmp(argv[i], "--seed") == 0	 ? &o->seed
								 : NULL;
		if (to != NULL) {
			if (i + 1 >= argc || !number(argv[++i], to))
				return -1;
			o->one = to == &o->seed || (o->one && to != &o->seeds);
		} else if (strcmp(argv[i], "--transcript") == 0) {
			o->transcript = true;
		} else if (strcmp(argv[i], "--update") == 0) {
			o->update = true;
		} else if (strcmp(argv[i], "--script") == 0) {
			o->script = argv + i + 1;
			while (i + 1 < argc && argv[i + 1][0] != '-') {
				o->script_n++;
				i++;
			}
		} else {
			return -1;
		}
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct options o = { .seeds = SEEDS, .steps = STEPS, .seed = 1 };
	uint64_t passed = 0, failed = 0, steps = 0;
	glob_t found = { 0 };
	bool named;

	if (parse(argc, argv, &o) != 0)
		return usage();
	named = o.script_n > 0;
	if (!named && !o.one &&
	    glob("tests/sim/transcripts/*.txt", 0, NULL, &found) == 0) {
		o.script = found.gl_pathv;
		o.script_n = (int)found.gl_pathc;
	}
	for (int i = 0; i < o.script_n; i++) {
		if (script_run(o.script[i], o.update) == 0)
			passed++;
		else
			failed++;
	}
	uint64_t n = named ? 0 : o.one ? 1 : o.seeds;
	for (uint64_t i = 0; i < n && failed == 0; i++) {
		if (run_seed(o.seed + i, &o))
			passed++;
		else
			failed++;
		steps += sim.steps;
	}
	driver_fini(&sim);
	globfree(&found);
	if (steps > 0)
		printf("%llu steps\n", (unsigned long long)steps);
	printf("%llu passed, %llu failed\n", (unsigned long long)passed,
	    (unsigned long long)failed);
	return failed == 0 ? 0 : 1;
}
