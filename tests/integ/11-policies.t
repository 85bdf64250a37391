#!/bin/sh
# 11-policies.t: policies that cannot be read or say what cannot be: refused by name.
. "$(dirname "$0")/../lib/tap.sh"
left_before

refused() { # ERE NAME; after a run that tried to make $T/ran
	is $rc 125 "$2: 125"
	one_clear_line "$1" "$2"
	ok "$2: the command did not run" test ! -e "$T/ran"
	rm -rf "$T/ran"
}

if [ -z "$root" ]; then
	echo '{}' >"$T/locked.json"
	chmod 000 "$T/locked.json"
	ks run --policy "$T/locked.json" -- true
	refused 'locked\.json.*Permission denied' "an unreadable policy"
fi
mkdir "$T/dir.json"
mkfifo "$T/fifo.json"
ln -s /dev/zero "$T/zero.json"
for f in dir fifo zero; do
	watch_opts="--limit 20"
	ks run --policy "$T/$f.json" -- true
	refused "$f\\.json" "a policy that is a $f (C142)"
	is "$hung" 0 "a policy that is a $f: does not hang (C142)"
	at_most "$maxrss_kb" 200000 "a policy that is a $f: bounded read (C142)"
done
bad() { # NAME TEXT ERE
	printf "$2" >"$T/bad.json"
	ks run --policy "$T/bad.json" --bind "$T:/t" -- touch /t/ran
	refused "bad\\.json.*$3|$3.*bad\\.json" "policy: $1"
}
bad "trailing comma (C138)" '{"version":1,}' '1'
bad "comment (C138)" '{"version":1 /* one */}' '1'
bad "single quotes (C138)" "{'version':1}" '1'
bad "NaN (C138)" '{"version":NaN}' '1'
bad "1e999 (C138)" '{"version":1e999}' '1'
bad "007 (C138)" '{"version":007}' '1'
bad "text after the end (C138)" '{"version":1} x' '1'
bad "raw control byte (C138)" '{"version":1,"extends":"a\001b"}' '1'
bad "lone surrogate (C138)" '{"version":1,"extends":"\\ud800"}' '1'
bad "empty file" '' ''
bad "an array" '[]' ''
bad "no version" '{"extends":"default"}' 'version'
bad "another version" '{"version":2}' 'version'
bad "duplicate key" '{"version":1,"limits":{},\n"limits":{}}' 'limits'
bad "unknown key (C136)" '{"version":1,\n "limits":{"task":{"memroy":"1G"}}}' 'memroy'
like "$(err)" 'memory' "policy: the nearest known key is named (C136)"
like "$(err)" '/limits/task|line 2|:2:' "policy: with its place (C136)"
bad "unknown key at the top (C136)" '{"version":1,"denyWriet":["x"]}' 'denyWriet'
bad "unknown preset" '{"version":1,"extends":"nosuch"}' 'nosuch'
like "$(err)" 'bad\.json:1:[0-9]+: /extends: ' "policy: what it extends in vain is told with its place"
bad "a cycle" '{"version":1,"extends":"bad.json"}' 'extends|cycle|deep|bad'
bad "wrong type" '{"version":1,"limits":{"task":{"pids":"many"}}}' '/limits/task/pids'
bad "negative" '{"version":1,"limits":{"task":{"pids":-1}}}' '/limits/task/pids'
bad "unknown system call (C049)" '{"version":1,"seccomp":{"rules":[{"names":["io_uring_entre"],"action":"SCMP_ACT_ERRNO"}]}}' 'io_uring_entre'
bad "errno out of range (C052)" '{"version":1,"seccomp":{"rules":[{"names":["ptrace"],"action":"SCMP_ACT_ERRNO","errnoRet":5000}]}}' 'errno|errnoRet|/seccomp/rules/0'
"$PY" -c 'print("[" * 100000)' >"$T/bad.json"
ks run --policy "$T/bad.json" -- true
refused 'bad\.json' "policy: 100,000 brackets (C139)"
"$PY" -c 'print("{\"version\":1," + "\"extends\":{" * 50000)' >"$T/bad.json"
ks run --policy "$T/bad.json" -- true
refused 'bad\.json' "policy: nested objects (C139)"

# C004: a destination that climbs.
bad ".. in a destination (C004)" '{"version":1,"filesystem":{"mounts":[{"bind":"/usr","at":"/box/../../../../knit-test-x","mode":"ro"}]}}' 'filesystem/mounts'
ok "and nothing is made on the host (C004)" test ! -e /knit-test-x

rm -f "$T/fifo.json"
left_after "policies"
done_testing
