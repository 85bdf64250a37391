#!/bin/sh
# tests/lab/10-units.t: the unit tests, libknit's, and a few seeds of the simulation, on this kernel.
. "$(dirname "$0")/../lib/tap.sh"
# What is for root alone skips, for a user.
[ -n "$root" ] || unset KNIT_MUST_RUN
for t in "$B"/tests/unit/* "$B"/tests/lib_api/*; do
	"$t" >"$T/out" 2>"$T/err"
	rc=$?
	[ $rc = 0 ] || diag "$(grep -E 'FAILED|ERROR|failed' "$T/out" "$T/err" | head -n 20)" >&2
	is $rc 0 "${t##*/}"
done
"$B/tests/sim/sim" --seeds 20 --steps 1000 >"$T/out" 2>&1
is $? 0 "simulation: 20 seeds of 1000 steps"
diag "$(tail -n 1 "$T/out")"
done_testing
