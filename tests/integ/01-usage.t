#!/bin/sh
# 01-usage.t: usage errors: 125 and one clear line; help and version.
. "$(dirname "$0")/../lib/tap.sh"
left_before

usage() { # ERE ARGS...
	ere=$1
	shift
	ks "$@"
	is $rc 125 "usage: $*: 125"
	one_clear_line "$ere" "usage: $*"
	is "$(out)" "" "usage: $*: nothing on stdout"
}
usage 'nosuchflag' run --nosuchflag -- true
usage 'nosuchverb' nosuchverb
usage '[Cc]ommand' run
usage '[Cc]ommand' run --
usage '--timeout' run --timeout
usage '--timeout' run --timeout 5parsecs -- true
usage '--timeout' run --timeout -1s -- true
usage '--timeout' run --timeout 99999999999999999999s -- true
usage '--memory' run --memory lots -- true
usage '--memory' run --memory 1000 -- true
usage '--pids' run --pids many -- true
usage '--workers' run --workers -1 -- true
usage '--workers' run --workers many -- true
usage '--workers' run --workers 100000 -- true
usage '--env' run --env =x -- true
usage '--network' run --network maybe -- true
usage 'nosuch/source' run --bind /nosuch/source -- true
usage 'nosuch/source' run --ro-bind /nosuch/source:/x -- true
usage '--ro-bind|absolute|relative' run --ro-bind /usr:relative -- true
usage 'nosuchpolicy' run --policy nosuchpolicy -- true
usage 'nosuch\.json' run --policy "$T/nosuch.json" -- true
usage '/no' run --set /no/such/key=1 -- true
usage '--set' run --set nonsense -- true
usage 'nosuch\.jsonl' run --tasks "$T/nosuch.jsonl"
usage '--tasks|command' run --tasks - -- true
usage '--retries: not for a single command' run --retries 2 -- true
usage '--retries: not for a single command' run --retries=2 -- true
usage '--retries: not with --connect' run --connect /nosuch --retries 2 -- true
usage '--ordered: only with --tasks' run --ordered -- true
usage '--stdin|nosuch' run --stdin "$T/nosuch" -- cat
usage 'is a directory' run --stdin "$T" -- cat
usage '"1d" is not a duration' run --timeout 1d -- true
# hint ERE ARGS...: refused, and what is to be done about it is said.
hint() {
	ere=$1
	shift
	ks "$@"
	is $rc 125 "hint: $*: 125"
	like "$(sed -n 's/^hint: //p' "$T/err")" "$ere" "hint: $*"
}
hint '^--launcher oci:podman' run --launcher podman -- true
printf '{"version":1,"launcher":{"type":"crun"}}\n' >"$T/policy.json"
hint '^--launcher oci:crun' run --policy "$T/policy.json" -- true
hint "^did you mean $T/policy.json\\?" run --policy "$T/polcy.json" -- true
mkdir "$T/few" "$T/few/1" "$T/few/y"
hint "^nothing in $T/few has such a name" run --stdin "$T/few/x" -- true
hint '^nothing in /proc has such a name' run --collect a --out-dir /proc/x -- true
hint '^the preset.s name is judge' run --policy judge.json -- true
hint '^looked for in the current directory, /' run --policy ./nosuch.json -- true
hint '^looked for in the current directory, /' policy explain ./nosuch.json
hint '^there is no directory /nosuch' run --tasks /nosuch/x.jsonl
hint '^did you mean' run --ro-bind "$T/polcy.json:/x" -- true
hint '^seconds, without a unit, from 1 to' serve --socket "$T/s" --grace 5s
hint '^a number from 1 to' serve --socket "$T/s" --clients many
hint '^a whole number .*--workers 4' run --workers abc -- true
hint '^a whole number .*--workers 4' serve --socket "$T/s" --workers 2x
hint '^a whole number .*--pids 4' run --pids 3k -- true
hint '^a number from 1 to 256' policy export --around --workers abc
for n in "run --workers abc -- true" "serve --socket $T/s --grace 5s" "policy export --around --workers abc"; do
	usage 'is no number' $n
done
hint '^did you mean --socket' serve --sokcet x
hint '^did you mean knit-sandbox run' rnu -- true
hint '^did you mean knit-sandbox policy show' policy shwo judge
ks run --log-json --nosuchflag -- true
ok "--log-json: a wrong option is told as JSON" "$PY" -c 'import json,sys
for l in open(sys.argv[1]): json.loads(l)' "$T/err"

# A bare call says how it is used.
ks
is $rc 125 "no verb: 125"
like "$(err)" 'knit-sandbox run' "no verb: how it is used, on stderr"
ks --help
is $rc 0 "--help: 0"
like "$(out)" 'knit-sandbox run' "--help: on stdout"
ks run --help
is $rc 0 "run --help: 0"
at_most "$(wc -l <"$T/out")" 60 "run --help: one screen"
ks version
is $rc 0 "version: 0"
like "$(out)" '[0-9]+\.[0-9]+\.[0-9]+' "version: a version"

sh -c '"$0" policy list >&-' "$KS" 2>"$T/err"
is $? 125 "a closed standard output: what was to be printed is not lost in silence"
ks run -- 'ls -l'
like "$rc $(sed -n 's/^hint: //p' "$T/err")" '^127 .*words of their own' "a command and its arguments in one word: said so"
watched sh -c 'ulimit -s 100; exec "$0" version' "$KS_REAL"
is "$rc" 125 "too little stack: 125"
one_clear_line 'RLIMIT_STACK' "too little stack"

left_after "usage errors"
done_testing
