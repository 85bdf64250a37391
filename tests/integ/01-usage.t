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
usage '--stdin|nosuch' run --stdin "$T/nosuch" -- cat
usage 'is a directory' run --stdin "$T" -- cat
usage '"1d" is not a duration' run --timeout 1d -- true
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

left_after "usage errors"
done_testing
