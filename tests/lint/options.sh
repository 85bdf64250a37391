#!/bin/sh
# tests/lint/options.sh: the options of `run` in the table, and in the manual page, are
# the same. (--help is printed from the table; tests/unit/test_opt.c looks at that.)
set -u
table=$(sed -n '/^const struct kn_opt kn_opts/,/^};/p' cmd/opt.c |
	sed -n 's/^	{ "\([a-z-]*\)",.*/\1/p' | sort)
page=$(sed -n '/^\.Ss Options of run/,/^\.El/p' man/knit-sandbox.1 |
	sed -n 's/^\.It Fl -\([a-z-]*\).*/\1/p' | sort)
count=$(printf '%s\n' "$table" | wc -l)
want=$(sed -n 's/.*KN_OPT_N = \([0-9]*\).*/\1/p' cmd/opt_table.h)
if [ "$count" != "$want" ]; then
	echo "options: found $count in cmd/opt.c, KN_OPT_N is $want"
	exit 1
fi
[ "$table" = "$page" ] && exit 0
echo "options: cmd/opt.c and man/knit-sandbox.1 differ:"
t=$(mktemp) && p=$(mktemp) || exit 1
printf '%s\n' "$table" >"$t"
printf '%s\n' "$page" >"$p"
diff "$t" "$p" | sed -n 's/^</ only in the table: /p; s/^>/ only in the page: /p'
rm -f "$t" "$p"
exit 1
