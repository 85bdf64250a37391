#!/bin/sh
# tests/lint/arena.sh [ROOT]: every offset, size and number in man/knit-arena.7 is what the
# headers of ipc say, and every shared word has a row there.
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$here/../..}" || exit 2
page=man/knit-arena.7
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
bad=0

# Rows: `.It Li STRUCT.FIELD Ta OFFSET Ta BYTES Ta ...`, `.It Dv NAME Ta VALUE Ta ...`. A
# `head` is the arena's in the section Header, the slot's elsewhere.
awk '
/^\.Ss /          { section = $2 }
/^\.It Li [a-z_]*\.[a-z_]* Ta [0-9]* Ta [0-9]* Ta / {
	split($3, f, "."); s = f[1]
	if (s == "head") s = section == "Header" ? "kn_arena_head" : "kn_slot_head"
	else if (s == "bank") s = "kn_bank_head"
	else if (s == "owners") s = "kn_bank_owners"
	else s = "kn_" s
	print "field", s, f[2], $5, $7
}
/^\.It Dv KN_[A-Z0-9_]* Ta [0-9]* Ta / { print "number", $3, $5 }
' "$page" | sort >"$tmp/told"
{
	printf '#include <stddef.h>\n#include <stdio.h>\n#include "ipc/call.h"\n#include "ipc/region.h"\n'
	printf '#define SIZE(s, f) sizeof ((struct s *)0)->f\nint main(void) {\n'
	while read -r what a b _; do
		if [ "$what" = field ]; then
			printf 'printf("field %s %s %%zu %%zu\\n", offsetof(struct %s, %s), SIZE(%s, %s));\n' \
				"$a" "$b" "$a" "$b" "$a" "$b"
		else
			printf 'printf("number %s %%lld\\n", (long long)%s);\n' "$a" "$a"
		fi
	done <"$tmp/told"
	printf 'return 0; }\n'
} >"$tmp/a.c"
${CC:-cc} -std=gnu11 -I. -o "$tmp/a" "$tmp/a.c" && "$tmp/a" | sort >"$tmp/is" || exit 1
if ! cmp -s "$tmp/told" "$tmp/is"; then
	echo "$page differs from the headers (<: the page, >: the headers):"
	diff "$tmp/told" "$tmp/is" | grep '^[<>]'
	bad=1
fi

# fields FILE STRUCT: names of its fields.
fields() {
	sed -n "/^struct $2 {/,/^};/p" "$1" | sed 's|/\*.*\*/||; /\/\*/,/\*\//d' |
		grep -oE 'KN_WORD32\([a-z_]+\)|[a-z_]+(\[[A-Z_0-9]+\])?(, [a-z_]+)?;' |
		sed 's/KN_WORD32(//; s/[);]//g; s/\[.*\]//; s/, /\n/g'
}
for s in layout.h:kn_arena_head layout.h:kn_control layout.h:kn_slot_head layout.h:kn_slot \
	region.h:kn_bank_head region.h:kn_bank_owners region.h:kn_own; do
	names=$(fields "ipc/${s%:*}" "${s#*:}")
	[ -n "$names" ] || { echo "arena: no fields found in ${s#*:}"; bad=1; }
	for f in $names; do
		grep -q "^field ${s#*:} $f " "$tmp/told" || {
			echo "$page has no row for $f of struct ${s#*:} (ipc/${s%:*})"
			bad=1
		}
	done
done
v=$(sed -n 's/^number KN_LAYOUT_VERSION //p' "$tmp/is")
grep -q "^It is layout version $v\." "$page" || { echo "$page: layout version is $v"; bad=1; }
# The drawings.
for n in 4096 24576 45056 28672; do
	grep -q "^ *$n  " "$page" || { echo "$page: the drawing lacks $n"; bad=1; }
done
printf '#include <stdio.h>\n#include "ipc/layout.h"\nint main(void) { struct kn_layout l; return kn_layout_of(2, 1, 1, &l) || l.submit_slots_off != 4096 || l.return_slots_off != 24576 || l.submit_area_off != 45056 || KN_BANK_OWNERS_OFF != 4096 || KN_BANK_SLOTS_OFF != 8192 || KN_BANK_OWN_OFF != 28672; }\n' >"$tmp/b.c"
${CC:-cc} -std=gnu11 -I. -o "$tmp/b" "$tmp/b.c" ipc/layout.c && "$tmp/b" || {
	echo "$page: the drawings of slice or bank are not what ipc/layout.c makes"
	bad=1
}
exit $bad
