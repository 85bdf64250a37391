#!/bin/sh
# 17-open-files.t: a low limit of open files is said once, before anything is launched;
# and launches that fail are no lost workers.
. "$(dirname "$0")/../lib/tap.sh"
left_before

"$PY" -c 'for i in range(200): print("{\"id\":\"t%d\",\"argv\":[\"true\"]}" % i)' >"$T/200"
limited() { # N ARGS...
	n=$1
	shift
	watched sh -c 'ulimit -n $1 && shift && exec "$@"' sh "$n" "$KS" "$@"
}

# (a worker that gets no processor for claim_ms is taken for a stuck one)
claim="--set /timeouts/claim_ms=60000"
# shellcheck disable=SC2086
limited 256 run --workers 100 $claim --report "$T/report" --tasks "$T/200"
is "$rc $(out | grep -c '"verdict":"ok"')" "0 200" "256 open files, 100 workers: all answered ok"
is "$(err | grep -c RLIMIT_NOFILE)" 1 "and it is said once that they are fewer, and why"
like "$(err)" ' in place of 100: RLIMIT_NOFILE \(ulimit -n\) allows 256' "in numbers"
is "$(js "$T/report" '(L[0]["workers_lost"], L[0]["failed_launches"])')" "(0, 0)" \
	"no worker was lost, no launch failed"
unlike "$(err)" 'lost|failed' "and the summary has none"
limited 256 run --quiet --workers 100 --tasks "$T/200"
is "$rc $(err | grep -v 'weaker stands in')" "0 " "--quiet: no remark"
limited 4096 run --workers 3 --tasks "$T/200"
unlike "$(err)" RLIMIT_NOFILE "room for all: no remark"

limited 24 run --workers 1 --tasks "$T/200"
is "$rc $(out)" "125 " "not even one worker: refused, no task is answered launch-failed"
one_clear_line 'RLIMIT_NOFILE allows 24 open files' "not even one worker"
limited 24 run -- true
is $rc 125 "a single command: refused likewise"
one_clear_line 'RLIMIT_NOFILE allows 24 open files' "a single command"
# The least that is not refused is enough: the reckoning is not made up.
n=24
while :; do
	limited $n run --workers 1 --tasks "$T/200"
	grep -q RLIMIT_NOFILE "$T/err" || break
	n=$((n + 1))
	[ $n -lt 200 ] || break
done
is "$rc $(out | grep -c '"verdict":"ok"')" "0 200" "with the least that is not refused ($n) all is ok"

# The files of a result that there is no descriptor for: said of them, and of nobody else.
printf '%s\n' '{"id":"many","argv":["sh","-c","for i in $(seq 200); do echo $i >f$i; done"],"collect":["f*"]}' \
	'{"id":"next","argv":["true"]}' >"$T/files"
# (an ordinary user may have no more on their way than he may open: 210, of 200 and some)
limited 210 run --workers 1 --tasks "$T/files" --report "$T/report"
is "$(js "$T/out" 'by["many"]["verdict"], by["next"]["verdict"]') $(js "$T/report" 'L[0]["workers_lost"]')" "('ok', 'ok') 0" \
	"more files come back than there are descriptors: no fault of the worker's"
is "$(js "$T/out" 'len(by["many"]["files"]), sorted({f.get("error", "") for f in by["many"]["files"].values()})')" "(200, ['', 'could not be read'])" "and each of those is told"

if [ -n "$bwrap" ]; then
	watched env KNIT_BWRAP=/bin/false "$KS" run --report "$T/report" --workers 2 --tasks "$T/200"
	is $rc 125 "launches that fail: 125"
	is "$(js "$T/report" '(L[0]["workers_lost"], L[0]["failed_launches"] > 0)')" "(0, True)" \
		"they are failed launches, not lost workers"
else
	not_here "another bwrap"
fi
left_after "a limit of open files"
done_testing
