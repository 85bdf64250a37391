#!/bin/sh
# 31-module-hostile.t: modules that write over all that they share, ring and talk without
# end: every call has one answer, those of the other workers are right, and who is caught
# is named and replaced.
. "$(dirname "$0")/../lib/tap.sh"
left_before
M=$B/tests/module/hostile.so
n=$((${KNIT_SCALE:-3000} > 3000 ? 3000 : ${KNIT_SCALE:-3000}))

tasks() { # EVIL ARG N
	"$PY" - "$@" >"$T/tasks" <<'X'
import json, sys
evil, arg, n = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
for i in range(n):
    if i == 50:
        print(json.dumps({"id": "evil", "call": evil, "value": arg}))
    print(json.dumps({"id": str(i), "call": "echo", "value": "%d:" % i + "y" * (i * 7 % 1500)}))
X
}
# Each line once; what workers answered that the evil one was never with is ok and right.
# (One that says it has not claimed what it runs is believed: it runs elsewhere too.)
judge() {
	"$PY" - "$T/out" "$T/err" <<'X'
import json, re, sys
L = [json.loads(l) for l in open(sys.argv[1])]
bad = set(re.findall(r"^\[(w\d+) [^]]*\] task evil slot", open(sys.argv[2], errors="replace").read(), re.M))
by = {r["id"]: r for r in L}
wrong = [i for i, r in by.items() if i != "evil" and r.get("worker") not in bad and not (
    r["verdict"] == "ok" and r["value"] == i + ":" + "y" * (int(i) * 7 % 1500))]
print("right" if bad and len(by) == len(L) and not wrong else "evil in %s, wrong: %s" % (bad, wrong[:5]))
X
}

for seed in $(some 1 2 3 4 5 6); do
	tasks scribble_for_ever $seed $n
	ks run --module "$M" --workers 3 --timeout 5s --debug lifecycle --tasks "$T/tasks"
	is_any $rc "0 1" "scribbler $seed: the batch goes to its end"
	is "$(judge)" right "scribbler $seed: one answer each, and the other workers' are right"
done
for word in $(some 0 1 2 3 4 5 6 7 8 9 10 11 12 13); do
	tasks flip_word $word 300
	ks run --module "$M" --workers 2 --timeout 3s --debug lifecycle --tasks "$T/tasks"
	is "$(judge)" right "control word $word flipped: one answer each, and the other worker's are right"
done
for off in 0 4294963200; do
	tasks false_pong $off 300
	ks run --module "$M" --workers 2 --timeout 3s --debug lifecycle --tasks "$T/tasks"
	is "$(judge)" right "a pong whose payload is at $off: one answer each, and the other worker's are right"
	like "$(cat "$T/err")" "violation field=ping.area" "and it is named"
done
"$PY" - >"$T/tasks" <<'X'
import json
for i in range(600): # further apart than a lane is deep
    if i % 100 == 50:
        print(json.dumps({"id": "evil%d" % i, "call": "false_value", "value": None}))
    print(json.dumps({"id": str(i), "call": "echo", "value": "x"}))
X
ks run --module "$M" --workers 1 --timeout 3s --debug lifecycle --tasks "$T/tasks"
is "$(js "$T/out" 'len(L) == len(by) == 606')" yes "a value that is none: still one answer each"
like "$(cat "$T/err")" "violation field=result.value" "and it is named"
is "$(grep -o 'task evil[0-9]* slot' "$T/err" | sort | uniq -d)" "" \
	"and who answered so is given to no other worker"
tasks scribble_for_ever 7 $n
ks run --module "$M" --workers 1 --timeout 5s --debug lifecycle --tasks "$T/tasks"
is "$(js "$T/out" 'len(L) == len(by)') $(wc -l <"$T/out")" "yes $((n + 1))" "alone with a scribbler: still one answer each"
diag "$(grep -o 'violation field=[a-z_.]*' "$T/err" | sort | uniq -c | tr '\n' ' ')"

tasks ring_for_ever null $n
ks run --module "$M" --workers 2 --timeout 5s --debug lifecycle --tasks "$T/tasks"
is "$(judge)" right "a bell that never stops: one answer each, and right"
tasks talk_for_ever null $n
ks run --module "$M" --workers 2 --timeout 5s --debug lifecycle --tasks "$T/tasks"
is "$(judge)" right "a module that talks without end: one answer each, and right"
at_most "$(grep -c '^w[0-9]: ' "$T/err")" 400000 "and only so much of it is shown"
is "$(tr -d '[:print:]\n\t' <"$T/err" | wc -c)" 0 "and none of it is a control character"
# Nobody reads our stderr: the pipe fills, and the loop goes on.
tasks talk_for_ever null $n
T=$T "$PY" -c 'import os, subprocess, sys
r, w = os.pipe()
out = open(os.environ["T"] + "/out", "w")
try:
    sys.exit(subprocess.run(sys.argv[1:], stdout=out, stderr=w, timeout=120).returncode)
except subprocess.TimeoutExpired:
    sys.exit(99)' "$KS" run --quiet --module "$M" --workers 2 --timeout "$(scaled 5)s" --tasks "$T/tasks"
is "$? $(js "$T/out" '(len(L), len(by), sum(r["verdict"] == "ok" for r in L))')" "0 ($((n + 1)), $((n + 1)), $((n + 1)))" \
	"what a module prints and nobody reads holds nobody up"
left_after "hostile modules"
done_testing
