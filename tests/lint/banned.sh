#!/bin/sh
# tests/lint/banned.sh [ROOT]: calls that have a safer form, and promises.
#
# Promises are words that say the work is not done. They are looked for in all that we
# ship, this file and its test excepted, which have to name them; in C code proper, as
# against comments and strings, such a word is just a name. The calls are looked for
# there. tests/hostile, tests/probes and examples imitate other people's programs and may
# call what they like.
# tests/lint/selftest.sh proves that each rule can fail.
here=$(cd "$(dirname "$0")" && pwd)
root=${1:-$here/../..}
cd "$root" || exit 2
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
bad=$tmp/bad
: >"$bad"
calls='strcpy|strcat|sprintf|vsprintf|gets|system|usleep|alloca|popen|signal|mktemp|tmpnam'

for dir in ipc sandbox supervisor lib cmd include tests; do
	[ -d "$dir" ] && find "$dir" -name '*.[ch]'
done | grep -vE '^tests/(hostile|probes)/' | sort | while read -r f; do
	awk -v strings=1 -f "$here/strip.awk" "$f" >"$tmp/code"
	grep -nE "(^|[^A-Za-z0-9_.>])($calls)[[:space:]]*\(" "$tmp/code" |
		sed -E "s/^([0-9]+):(.*[^A-Za-z0-9_.>])?($calls)[[:space:]]*\(.*/\1 \3/" |
		while read -r line call; do
			echo "$f:$line: $call() is banned"
		done
done >>"$bad"

words='TODO|FIXME|XXX|TBD|[Nn]ot (yet )?implemented|[Nn]ot implemented yet|[Cc]oming soon|[Pp]laceholder|[Tt]o be completed'
find . -name .git -prune -o -path ./build -prune -o -type f -print |
	grep -E '\.(c|h|sh|t|md|json|jsonl|py|js|mk|[1-8]|awk|pml)$|/Makefile$|/\.ci/' |
	grep -vE '^\./tests/lint/(banned|selftest)\.sh$' | sort | while read -r f; do
	grep -qwE "$words" "$f" || continue
	case $f in *.[ch]) awk -v strings=1 -f "$here/strip.awk" "$f" ;; esac >"$tmp/code"
	grep -nwE "$words" "$f" | while IFS=: read -r line text; do
		sed -n "${line}p" "$tmp/code" | grep -qwE "$words" ||
			echo "${f#./}:$line: a promise: $text"
	done
done >>"$bad"

cat "$bad"
[ ! -s "$bad" ]
