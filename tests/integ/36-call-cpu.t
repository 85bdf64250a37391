#!/bin/sh
# 36-call-cpu.t: the processor time of one call: who uses more than its limit ends, with
# its worker and no other; who only waits does not.
. "$(dirname "$0")/../lib/tap.sh"
left_before
M=$B/tests/module/cpu.so

v() { # ID EXPR over r
	js "$T/out" "(lambda r: $2)(by['$1'])"
}
# Where no cgroup counts it the processes' own clocks do.
run() {
	ks run --module "$M" --set '/allow_degraded=["uid","landlock","cgroup.memory","cgroup.pids","cgroup.cpu","mseal"]' "$@"
}

limit=$(scaled 100) long=$(scaled 60000)
for how in "--steal off" "--steal brokered" "--steal shared"; do
	{
		printf '%s\n' '{"id":"mine","call":"burn","value":'$long'}' \
		    '{"id":"thread","call":"burn_in_thread","value":'$long'}' \
		    '{"id":"child","call":"burn_in_child","value":'$long'}' \
		    '{"id":"unseen","call":"burn_unseen"}' \
		    '{"id":"less","call":"burn","value":'$long',"limits":{"task":{"cpu_ms":20}}}' \
		    '{"id":"waits","call":"wait_ms","value":'$((limit * 4))'}'
		for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
			printf '{"id":"%d","call":"burn","value":%d}\n' $i $((limit / 10))
		done
	} >"$T/tasks"
	# shellcheck disable=SC2086
	run $how --workers 3 --cpu-time ${limit}ms --timeout 300s --tasks "$T/tasks"
	is "$(v mine 'r["verdict"]') $(v thread 'r["verdict"]') $(v child 'r["verdict"]') $(v less 'r["verdict"]')" \
	    "cpu-timeout cpu-timeout cpu-timeout cpu-timeout" "$how: in its own thread, in another, in a child, with less of its own: ended"
	is "$(v unseen 'r["verdict"]')" cpu-timeout "$how: and who says that he is at nothing"
	is "$(v waits 'r["verdict"]')" ok "$how: who waits four times as long has used nothing"
	is "$(js "$T/out" 'len(L) == len(by) == 18 and all(r["verdict"] == "ok" for i, r in by.items() if i.isdigit())')" \
	    yes "$how: twelve calls that need more together and each less are right"
	like "$(v mine 'r["error"]')" "/limits/task/cpu_ms" "$how: and it is said which limit that was"
done
printf '%s\n' '{"id":"a","call":"burn","value":1,"limits":{"task":{"cpu_ms":1000}}}' \
    '{"id":"b","call":"burn","value":1,"limits":{"task":{"memory":"1M"}}}' >"$T/tasks"
run --cpu-time 100ms --tasks "$T/tasks"
is "$(v a 'r["verdict"]') $(v b 'r["verdict"]')" "invalid invalid" "a line may ask for less than the policy, and of no other limit"
left_after "calls that used too much"
done_testing
