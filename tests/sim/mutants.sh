#!/bin/sh
# tests/sim/mutants.sh: plant the bugs of mutants.txt, one at a time, in a copy of the core,
# and see whether the simulator finds them. Run from the top of the tree.
#
#   sh tests/sim/mutants.sh [NAME...]       B= build folder, CC= compiler, SEEDS= seeds, EVERY= each nth
#
# Prints a line for each bug that is not found, and "N caught / N planted". A bug counts
# as caught by a seeded world, or else by a transcript; an expression that changes nothing
# is a failure too, so the list cannot rot.
set -u
B=${B:-build/mutants}
CC=${CC:-cc}
SEEDS=${SEEDS:-300}
EVERY=${EVERY:-1} # 3: each third of the list
top=$(pwd)
list=$top/tests/sim/mutants.txt
[ -f "$list" ] || { echo "mutants.sh: run it from the top of the tree" >&2; exit 2; }
flags="-std=gnu11 -D_GNU_SOURCE -O1 -w"
rm -rf "$B/mutants"
mkdir -p "$B/mutants/obj" "$B/mutants/src/supervisor" "$B/mutants/src/tests" || exit 2
# A snapshot: the tree may change while this runs.
cp -r "$top/supervisor/core" "$B/mutants/src/supervisor/" || exit 2
cp -r "$top/tests/sim" "$B/mutants/src/tests/" || exit 2
cd "$B/mutants" || exit 2
list=src/tests/sim/mutants.txt

for f in src/tests/sim/*.c src/supervisor/core/*.c; do
	# shellcheck disable=SC2086
	$CC $flags -Isrc -c -o "obj/$(basename "$f" .c).o" "$f" || exit 2
done
$CC -o sim obj/*.o || exit 2
./sim --seeds 5 >/dev/null || {
	echo "mutants.sh: the core fails without a planted bug" >&2
	exit 2
}

# run SECONDS ARGS...: the mutant, ended as one that hangs after so many seconds of the
# processor: on a busy machine those of the clock would catch what is only starved.
run() {
	(ulimit -t "$1" && shift && exec timeout 3600 ./mutant "$@")
}

planted=0 listed=0 caught=0 words=0 bad=0
while read -r name file edit; do
	case $name in '' | '#'*) continue ;; esac
	if [ $# -gt 0 ]; then
		case " $* " in *" $name "*) ;; *) continue ;; esac
	fi
	listed=$((listed + 1))
	[ $((listed % EVERY)) = 0 ] || continue
	planted=$((planted + 1))
	if ! sed -E "$edit" "src/supervisor/core/$file" >mutant.c ||
		cmp -s mutant.c "src/supervisor/core/$file"; then
		echo "not planted: $name: the expression changes nothing in $file"
		bad=1
		continue
	fi
	# shellcheck disable=SC2086
	if ! $CC $flags -Isrc -c -o mutant.o mutant.c 2>log; then
		echo "not planted: $name: does not compile"
		cat log
		bad=1
		continue
	fi
	others=$(ls obj/*.o | grep -v "/${file%.c}\.o$")
	# shellcheck disable=SC2086
	$CC -o mutant $others mutant.o || exit 2
	# What needs more luck gets it.
	if ! run 120 --seeds "$SEEDS" >log 2>&1 ||
		{ ./mutant --script src/tests/sim/transcripts/*.txt >/dev/null 2>&1 &&
			! run 240 --seeds $((10 * SEEDS)) >log 2>&1; }; then
		caught=$((caught + 1))
		[ -n "${V:-}" ] && echo "caught: $name: $(grep -a '^seed' log | cut -d: -f2-)"
	elif ! ./mutant --script src/tests/sim/transcripts/*.txt >log 2>&1; then
		caught=$((caught + 1))
		words=$((words + 1))
		[ -n "${V:-}" ] && echo "caught: $name: $(grep -a txt log | head -1)"
	else
		echo "NOT CAUGHT: $name"
		bad=1
	fi
done <"$list"
echo "$caught caught / $planted planted ($words by transcripts only; of $listed listed)"
exit $bad
