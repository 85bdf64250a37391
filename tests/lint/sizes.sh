#!/bin/sh
# tests/lint/sizes.sh [ROOT]: files of at most 500 lines, functions of at most 70.
#
# tests/lint/size.allow may name four exceptions, one a line: "path" or "path:function",
# then why. One that is no longer needed is an error too. Functions of tests are free
# (their length is their list of cases), and tests/hostile is entirely.
# tests/lint/selftest.sh proves that each rule can fail.
here=$(cd "$(dirname "$0")" && pwd)
root=${1:-$here/../..}
cd "$root" || exit 2
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT

for dir in ipc sandbox supervisor lib cmd include tests examples; do
	[ -d "$dir" ] && find "$dir" -name '*.[ch]'
done | grep -v '^tests/hostile/' | sort >"$tmp/files"

while read -r f; do
	lines=$(wc -l <"$f")
	[ "$lines" -le 500 ] || echo "$f $f:1: $lines lines (at most 500)"
	case $f in tests/* | examples/*) continue ;; esac
	# A function: from the line of its name to the brace that ends it, both in the
	# first column, as clang-format puts them.
	awk -v f="$f" '
		/^[A-Za-z_].*\(/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name); start = NR }
		/^\{/ { open = start }
		/^\}/ && open {
			n = NR - open + 1
			if (n > 70)
				print f ":" name " " f ":" open ": " name " has " n " lines (at most 70)"
			open = 0
		}' "$f"
done <"$tmp/files" >"$tmp/found"

touch "$tmp/allow"
[ -e tests/lint/size.allow ] && grep -vE '^(#|$)' tests/lint/size.allow >"$tmp/allow"
status=0
n=$(wc -l <"$tmp/allow")
if [ "$n" -gt 4 ]; then
	echo "tests/lint/size.allow:1: $n entries (at most 4)"
	status=1
fi
while read -r what why; do
	if [ -z "$why" ]; then
		echo "tests/lint/size.allow: $what: without a reason"
		status=1
	fi
	if ! grep -qF "$what " "$tmp/found"; then
		echo "tests/lint/size.allow: $what: not needed any more"
		status=1
	fi
done <"$tmp/allow"
while read -r what text; do
	awk -v w="$what" '$1 == w { found = 1 } END { exit !found }' "$tmp/allow" && continue
	echo "$text"
	status=1
done <"$tmp/found"
exit $status
