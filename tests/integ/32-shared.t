#!/bin/sh
# 32-shared.t: workers that take calls from one place: who may, how it is chosen, the same
# answers whatever their number, calls that move, deaths, lies, cancellation.
. "$(dirname "$0")/../lib/tap.sh"
left_before
M=$B/tests/module
basic=$M/basic.so

# ---- the choice, and its reason ----
chosen() { # as --debug host says it
	sed -n 's/.* host] workers=.* lanes=\([a-z]*\) steal=\([a-z]*\) (\(.*\))$/\1 \2: \3/p' "$T/err"
}
ks run --debug host --module "$basic" --call nothing --workers 1 --steal shared
is "$(chosen)" "private off: there is one worker" "one worker: off"
ks run --debug host --module "$basic" --call nothing --workers 2
is "$(chosen | cut -d: -f1)" "private brokered" "workers do not share memory unless they are allowed to"
like "$(chosen)" "arguments" "and it is said why"
ks run --debug host --module "$basic" --call nothing --workers 2 --steal shared
is "$(chosen | cut -d: -f1)" "shared shared" "allowed to they do"
like "$(cat "$T/err")" "claim=dekker banks=1 claimants=2 region_lanes=8" "as widely as leaves a spare region"
KNIT_STEAL=shared KNIT_STEAL_CLAIM=cas-mask ks run --debug host --module "$basic" --call nothing --workers 5
like "$(cat "$T/err")" "claim=cas-mask banks=1 claimants=5 region_lanes=4" "the environment says it too"
KNIT_STEAL=shared ks run --debug host --module "$basic" --call nothing --workers 2 --steal off
is "$(chosen)" "private off: asked for" "an option comes before the environment"
printf '{"id":"a","call":"nothing"}\n' >"$T/tasks"
stolen() { # OPTIONS...: what a batch's report says of it
	ks run --module "$basic" --workers 2 --tasks "$T/tasks" --report "$T/report" "$@"
	js "$T/report" '(lambda s: [s["mode"], s.get("claim"), s.get("region_lanes"), bool(s["reason"]), bool(s.get("claim_reason"))])(L[0]["steal"])'
}
is "$(stolen --steal shared)" "['shared', 'dekker', 8, True, True]" "a report says how, by which claim, how wide and why"
is "$(stolen)" "['brokered', None, None, True, False]" "and of lanes of their own no more than there is"
KNIT_STEAL=both ks run --module "$basic" --call nothing
is $rc 125 "KNIT_STEAL: another word is refused"
KNIT_STEAL_CLAIM=both ks run --module "$basic" --call nothing
is $rc 125 "KNIT_STEAL_CLAIM: another word is refused"
ks run --steal shared --workers 2 -- /bin/true
is $rc 125 "commands are not shared: their descriptors go to one worker"
ks run --module "$basic" --call nothing --workers 2 --steal shared --set /pool/region_lanes=3
is $rc 125 "region_lanes: 3 is no power of two"

# ---- the same answers, whatever their number ----
"$PY" - >"$T/tasks" <<'X'
import json
for i in range(600):
    print(json.dumps({"id": str(i), "call": "echo", "value": "%d:" % i + "z" * (i * 37 % 1600)}))
X
for n in $(some 2 31 32 64); do
	for how in dekker cas-mask; do
		ks run --module "$basic" --workers $n --steal shared --set /pool/claim=$how --debug host --tasks "$T/tasks"
		is "$rc $(js "$T/out" 'len(L) == len(by) == 600 and all(r["value"] == i + ":" + "z" * (int(i) * 37 % 1600) for i, r in by.items())')" \
			"0 yes" "$n workers, $how: each call answered once, and right"
		diag "$(grep -o 'banks=.*' "$T/err")"
	done
done

# ---- uneven calls move ----
"$PY" - "$(scaled 300)" >"$T/tasks" <<'X'
import json, sys
for i in range(96):
    print(json.dumps({"id": "t%d" % i, "call": "sleep_ms", "value": int(sys.argv[1]) if i % 16 == 0 else 3}))
