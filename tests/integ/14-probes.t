#!/bin/sh
# 14-probes.t: the static helpers of tests/probes, run inside as tasks: what a task finds
# there, and that tasks which do not want to end are ended. The kernel's answer to each
# attempt is the oracle; what is left is looked at from outside.
. "$(dirname "$0")/../lib/tap.sh"
P=$B/probes
if [ ! -x "$P/slice" ]; then
	echo "Bail out! no programs in $P; build them with: make tests"
	exit 1
fi
mkdir "$T/p"
cp "$P"/* "$T/p/"
chmod 755 "$T/p" "$T/p/"*
left_before

# p VERDICT ERE "OPTIONS OF run" NAME ARGS...
p() {
	want=$1 says=$2 opts=$3 name=$4
	shift 4
	rm -f "$T/report"
	# shellcheck disable=SC2086
	ks run --quiet --report "$T/report" --ro-bind "$T/p:/p" $opts -- "/p/$name" "$@"
	is "$(verdict)" "$want" "$name $*: $want"
	like "$(out)" "$says" "$name $*: says so"
	is "$left" 0 "$name $*: nothing left"
}

# ---- what a task finds ----
exec 8<"$0" 9>"$T/inherited"
p ok '^BLOCKED' "" fds
exec 8<&- 9>&-
p ok '^BLOCKED' "" caps
p ok '^BLOCKED' "" slice
# The probes do find something where there is something to find.
watched sh -c 'exec 9</dev/null; exec "$1"' sh "$P/fds"
is $rc 42 "fds sees a descriptor that is there"
like "$(out)" '9=/dev/null' "fds names it"

# ---- what one leaves for the next, on one worker ----
cat >"$T/tasks" <<'X'
{"id":"look0","argv":["/p/leftovers","--look"]}
{"id":"plant","argv":["/p/leftovers"],"after":["look0"]}
{"id":"look1","argv":["/p/leftovers","--look"],"after":["plant"]}
{"id":"self","argv":["/bin/sh","-c","/p/leftovers; /p/leftovers --look"],"after":["look1"]}
X
ks run --quiet --tasks "$T/tasks" --workers 1 --ro-bind "$T/p:/p"
# Where memory is watched and not counted, a System V segment cannot be had at all.
shm=
cgroup_granted && shm='shm '
like "$(js "$T/out" 'by["plant"]["stdout"]')" "PENDING: planted:.*/tmp/.*/dev/shm/.*/task/.*${shm}sem msg.*daemon" "leftovers: plants of every kind"
is "$(js "$T/out" '[by[k]["stdout"][:8] for k in ("look0", "look1")]')" "['BLOCKED:', 'BLOCKED:']" "leftovers: the next task finds none"
like "$(js "$T/out" 'by["self"]["stdout"]')" 'ESCAPE: .*/tmp/.*shm.*daemon' "leftovers: its search does find them within one task"
is "$(js "$T/out" 'len({L[i]["worker"] for i in range(len(L))})')" 1 "leftovers: all on one worker"
is "$left" 0 "leftovers: no process left"

# ---- tasks that do not want to end ----
p timeout '^ready' "--timeout $(scaled 300)ms" ignore-stop
p timeout '^ready' "--timeout $(scaled 300)ms" ignore-stop --spin
p timeout '^ready' "--timeout $(scaled 1000)ms" spinners 100
p timeout '^ready' "--timeout $(scaled 1000)ms" spinners 100 --stopped
p timeout '^ready' "--timeout $(scaled 500)ms" forker
p timeout '^ready' "--timeout $(scaled 500)ms" forker --double
p soft-timeout 'heard' "--timeout $(scaled 20)s --set /timeouts/task_ms=$(scaled 300) --set /timeouts/grace_ms=$(scaled 100)" ignore-stop --hear

# ---- processor time, whoever burns it ----
p ok 'burned 100' "" spin --ms 100
at_least "$(js "$T/report" 'int(L[0]["usage"]["cpu_ms"])')" 95 "spin: its time is reported"
p cpu-timeout '' "--cpu-time $(scaled 200)ms --timeout $(scaled 20)s" spin
p cpu-timeout '' "--cpu-time $(scaled 200)ms --timeout $(scaled 20)s" spin --split 40 --ms "$(scaled 4000)"
at_least "$(js "$T/report" 'int(L[0]["usage"]["cpu_ms"])')" "$(scaled 195)" "spin --split: a killed task's account is whole"
at_most "$(js "$T/report" 'int(L[0]["usage"]["cpu_ms"])')" "$(scaled 1000)" "spin --split: stopped near its limit"

# ---- all of them, under each preset and launcher ----
B=$B sh "$t_top/tests/probes/matrix.sh" >"$T/matrix" 2>&1
is $? 0 "no probe gets out, and no launcher differs from another"
diag "$(cat "$T/matrix")"

left_after "probes"
done_testing
