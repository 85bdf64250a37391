/* tests/unit/test_opt.c: the command line: what is taken, and that everything else is
 * one line that names the flag, and a hint.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ipc/err.h"

/* cmd/ is no part of the library: the files themselves. */
#include "cmd/opt.c"
#include "cmd/opt_few.c"
#include "cmd/opt_file.c"
#include "cmd/opt_parse.c"

enum { ARGS_MAX = 32 };

/* Words parted by blanks. */
static int
split(const char *line, char *copy, size_t n, char **argv)
{
	int argc = 0;

	snprintf(copy, n, "run %s", line);
	for (char *w = strtok(copy, " "); w && argc < ARGS_MAX; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	return argc;
}

static void
accept(const char *line, struct kn_run_opts *o, char *copy, size_t n)
{
	static char *argv[ARGS_MAX + 1];
	struct kn_err e;
	int argc = split(line, copy, n, argv);

	if (kn_opt_parse(o, argc, argv, &e) < 0)
		fail_msg("%s: %s", line, e.msg);
}

static void
refuse_hint(const char *line, const char *part, const char *hint)
{
	static char *argv[ARGS_MAX + 1];
	char copy[512];
	struct kn_run_opts o;
	struct kn_err e;
	int argc = split(line, copy, sizeof copy, argv);

	if (kn_opt_parse(&o, argc, argv, &e) == 0)
		fail_msg("%s was accepted", line);
	assert_int_equal(e.kind, KN_EK_USAGE);
	if (!strstr(e.msg, part))
		fail_msg("%s: says \"%s\" without \"%s\"", line, e.msg, part);
	assert_null(strchr(e.msg, '\n'));
	if (!e.hint[0] || !strstr(e.hint, hint))
		fail_msg("%s: hint \"%s\" without \"%s\"", line, e.hint, hint);
	kn_opt_fini(&o);
}

static void
refuse(const char *line, const char *part)
{
	refuse_hint(line, part, "");
}

static void
command_comes_after_two_dashes(void **state)
{
	struct kn_run_opts o;
	char copy[256];

	(void)state;
	accept("--quiet -- ls --timeout -l", &o, copy, sizeof copy);
	assert_true(o.quiet);
	assert_int_equal(o.argc, 3);
	assert_string_equal(o.argv[1], "--timeout");
	assert_int_equal(o.src_n, 0);
	kn_opt_fini(&o);
	refuse("ls", "unexpected argument \"ls\"");
	refuse("- ls", "unexpected argument \"-\"");
	refuse("--", "no command");
	refuse("", "no command");
}

static void
values_with_and_without_equals_sign(void **state)
{
	struct kn_run_opts o;
	char copy[256];

	(void)state;
	accept("--memory=64M --timeout 500ms --set /a/b={\"x\":1} --policy judge -- x",
	    &o, copy, sizeof copy);
	assert_int_equal(o.src_n, 4);
	assert_int_equal(o.src[0].type, KN_OPT_VALUE);
	assert_string_equal(o.src[0].pointer, "/limits/task/memory");
	assert_string_equal(o.src[0].text, "64M");
	assert_string_equal(o.src[0].label, "--memory");
	assert_string_equal(o.src[1].pointer, "/timeouts/hard_ms");
	assert_string_equal(o.src[1].text, "500ms");
	assert_int_equal(o.src[2].type, KN_OPT_SET);
	assert_string_equal(o.src[2].text, "/a/b={\"x\":1}");
	assert_int_equal(o.src[3].type, KN_OPT_NAMED);
	kn_opt_fini(&o);
	refuse("--memory", "--memory: needs a value");
	refuse("--memory -- x", "--memory: needs a value");
	refuse("--memory= -- x", "--memory: the value is empty");
	refuse("--quiet=yes -- x", "--quiet: takes no value");
}

static void
names_are_exact(void **state)
{
	(void)state;
	refuse("--nosuchflag -- x", "unknown option --nosuchflag");
	refuse("--mem 5 -- x", "unknown option --mem");
	refuse("--memory-limit=5 -- x", "unknown option --memory-limit");
	refuse("-q -- x", "unknown option -q");
	refuse("--raw-stdio -- x", "this version does not have --raw-stdio");
}

static void
an_unknown_option_is_told_which_was_meant(void **state)
{
	static const char *const few[] = { "json", "only", NULL };
	struct kn_err e = { 0 };

	(void)state;
	refuse_hint("--memroy 5M -- x", "run: unknown option --memroy", "--memory?");
	refuse_hint("--mem=5M -- x", "unknown option --mem", "--memory?");
	refuse_hint("-t 5s -- x", "unknown option -t", "--timeout?");
	refuse_hint("--nosuchflag -- x", "unknown option", "run --help");
	refuse_hint("--policy - -- x", "not read from standard input", "to a file");
	refuse_hint("--cpus 2 -- x", "unknown option --cpus", "/limits/task/cpus");
	refuse_hint("--volume=/a:/b -- x", "unknown option --volume", "--bind SRC");
	assert_int_equal(kn_opt_unknown(&e, "v", "--onyl=3", few), -1);
	assert_string_equal(e.msg, "v: unknown option --onyl");
	assert_string_equal(e.hint, "did you mean --only?");
	e = (struct kn_err){ 0 };
	assert_int_equal(kn_opt_unknown(&e, "v", "word", few), -1);
	assert_string_equal(e.msg, "v: unexpected argument \"word\"");
	assert_string_equal(e.hint, "knit-sandbox v --help has the options");
}

static void
a_number_that_means_two_things_is_refused(void **state)
{
	struct kn_run_opts o;
	char copy[64];

	(void)state;
	refuse_hint("--timeout 2 -- x", "--timeout: \"2\" has no unit", "2s");
	refuse_hint("--cpu-time=10 -- x", "--cpu-time: \"10\" has no unit", "2s");
	refuse_hint("--memory 256 -- x", "--memory: \"256\"", "write 256M or 256G");
	accept("--timeout 0 --cpu-time 2s --memory 0 -- x", &o, copy, sizeof copy);
	kn_opt_fini(&o);
	accept("--memory 268435456 -- x", &o, copy, sizeof copy);
	kn_opt_fini(&o);
}

/* What kn_opt_open() says of a path below the folder. */
static void
missing(const char *folder, const char *name, const char *msg, const char *hint)
{
	struct kn_err e = { 0 };
	char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_int_equal(kn_opt_open("--tasks", path, &e), -1);
	if (!strstr(e.msg, msg) || !strstr(e.hint, hint))
		fail_msg("%s: \"%s\", hint \"%s\"", name, e.msg, e.hint);
}

static void
a_missing_file_is_told_what_is_there(void **state)
{
	char folder[] = "/tmp/knit-opt.XXXXXX", path[64];
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/tasks.jsonl", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	missing(folder, "taks.jsonl", "--tasks: open /tmp/knit-opt.", "/tasks.jsonl?");
	missing(folder, "other", "No such file", "has such a name");
	missing(folder, "no/tasks.jsonl", "No such file", "there is no directory /tmp");
	missing(folder, "tasks.jsonl/x", "Not a directory", "is no directory");
	missing(folder, "", "is a directory", "name a file in it");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void
a_module_is_called_or_fed(void **state)
{
	struct kn_run_opts o;
	char copy[256];

	(void)state;
	accept("--module x.so --call f --input @in --init go", &o, copy, sizeof copy);
	assert_string_equal(o.call, "f");
	assert_string_equal(o.input, "@in");
	assert_string_equal(o.src[0].pointer, "/pool/kind");
	assert_string_equal(o.src[0].text, "module");
	assert_string_equal(o.src[1].pointer, "/pool/module");
	assert_string_equal(o.src[1].text, "x.so");
	assert_string_equal(o.src[2].pointer, "/pool/init");
	kn_opt_fini(&o);
	accept("--module x.so --tasks -", &o, copy, sizeof copy);
	kn_opt_fini(&o);
	refuse("--module x.so", "--module: neither --call nor --tasks");
	refuse("--module x.so --call f -- x", "--call: a call and a command exclude");
	refuse("--module x.so -- x", "--module: a module and a command exclude");
	refuse("--module x.so --call f --tasks -", "--call: not with --tasks");
	refuse("--module x.so --input 5 --tasks -", "--input: not with --tasks");
	refuse("--input 5 -- x", "--input: needs --call");
	refuse("--module x.so --call f --stdin y", "--stdin: only for commands");
	refuse("--module x.so --tasks - --keep d", "--keep: only for commands");
}

static void
binds_part_at_the_last_colon(void **state)
{
	struct kn_run_opts o;
	char copy[256];

	(void)state;
	accept("--bind /a --ro-bind b:/c --bind x:y:/z -- x", &o, copy, sizeof copy);
	assert_string_equal(o.src[0].text, "/a");
	assert_null(o.src[0].at);
	assert_true(o.src[0].writable);
	assert_string_equal(o.src[1].text, "b");
	assert_string_equal(o.src[1].at, "/c");
	assert_false(o.src[1].writable);
	assert_string_equal(o.src[1].label, "--ro-bind");
	assert_string_equal(o.src[2].text, "x:y");
	assert_string_equal(o.src[2].at, "/z");
	kn_opt_fini(&o);
	refuse("--bind a:b -- x", "--bind: \"a:b\": DST must be an absolute path");
	refuse("--ro-bind :/x -- x", "--ro-bind: \":/x\": SRC is empty");
}

static void
env_names_become_pointers(void **state)
{
	struct kn_run_opts o;
	char copy[256];

	(void)state;
	accept("--env A=b=c --env a/b~c= -- x", &o, copy, sizeof copy);
	assert_string_equal(o.src[0].pointer, "/environment/set/A");
	assert_string_equal(o.src[0].text, "b=c");
	assert_string_equal(o.src[1].pointer, "/environment/set/a~1b~0c");
	assert_string_equal(o.src[1].text, "");
	kn_opt_fini(&o);
	refuse("--env A -- x", "--env");
	refuse("--env =b -- x", "--env");
}

static void
what_this_version_has_is_named(void **state)
{
	(void)state;
	refuse("--launcher bwrap:runc -- x",
	    "--launcher: \"bwrap:runc\" is not supported");
	refuse("--launcher oci: -- x", "--launcher: \"oci:\" is not supported");
	refuse("--network allow -- x", "--network: \"allow\" is not supported");
	refuse("--allow example.com -- x", "--allow: \"example.com\" is not HOST:PORT");
	refuse("--set memory=5 -- x", "--set");
	refuse("--set /limits/task/memory -- x", "--set");
}

static void
paths_inside_are_absolute_and_plain(void **state)
{
	struct kn_run_opts o;
	char copy[256];

	(void)state;
	accept("--workdir /data -- x", &o, copy, sizeof copy);
	assert_string_equal(o.workdir, "/data");
	kn_opt_fini(&o);
	refuse("--workdir data -- x", "--workdir: \"data\" is not absolute");
	refuse("--workdir /proc/self/fd/7 -- x", "--workdir");
	refuse("--workdir /a/../b -- x", "--workdir");
	refuse("--workdir /a/.. -- x", "--workdir");
	refuse("--collect ../x --out-dir d -- x", "--collect");
	refuse("--collect /x --out-dir d -- x", "--collect");
}

static void
what_excludes_each_other_is_said(void **state)
{
	struct kn_run_opts o;
	char copy[256];

	(void)state;
	accept("--tasks f --ordered --fail-fast --keep d --report r", &o, copy,
	    sizeof copy);
	assert_string_equal(o.tasks, "f");
	assert_null(o.argv);
	kn_opt_fini(&o);
	accept("--collect a --collect b --out-dir d -- x", &o, copy, sizeof copy);
	assert_int_equal(o.collect_n, 2);
	kn_opt_fini(&o);
	accept("--dry-run", &o, copy, sizeof copy);
	kn_opt_fini(&o);
	refuse("--tasks f -- x", "--tasks");
	refuse("--tasks f --stdin g", "--stdin: not with --tasks");
	refuse("--tasks f --collect a --out-dir b", "--collect: not with --tasks");
	refuse("--tasks f --report -", "--report");
	refuse("--trace - -- x", "--trace: not on stdout");
	refuse("--tasks f --stdin -", "--stdin: not with --tasks");
	accept("--stdin - -- x", &o, copy, sizeof copy);
	assert_null(o.stdin_path); /* the caller's */
	kn_opt_fini(&o);
	refuse("--ordered -- x", "--ordered: only with --tasks");
	refuse("--fail-fast -- x", "--fail-fast: only with --tasks");
	refuse("--keep d -- x", "--keep: only with --tasks");
	refuse("--collect a -- x", "--collect: needs --out-dir as well");
	refuse("--out-dir a -- x", "--out-dir: needs --collect as well");
}

static void
help_has_every_option_and_fits_a_screen(void **state)
{
	struct kn_run_opts o;
	char copy[64], name[64], *text = kn_opt_help();
	size_t i, lines = 0, width = 0;

	(void)state;
	assert_non_null(text);
	for (i = 0; kn_opt_name(i); i++) {
		snprintf(name, sizeof name, "\n  --%s ", kn_opt_name(i));
		if (!strstr(text, name))
			fail_msg("--%s is not in --help", kn_opt_name(i));
	}
	assert_int_equal(i, KN_OPT_N);
	for (const char *s = text; *s; s++) {
		width = *s == '\n' ? 0 : width + 1;
		lines += *s == '\n';
		if (width > 80)
			fail_msg("--help is wider than 80 columns: %.90s", s - 80);
	}
	assert_in_range(lines, 20, 45);
	for (i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
		snprintf(name, sizeof name, "--%s ", elsewhere[i].name);
		assert_null(strstr(text, name));
	}
	free(text);
	accept("--policy x --help", &o, copy, sizeof copy);
	assert_true(o.help);
	kn_opt_fini(&o);
}

static void
policy_verb_takes_names_and_sets(void **state)
{
	static char show[] = "show", judge[] = "judge", set_[] = "--set=/a=1",
		    bad[] = "--memory";
	char *argv[] = { show, judge, set_, NULL };
	char *wrong[] = { show, bad, NULL };
	struct kn_run_opts o;
	struct kn_err e;

	(void)state;
	assert_int_equal(kn_opt_parse_policy(&o, 3, argv, &e), 0);
	assert_int_equal(o.src_n, 2);
	assert_string_equal(o.src[0].text, "judge");
	assert_string_equal(o.src[1].text, "/a=1");
	kn_opt_fini(&o);
	assert_int_equal(kn_opt_parse_policy(&o, 2, wrong, &e), -1);
	kn_opt_fini(&o);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(command_comes_after_two_dashes),
		cmocka_unit_test(values_with_and_without_equals_sign),
		cmocka_unit_test(names_are_exact),
		cmocka_unit_test(an_unknown_option_is_told_which_was_meant),
		cmocka_unit_test(a_number_that_means_two_things_is_refused),
		cmocka_unit_test(a_missing_file_is_told_what_is_there),
		cmocka_unit_test(a_module_is_called_or_fed),
		cmocka_unit_test(binds_part_at_the_last_colon),
		cmocka_unit_test(env_names_become_pointers),
		cmocka_unit_test(what_this_version_has_is_named),
		cmocka_unit_test(paths_inside_are_absolute_and_plain),
		cmocka_unit_test(what_excludes_each_other_is_said),
		cmocka_unit_test(help_has_every_option_and_fits_a_screen),
		cmocka_unit_test(policy_verb_takes_names_and_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