X
ks run --module "$basic" --workers 4 --steal shared --tasks "$T/tasks" --trace "$T/trace"
is "$rc $(js "$T/out" 'len(by)')" "0 96" "uneven calls over 4 workers"
t() {
	"$PY" -c '
import json, sys
E = json.load(open(sys.argv[1]))
X = {e["name"]: e for e in E if e["ph"] == "X"}
S = [e for e in E if e.get("cat") == "moved" and e["ph"] == "s"]
print(eval(sys.argv[2]))' "$T/trace" "$1" 2>&1
}
at_least "$(t 'len(S)')" 1 "the trace shows calls that another worker took"
is "$(t '[e for e in S if X[e["name"]]["tid"] - 1 != int(e["args"]["to"][1:])]')" "[]" "each ran where it moved to"
# All long ones at once need at most two rounds of them.
is "$(t '[w for w in range(1, 5) if sum(x["tid"] == w and x["dur"] > '"$(scaled 100)000"' for x in X.values()) > 3]')" "[]" \
	"no worker had the long ones to itself"

# ---- deaths ----
"$PY" - >"$T/tasks" <<'X'
import json
for i in range(400):
    print(json.dumps({"id": str(i), "call": ["segv", "exit", "abort"][i // 20 % 3] if i % 20 == 10 else "echo", "value": i}))
X
ks run --module "$basic" --workers 3 --steal shared --tasks "$T/tasks"
is "$(js "$T/out" 'len(L) == len(by) == 400 and all((r["verdict"] == "ok" and r["value"] == int(i)) != (int(i) % 20 == 10) for i, r in by.items())')" \
	yes "20 deaths among 400 calls cost those 20 and no other"

# ---- payloads ----
head -c 8388608 /dev/urandom >"$T/fits"
head -c 8388609 /dev/zero >"$T/over"
"$PY" - "$T" >"$T/tasks" <<'X'
import json, sys
for i, f in enumerate(["fits", "over", "fits"]):
    print(json.dumps({"id": str(i), "call": "echo", "path": sys.argv[1] + "/" + f}))
X
ks run --module "$basic" --workers 2 --steal shared --set '/filesystem/task_paths=["'"$T"'"]' --tasks "$T/tasks"
is "$(js "$T/out" '[by[i]["verdict"] for i in "012"]')" "['ok', 'too-large', 'ok']" \
	"8 MiB pass, one byte more is too large, and the next call works"
is "$(js "$T/out" 'raw(by["2"], "value") == open("'"$T"'/fits", "rb").read()')" yes "and come back as they were"

# ---- cancel: queued, running, done, unknown ----
mkfifo "$T/in"
"$KS" run --quiet --module "$basic" --workers 2 --steal shared --tasks - <"$T/in" >"$T/out" 2>"$T/err" &
pid=$!
exec 3>"$T/in"
printf '%s\n' '{"id":"done","call":"echo","value":1}' '{"id":"run","call":"until_aborted"}' '{"id":"run2","call":"until_aborted"}' >&3
until grep -q '"done"' "$T/out"; do pause 50; done
printf '%s\n' '{"id":"queued","call":"sleep_ms","value":60000}' '{"cancel":"queued"}' '{"cancel":"run"}' '{"cancel":"done"}' '{"cancel":"who"}' '{"cancel":"run2"}' '{"id":"last","call":"echo","value":2}' >&3
exec 3>&-
wait $pid
is "$(js "$T/out" '[by[i]["verdict"] for i in ("queued", "run", "run2", "done", "last")]')" \
	"['cancelled', 'cancelled', 'cancelled', 'ok', 'ok']" "cancel: queued and running are cancelled, what is done stays"
is "$(js "$T/out" 'sum(r["verdict"] == "invalid" for r in L)')" 1 "cancel: an unknown id is invalid"

# A cancellation that waits just then is carried out on what the new worker has claimed.
late=
for i in $(some 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20); do
	: >"$T/out"
	timeout "$(($(scaled 20000) / 1000))" "$KS" run --quiet --module "$basic" --workers 2 --steal shared --tasks - <"$T/in" >"$T/out" 2>"$T/err" &
	pid=$!
	exec 3>"$T/in"
	printf '%s\n' '{"id":"done","call":"echo"}' '{"id":"run","call":"until_aborted"}' '{"id":"run2","call":"until_aborted"}' >&3
	until grep -q '"done"' "$T/out"; do sleep 0.001; done
	sleep "0.00$((i % 10))"
	printf '%s\n' '{"cancel":"run"}' '{"cancel":"run2"}' >&3
	exec 3>&-
	wait $pid
	[ "$(js "$T/out" 'by["run"]["verdict"] + by["run2"]["verdict"]')" = cancelledcancelled ] || late="$late $i"
done
is "$late" "" "cancelled while another worker gets ready: what that has claimed is ended too"

# ---- lies ----
lies() { # HOW
	"$PY" - "$1" >"$T/tasks" <<'X'
import json, sys
for i in range(1500):
    if i == 50:
        print(json.dumps({"id": "evil", "call": "lie_for_ever", "value": int(sys.argv[1]) * 100 + 3}))
    print(json.dumps({"id": str(i), "call": "echo", "value": "%d:" % i + "y" * (i * 7 % 1500)}))
X
}
# Each id once; what is not right is what a liar has claimed, and nobody else is blamed.
# (One that says it has not claimed what it runs is believed: it runs elsewhere too.)
judge() {
	"$PY" - "$T/out" "$T/err" <<'X'
import json, re, sys
L = [json.loads(l) for l in open(sys.argv[1])]
by = {r["id"]: r for r in L}
err = open(sys.argv[2], errors="replace").read()
liars = set(re.findall(r"^(w\d+): lies$", err, re.M))
wrong = [i for i, r in by.items() if i != "evil" and r.get("worker") not in liars and not (
    r["verdict"] == "ok" and r["value"] == i + ":" + "y" * (int(i) * 7 % 1500))]
caught = set(re.findall(r"^\[(w\d+) [^]]*\] (?:violation field=|kill why=stuck)", err, re.M))
print("right" if len(L) == len(by) == 1501 and liars and not wrong and caught <= liars else
      "%d lines, liars %s, caught %s, wrong: %s" % (len(L), liars, caught, [by[i] for i in wrong[:3]]))
X
}
for how in $(some 0 1 2 3 4 5 6 7); do
	lies $how
	ks run --module "$M/liar.so" --workers 3 --steal shared --timeout 5s --debug lifecycle --tasks "$T/tasks"
	is_any $rc "0 1" "lie $how: the batch goes to its end"
	is "$(judge)" right "lie $how: one answer each, the other workers' are right, and nobody else is blamed"
	diag "$(grep -o 'violation field=.*\|kill why=[a-z-]*' "$T/err" | sort | uniq -c | tr '\n' ' ')"
done
# It wants a region for the whole of a call: the others go on meanwhile, and it is found
# out long before the call's own limit.
lies 7
ks run --module "$M/liar.so" --workers 3 --steal shared --timeout 300s --debug lifecycle --tasks "$T/tasks"
is "$(judge) $(js "$T/out" 'by["evil"]["verdict"]')" "right protocol-violation" "a region is kept: the keeper is named, and nobody waits for its call"
like "$(cat "$T/err")" "violation field=want" "by what it did"
# The same where its word does not stay as it is.
printf '{"id":"%s","call":"lie_for_ever","value":803}\n' evil evil2 >"$T/tasks"
printf '{"id":"%s","call":"echo","value":"x"}\n' $(seq 600) >>"$T/tasks"
ks run --module "$M/liar.so" --workers 3 --steal shared --timeout 300s --debug lifecycle --tasks "$T/tasks"
is "$(js "$T/out" 'by["evil"]["verdict"], by["evil2"]["verdict"], len(L), len(by)')" \
    "('protocol-violation', 'protocol-violation', 602, 602)" "two that swap the regions that they keep are found out as well"
for at in 0 64 128 192 $((4 * 4096)) $((2 * 4096 + 5 * 4096 + 2 * 4096 + 64)); do
	ks run --module "$M/liar.so" --workers 3 --steal shared --call write_bank --input $at
	is $rc 139 "what is at $at of the bank cannot be written by a worker"
done
left_after "shared submit"
done_testing
