#!/bin/sh
# 40-policy-check.t: of each document in tests/policies/broken, `policy check` says all
# that is wrong with it, each mistake in one exact line; and the other verbs of policy.
. "$(dirname "$0")/../lib/tap.sh"

cd "$t_top/tests/policies/broken" || exit 1
n=0
for f in *.json; do
	n=$((n + 1))
	ks policy check "$f"
	is "$rc:$(cat "$T/out")" "1:$(cat "${f%.json}.txt")" "policy check: ${f%.json}"
done
at_least $n 20 "there are twenty broken documents"
ks policy check 01-misspelt-key.json --set /timeouts/hard_ms=soon 07-no-version.json
is "$(wc -l <"$T/out")" 4 "mistakes in several documents and flags are told together"
ks policy check --set /nosuch=1 nosuch
like "$(cat "$T/out")" '^unknown policy "nosuch"' "a name that is none is a mistake among others"

cd "$t_top" || exit 1
for p in $("$KS_REAL" policy list); do
	ks policy check "$p"
	like "$rc:$(cat "$T/out")" '^0:ok sha256:[0-9a-f]{64}$' "policy check: preset $p"
done
done_testing
