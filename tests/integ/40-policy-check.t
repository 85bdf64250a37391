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

# Hostile documents cost one clear line, or one for each mistake, and little time.
for f in tests/fuzz/corpus/policy/*; do
	ln -sf "$t_top/$f" "$T/hostile.json"
	timeout $((10 * ${KNIT_SLOW:-1})) "$KS_REAL" policy check "$T/hostile.json" >"$T/out" 2>"$T/err"
	rc=$?
	case $rc in
	0 | 1) ;;
	*) echo "$f: status $rc" ;;
	esac
	[ $rc = 0 ] || [ "$(wc -l <"$T/out")" -ge 1 ] || echo "$f: says nothing"
	! LC_ALL=C grep -n '[^ -~]' "$T/out" | grep -v '^[0-9]*:.*[^[:cntrl:] -~]' || echo "$f: control characters"
done >"$T/hostile"
is "$(cat "$T/hostile")" "" "hostile documents: refused or taken, and said so"

# Who set what: a preset, a line of a file, a flag.
cat >"$T/a.json" <<'E'
{ "version": 1, "extends": "judge",
  "limits": { "task": { "memory": "256M" } },
  "filesystem": { "mounts": [
    { "dir": "/data" } ] },
  "allow_degraded": ["cgroup.memory"],
  "seccomp": { "groups": {
     "add": ["@aio"] } } }
E
ks policy show "$T/a.json" --set /limits/task/pids=7
shown() { # ERE NAME
	like "$(cat "$T/out")" "$1" "policy show: $2"
}
shown '"memory": "256M", +.*/a\.json:2$' "a value of a file has its line"
shown '"pids": 7, +--set$' "a value of a flag"
shown '"cpu_ms": 10000, +preset judge$' "a value of a preset"
shown '\{"dir": "/data"\} +.*/a\.json:4$' "an element of a list"
shown '"@aio" +.*/a\.json:7$' "a group that was added"
shown '"cgroup\.memory",? +.*/a\.json:5$' "a layer that may be degraded"
hash=$(tail -n 1 "$T/out")
like "$hash" '^sha256:[0-9a-f]{64}$' "policy show: the hash"
ks policy check "$T/a.json" --set /limits/task/pids=7
is "$(cat "$T/out")" "ok $hash" "and it is the policy's"
ks policy show --json "$T/a.json"
cp "$T/out" "$T/merged.json"
is "$(js "$T/out" 'L[0]["limits"]["task"]["memory"]')" 256M "policy show --json is plain JSON"
ks policy diff "$T/a.json" "$T/merged.json"
is "$rc:$(cat "$T/out" "$T/err")" "0:" "the merged document is the same policy: diff 0, nothing said"
ks policy diff "$T/a.json" judge
is $rc 1 "policy diff: 1 where two differ"
is "$(sed 's|/[^ ]*/a.json|a.json|;s/   */  /g' "$T/out")" '/allow_degraded
  - "cgroup.memory"  a.json:5
/filesystem/mounts
  - {"dir": "/data"}  a.json:4
/limits/task/memory
  - "256M"  a.json:2
  + "512M"  preset judge
/require
  + "cgroup.memory"  preset judge
/seccomp/groups/replace
  - "@aio"  a.json:7' "policy diff: each value that differs, of both, with its origin"
ks policy diff judge nosuch
is "$rc:$(cat "$T/out")" 125: "policy diff: a policy that is none"
ks policy diff judge
like "$rc:$(cat "$T/err")" '^125:.*two policies' "policy diff: of two"
ks policy explain judge --call openat 1 2 3 4 5 6 7
one_clear_line 'six arguments' "policy explain: too many arguments"
unlike "$(cat "$T/err")" 'null' "no hint is better than one that says nothing"
ks policy schema
ok "policy schema prints what is installed" cmp "$T/out" policies/schemas/policy.schema.json
is "$("$PY" tests/lib/policy_page.py man/knit-policy.5 "$T/out" 2>&1)" "" "knit-policy(5) and the table say the same"
sed 's/^payload\.area .*/payload.area                       size 4K to 4G/;s/^\.It Cm pool\.spares/.It Cm pool.spare/' man/knit-policy.5 >"$T/page.5"
is "$("$PY" tests/lib/policy_page.py "$T/page.5" "$T/out" 2>&1 | grep -c 'payload\.area\|pool\.spare')" 4 "and where they do not it is seen"
done_testing
