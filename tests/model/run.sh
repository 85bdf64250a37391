#!/bin/sh
# tests/model/run.sh [MODEL...]: check the Spin models of the shared-memory protocol, each
# with its mutants, which must fail. `make check-models`.
#
# A model's first comment says what to run:
#   * run: WHAT  OPTIONS          has to hold, in all its states
#   * mutant: NAME  WHAT          the step that is wrong; has to be caught
# A mutant is run as the model's first run is, with -DNAME. Models explore all interleavings
# of steps, not weak memory: an order that matters is a mutant with the two steps swapped.
# EVERY=2 takes each second mutant, all models still.
# Needs spin and a C compiler, less than 2 GB and a minute of one CPU. An absent spin
# is named and skipped here; with KNIT_MUST_RUN=1 it is a failure.
cd "$(dirname "$0")" || exit 2
here=$PWD
cc=${CC:-cc}
if ! command -v spin >/dev/null; then
	echo "check-models: spin is not installed: skipped"
	[ "${KNIT_MUST_RUN-}" != 1 ]
	exit
fi
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
cd "$tmp" || exit 2

# check OPTIMIZE MODEL OPTIONS...: sets errors, states, text; fails if it could not be run.
check() {
	optimize=$1 model=$2
	shift 2
	rm -f pan* ./*.trail
	if ! spin -a "$@" "$here/$model.pml" >out 2>&1 ||
		! $cc "$optimize" -w -DSAFETY -DVECTORSZ=1024 -DMEMLIM=1900 -o pan pan.c >>out 2>&1; then
		cat out
		return 1
	fi
	./pan -m200000 -w24 >out 2>&1
	errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' out)
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
	text=$(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' out)
	if grep -qE 'max search depth too small|out of memory|interrupted' out || [ -z "$errors" ]; then
		cat out
		return 1
	fi
}

bad=0 runs=0 passed=0 nth=0 mutants=0 caught=0
[ $# -gt 0 ] || set -- lane takeback dekker casmask bell stop
for m in "$@"; do
	[ -e "$here/$m.pml" ] || { echo "no model $m"; exit 2; }
	sed -n 's/^ \* run: *//p' "$here/$m.pml" >"$tmp/runs"
	sed -n 's/^ \* mutant: *//p' "$here/$m.pml" >"$tmp/mutants"
	while read -r line; do
		what=${line%%-D*}
		options=$(echo "$line" | grep -oE -- '-D[A-Z_]+(=[0-9]+)?' | tr '\n' ' ')
		first_options=${first_options-$options}
		runs=$((runs + 1))
		# shellcheck disable=SC2086 # options are words
		if check -O1 "$m" $options && [ "$errors" = 0 ]; then
			passed=$((passed + 1))
			echo "ok      $m: ${what% *}: $states states"
		else
			bad=1
			echo "FAILED  $m: $what: ${text-}"
		fi
	done <"$tmp/runs"
	while read -r name what; do
		nth=$((nth + 1))
		[ $((nth % ${EVERY:-1})) = 0 ] || continue
		mutants=$((mutants + 1))
		# (what is wrong is soon found: to compile is what takes the time)
		# shellcheck disable=SC2086
		if check -O0 "$m" $first_options "-D$name" && [ "$errors" != 0 ]; then
			caught=$((caught + 1))
			echo "caught  $m: $name: $text"
		else
			bad=1
			echo "MISSED  $m: $name ($what)"
		fi
	done <"$tmp/mutants"
	unset first_options
done
echo "models $passed passed, mutants caught $caught/$mutants"
[ $bad = 0 ] && [ "$passed" = "$runs" ]
