#!/bin/sh
# tests/lint/atomics.sh [ROOT]: every access to a shared word is named, ordered and has a
# partner.
#
#   - <stdatomic.h>, __atomic_* and __sync_* stand in ipc/shm.h only, each with an order
#     there, and each kn_shm_* of it has its order in its name
#   - no standalone fences anywhere
#   - each kn_shm_* call outside carries a label in a comment, as in  /* P1 */
#   - a label is declared on a card "P1 function ... <-> C1 ..." in a header, once as a
#     pair, and both sides of the pair stand at a call; functions named on cards exist
#   - a card says what happens if the writer dies
#
# tests/lint/selftest.sh proves that each rule can fail.
here=$(cd "$(dirname "$0")" && pwd)
root=${1:-$here/../..}
cd "$root" || exit 2
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
bad=$tmp/bad
: >"$bad"

for dir in ipc sandbox supervisor cmd include; do
	[ -d "$dir" ] && find "$dir" -name '*.[ch]'
done | sort >"$tmp/files"

while read -r f; do
	awk -v strings=1 -f "$here/strip.awk" "$f" >"$tmp/code"
	grep -nE '\b(atomic_thread_fence|atomic_signal_fence|__atomic_thread_fence|__atomic_signal_fence|__sync_synchronize)\b' \
		"$tmp/code" | sed -E "s|^([0-9]+):.*|$f:\1: a standalone fence|" >>"$bad"
	[ "$f" = ipc/shm.h ] && continue
	# What bench holds ours against has words of its own, in no arena.
	[ "$f" = cmd/bench_call_floor.c ] && continue
	grep -nE 'stdatomic\.h|\b__atomic_[a-z]|\b__sync_[a-z]|\b_Atomic\b|\batomic_(load|store|exchange|fetch|compare|init)' \
		"$tmp/code" | sed -E "s|^([0-9]+):.*|$f:\1: atomics belong in ipc/shm.h|" >>"$bad"
	# A call, from its line to the end of its statement, trailing comment included.
	awk -v f="$f" '
		{ line[NR] = $0 }
		END {
			for (i = 1; i <= NR; i++) {
				if (line[i] !~ /kn_shm_[a-z0-9_]+\(/)
					continue
				text = line[i]
				for (k = i; line[k] !~ /[;{]/ && k < NR; )
					text = text line[++k]
				if (line[i - 1] ~ /^[ \t]*\/\*.*\*\/$/)
					text = line[i - 1] text
				if (!match(text, /\/\* ([A-Z][0-9]+)[^A-Za-z0-9]/)) {
					print f ":" i ": kn_shm_ call without a label" >BAD
					continue
				}
				while (match(text, /\/\* [A-Z][0-9]+[^A-Za-z0-9]/)) {
					l = substr(text, RSTART + 3, RLENGTH - 4)
					print l, f ":" i
					text = substr(text, RSTART + RLENGTH)
				}
			}
		}' BAD="$tmp/bad-calls" "$f" >>"$tmp/used"
	[ -e "$tmp/bad-calls" ] && cat "$tmp/bad-calls" >>"$bad" && rm "$tmp/bad-calls"
done <"$tmp/files"
touch "$tmp/used"

# ipc/shm.h itself: a statement with a builtin names its order; a function's name too.
if [ -e ipc/shm.h ]; then
	awk -v strings=1 -f "$here/strip.awk" ipc/shm.h >"$tmp/code"
	awk '
		/__atomic_(load|store|exchange|fetch|compare|test|clear|add|sub|xor|or|and)/ {
			text = $0; at = NR
			while (text !~ /;/ && (getline more) > 0)
				text = text more
			if (text !~ /__ATOMIC_(RELAXED|ACQUIRE|RELEASE|ACQ_REL|SEQ_CST)/)
				print "ipc/shm.h:" at ": no order"
		}
		/__sync_/ { print "ipc/shm.h:" NR ": no order" }
		/^kn_shm_/ {
			name = $0; sub(/\(.*/, "", name)
			if (name !~ /_(relaxed|acquire|release|acqrel|seqcst)$/)
				print "ipc/shm.h:" NR ": " name " does not name its order"
		}' "$tmp/code" >>"$bad"
fi

# Cards: each comment of a header that has a "<->".
while read -r f; do
	case $f in *.h) ;; *) continue ;; esac
	awk -v f="$f" '
		function card(text, at,    t, a, b, fn) {
			gsub(/[ \t*\/]+/, " ", text)
			if (text !~ /<->/)
				return
			if (text !~ / dies| As [a-z_]+:/)
				print "BAD " f ":" at ": a card without what happens if the writer dies"
			t = text
			while (match(t, /[A-Z][0-9]+ [^<>]*<-> [A-Z][0-9]+/)) {
				pair = substr(t, RSTART, RLENGTH)
				# the last label before the arrow
				left = pair; sub(/<->.*/, "", left)
				a = left
				while (match(a, /[A-Z][0-9]+ .*[^A-Za-z0-9][A-Z][0-9]+ /))
					a = substr(a, RSTART + 1)
				match(a, /[A-Z][0-9]+/); a = substr(a, RSTART, RLENGTH)
				b = pair; sub(/.*<-> /, "", b)
				print "PAIR " a " " b " " f ":" at
				t = substr(t, index(t, "<->") + 4)
			}
			t = text
			while (match(t, /[A-Z][0-9]+ [a-z]+_[a-z_0-9]+/)) {
				split(substr(t, RSTART, RLENGTH), w, " ")
				if (w[2] !~ /^(acq_rel|seq_cst)$/)
					print "NAME " w[2] " " f ":" at
				t = substr(t, RSTART + RLENGTH)
			}
		}
		/\/\*/ { start = NR; text = "" }
		start { text = text " " $0 }
		start && /\*\// { card(text, start); start = 0 }' "$f"
done <"$tmp/files" >"$tmp/cards"

sed -n 's/^BAD //p' "$tmp/cards" >>"$bad"
awk '$1 == "PAIR" { print $2, $4; print $3, $4 }' "$tmp/cards" | sort -u >"$tmp/declared"
while read -r label at; do
	grep -q "^$label " "$tmp/declared" || echo "$at: label $label is on no card"
done <"$tmp/used" >>"$bad"
while read -r label at; do
	grep -q "^$label " "$tmp/used" || echo "$at: label $label stands at no call: its partner is alone"
done <"$tmp/declared" >>"$bad"
awk '{ where[$1] = where[$1] " " $2; n[$1]++ }
	END { for (l in n) if (n[l] > 1 && l !~ /^A/) print l where[l] }' "$tmp/declared" |
	while read -r label first rest; do
		echo "$first: label $label is on another card too: $rest"
	done >>"$bad"
awk '$1 == "NAME" { print $2, $3 }' "$tmp/cards" | sort -u | while read -r name at; do
	# shellcheck disable=SC2046
	grep -qE "^$name\(" $(cat "$tmp/files") || echo "$at: no function $name, which the card names"
done >>"$bad"

cat "$bad"
[ ! -s "$bad" ]
