#!/bin/sh
# 30-module.t: kind module: values from line to line, errors, deaths, cancellation,
# limits of payloads, modules that cannot be loaded.
. "$(dirname "$0")/../lib/tap.sh"
left_before
M=$B/tests/module

v() { # ID EXPR over r
	js "$T/out" "(lambda r: $2)(by['$1'])"
}

# ---- one call ----
ks run --module "$M/basic.so" --call echo --input 'hello there'
is "$rc $(cat "$T/out")" "0 hello there" "text comes out as it went in, without a newline"
ks run --module "$M/basic.so" --call echo --input 21
is "$rc $(cat "$T/out")" "0 21" "a number is a number"
ks run --module "$M/basic.so" --call nothing
is "$rc $(cat "$T/out")" "0 null" "no argument and no result are null"
head -c 3000 /dev/urandom >"$T/bytes"
ks run --module "$M/basic.so" --call echo --input "@$T/bytes"
ok "bytes of a file come back as they were" cmp "$T/out" "$T/bytes"
ks run --module "$M/basic.so" --call init_text --init 'for the hook'
is "$(cat "$T/out")" "for the hook" "the init hook gets its text"
ks run --module "$M/basic.so" --call fail
is $rc 1 "an error that a task returns is exit status 1"
ks run --module "$M/basic.so" --call segv --report "$T/report"
is "$rc $(js "$T/report" 'L[0]["verdict"]')" "139 signal" "a crash is its signal"
ks run --module "$M/basic.so" --call no_such_task
is $rc 127 "a task that the module does not export is not found"
like "$(cat "$T/err")" 'echo' "and what it does export is said"

# ---- what cannot be a module ----
echo 'no ELF file' >"$T/text.so"
for f in "$T/text.so" "$T/nowhere.so" "$T" "$M/needs.so" "$M/crash_early.so"; do
	ks run --module "$f" --call nothing
	is $rc 125 "$(basename "$f"): refused"
	is "$(grep -v 'weaker stands in' "$T/err" | grep -c '^knit-sandbox: ')" 1 "$(basename "$f"): one line says why"
done
ks run --module "$M/basic.so" --call init_text --init fail
is_any $rc "0 125" "an init hook may refuse"

# ---- values in lines ----
"$PY" - "${KNIT_SLOW:-1}" >"$T/tasks" <<'X'
import base64, json, math, random, struct, sys
slow = int(sys.argv[1])
random.seed(1)
def p(**k): print(json.dumps(k))
def doubles(n):
    l = [1234567890123.25, 0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0, 1e16]
    l += [struct.unpack("d", random.randbytes(8))[0] for i in range(n)]
    return [d for d in l if math.isfinite(d)]
for i, x in enumerate([None, True, False, 0, -1, 2**63 - 1, -2**63, 1.5, "", "gr\u00fc\u00dfe \U0001f600",
                       {"a": [1, {"b": None}]}, [], [1, "x"], "x" * 100000,
                       {"d": doubles(500)}] + doubles(100)):
    p(id="v%d" % i, call="echo", value=x)
p(id="i32", call="echo", value=[1, -2, 2**31 - 1], array="i32")
p(id="i64", call="echo", value=[1, -2**63], array="i64")
p(id="u64", call="echo", value=[1, str(2**64 - 1)], array="u64")
p(id="f64", call="echo", value=[0.5, 3, "NaN", "-Infinity"], array="f64")
p(id="f64s", call="echo", value=doubles(2000), array="f64")
p(id="b", call="echo", bytes_b64=base64.b64encode(bytes(range(256)) * 300).decode())
p(id="both", call="echo", value=1, bytes_b64="")
p(id="cmd", argv=["true"])
p(id="mix", call="echo", argv=["true"])
p(id="wrong", call="echo", value=[1.5], array="i32")
p(id="odd", call="echo", value=3, arrray="i32")
p(id="err", call="fail", value=3)
p(id="nj", call="not_json")
p(id="soft", call="sleep_ms", value=80 * slow, timeouts={"task_ms": 20 * slow})
p(id="dflt", call="sleep_ms", value=80 * slow, timeouts={"task_ms": 20 * slow}, soft_default={"late": True})
p(id="poll", call="until_aborted", timeouts={"task_ms": 20})
p(id="after", call="echo", value="last", after=["v0"])
X
ks run --module "$M/basic.so" --workers 2 --tasks "$T/tasks"
is $rc 1 "all lines are answered, some not ok"
is "$("$PY" - "$T/tasks" "$T/out" <<'X'
import json, sys
sent = [json.loads(l) for l in open(sys.argv[1])]
got = {}
for l in open(sys.argv[2]):
    r = json.loads(l)
    assert r["id"] not in got, r
    got[r["id"]] = r
assert len(got) == len(sent)
for s in sent:
    r = got[s["id"]]
    if s["call"] != "echo" if "call" in s else True:
        continue
    if s["id"] in ("both", "mix", "wrong", "odd"):
        assert r["verdict"] == "invalid", r
    elif s["id"] == "b":
        assert r["value_b64"] == s["bytes_b64"], r
    else:
        assert r["verdict"] == "ok" and r["value"] == s["value"] and type(r["value"]) == type(s["value"]), (s, r)
        assert s["id"] == "f64" or repr(r["value"]) == repr(s["value"]), (s, r) # -0.0
print("right")
X
)" right "every value is what it was, of the type that it was"
is "$(v cmd 'r["verdict"]') $(v both 'r["verdict"]')" "invalid invalid" "a command among calls, two values: invalid"
is "$(v err 'r["verdict"] + " " + str(r["exit_code"]) + " " + str(bool(r["error"]["name"] and r["error"]["message"] and r["error"]["cause"]["message"]))')" \
    "exit None True" "an error comes with name, message and cause"
is "$(v nj 'r["verdict"]')" exit "text that is no JSON does not pass for JSON"
is "$(v soft 'r["verdict"]') $(v dflt 'r["verdict"]') $(v dflt 'r["value"]["late"]') $(v poll 'r["verdict"]')" \
    "soft-timeout ok yes soft-timeout" "task_ms: fails, or gives the default"

# ---- deaths ----
"$PY" - >"$T/tasks" <<'X'
import json
for i in range(2000):
    print(json.dumps({"id": str(i), "call": "segv" if i % 10 == 0 else "echo", "value": i}))
X
ks run --module "$M/basic.so" --workers 4 --tasks "$T/tasks"
is "$(js "$T/out" 'len(by) == len(L) == 2000 and all((r["verdict"] == "signal" and r["signal"] == 11) if int(i) % 10 == 0 else (r["verdict"] == "ok" and r["value"] == int(i)) for i, r in by.items())')" \
    yes "200 crashes among 2000 calls cost those 200 and no other"
"$PY" - >"$T/tasks" <<'X'
import json
for n, c in enumerate(["abort", "exit", "exit_at_once", "overflow", "close_all"]):
    for i in range(31):
        print(json.dumps({"id": "%d.%d" % (n, i), "call": "echo", "value": i}))
    print(json.dumps({"id": c, "call": c, "value": 0 if c == "exit" else None}))
X
ks run --module "$M/basic.so" --workers 1 --tasks "$T/tasks"
is "$(v abort 'r["verdict"] + str(r["signal"])') $(v exit 'r["verdict"]') $(v exit_at_once 'r["verdict"] + str(r["exit_code"])') $(v overflow 'r["verdict"]')" \
    "signal6 exit exit9 signal" "abort, exit(0), _exit(9), a stack that overflows: each its own verdict, none is ok"
is "$(js "$T/out" 'sum(r["verdict"] == "ok" for i, r in by.items() if "." in i)')" 155 "31 others in the lane are right"

# ---- time ----
printf '%s\n' '{"id":"spin","call":"until_aborted","timeouts":{"hard_ms":300}}' '{"id":"next","call":"echo","value":1}' >"$T/tasks"
ks run --module "$M/basic.so" --workers 1 --tasks "$T/tasks"
is "$(v spin 'r["verdict"]') $(v next 'r["verdict"]')" "timeout ok" "hard_ms ends a call that computes for ever, and the next one runs"
# Of two with about the same limit the second begins when the kill for the first may be on
# its way: who ran for less than the limit did not run longer.
"$PY" - $(scaled 20) >"$T/tasks" <<'X'
import json, sys
ms = int(sys.argv[1])
for i in range(100):
    print(json.dumps({"id": "s%d" % i, "call": "sleep_ms", "value": ms, "timeouts": {"hard_ms": ms}}))
    print(json.dumps({"id": "e%d" % i, "call": "echo", "value": i}))
X
ks run --quiet --module "$M/basic.so" --workers 2 --tasks "$T/tasks"
is "$(js "$T/out" 'len(by), [r for i, r in by.items() if r["verdict"] not in ("ok", "timeout", "worker-lost") or r["verdict"] == "timeout" and r["usage"]["wall_ms"] < '"$(scaled 20)"' or i[0] == "e" and r["verdict"] == "timeout"]')" \
    "(200, [])" "who is killed with its worker for the call before has not run too long"

# ---- cancel: queued, running, done, unknown ----
mkfifo "$T/in"
"$KS" run --module "$M/basic.so" --workers 1 --tasks "$T/in" >"$T/out" 2>"$T/err" &
pid=$!
exec 3>"$T/in"
printf '%s\n' '{"id":"done","call":"echo","value":1}' >&3
until grep -q '"done"' "$T/out"; do sleep 0.05; done
printf '%s\n' '{"id":"run","call":"sleep_ms","value":30000}' '{"id":"queued","call":"echo","value":1}' >&3
sleep 0.5
printf '%s\n' '{"cancel":"queued"}' '{"cancel":"run"}' '{"cancel":"done"}' '{"cancel":"who"}' '{"id":"last","call":"echo","value":2}' >&3
exec 3>&-
wait $pid
is "$(v queued 'r["verdict"]') $(v run 'r["verdict"]') $(v done 'r["verdict"]') $(v last 'r["verdict"]')" \
    "cancelled cancelled ok ok" "cancel: queued and running are cancelled, what is done stays"
is "$(js "$T/out" 'sum(r["verdict"] == "invalid" for r in L)')" 1 "cancel: an unknown id is invalid"

# ---- payloads ----
"$PY" - >"$T/tasks" <<'X'
import json
print(json.dumps({"id": "fits", "call": "echo", "path": "PATH/fits"}))
print(json.dumps({"id": "more", "call": "echo", "path": "PATH/more"}))
print(json.dumps({"id": "next", "call": "echo", "value": 7}))
X
head -c 8388608 /dev/zero >"$T/fits"
head -c 8388609 /dev/zero >"$T/more"
sed -i "s|PATH|$T|" "$T/tasks"
ks run --module "$M/basic.so" --workers 1 --set "/filesystem/task_paths=[\"$T\"]" --tasks "$T/tasks"
is "$(v fits 'r["verdict"] + str(len(r["value_b64"]))') $(v more 'r["verdict"]') $(v next 'r["value"]')" \
    "ok11184812 too-large 7" "8,388,608 bytes pass, one more does not, the next call works"
like "$(v more 'r["error"]')" KNT_ERROR_3 "too large has its code"
ks run --module "$M/basic.so" --set /payload/max=9M --call nothing
is $rc 125 "a payload above an eighth of the area is refused with the policy"

# ---- recycling, output ----
"$PY" -c 'import json
for i in range(60): print(json.dumps({"id": str(i), "call": "echo", "value": i}))' >"$T/tasks"
ks run --module "$M/basic.so" --workers 2 --set /pool/recycle/tasks=5 --debug lifecycle --tasks "$T/tasks"
is "$rc $(js "$T/out" 'len(L)')" "0 60" "recycled after five tasks each: all are answered"
at_least "$(grep -c ' gone ' "$T/err")" 10 "and workers were recycled"

# ---- many deaths from outside ----
calls=$((${KNIT_SCALE:-10000} * 2))
"$PY" - $calls >"$T/tasks" <<'X'
import json, sys
for i in range(int(sys.argv[1])):
    print(json.dumps({"id": str(i), "call": "echo", "value": "%d:" % i + "x" * (i % 700)}))
    if i % 10 == 0:
        print(json.dumps({"id": "s%d" % i, "call": "sleep_ms", "value": 2}))
X
if [ -n "$root" ]; then
	"$KS" run --module "$M/basic.so" --workers 4 --retries 50 --tasks "$T/tasks" >"$T/out" 2>"$T/err" &
	pid=$!
	n=0
	while kill -0 $pid 2>/dev/null && [ $n -lt 100 ]; do
		victim=$("$PY" - $pid <<'X'
import os, random, sys
def kids(p):
    try:
        return [int(x) for x in open("/proc/%d/task/%d/children" % (p, p)).read().split()]
    except OSError:
        return []
todo, mods = [int(sys.argv[1])], []
while todo:
    p = todo.pop()
    todo += kids(p)
    try:
        if "knit-worker-module" in os.readlink("/proc/%d/exe" % p):
            mods.append(p)
    except OSError:
        pass
print(random.choice(mods) if mods else "")
X
)
		[ -n "$victim" ] && kill -KILL "$victim" 2>/dev/null && n=$((n + 1))
	done
	wait $pid
	diag "$n residents were killed"
	is "$(js "$T/out" 'len(L) == len(by) == '$((calls + calls / 10))' and all((r["verdict"] == "ok" and (i[0] == "s" or r["value"] == "%s:" % i + "x" * (int(i) % 700))) or r["verdict"] == "signal" for i, r in by.items())')" \
	    yes "residents killed from outside: each call has one answer, and no value is wrong"
else
	not_here "killing a worker's process takes root"
fi

# ---- what nobody counts is not told as 0 ----
printf '%s\n' '{"id":"a","call":"echo","value":1}' >"$T/tasks"
ks run --module "$M/basic.so" --tasks "$T/tasks" --report "$T/report"
is "$(v a '"cpu_ms" in r["usage"]') $(js "$T/report" '"cpu_ms" in L[0]')" "no no" "calls: no processor time in result and report"
unlike "$(err)" 'CPU' "nor in the table"

# ---- numbers ----
ks run --module "$M/basic.so" --call echo --input 1234567890123.25 --report "$T/report"
is "$rc $(cat "$T/out") $(js "$T/report" 'L[0]["value"]')" "0 1234567890123.25 1234567890123.25" \
    "a number is itself, printed and in the report"
ks run --module "$M/basic.so" --call echo --input '[0.1,{"a":0.30000000000000004}]'
is "$(cat "$T/out")" '[0.10000000000000001,{"a":0.30000000000000004}]' "as many digits as it takes"
ks run --module "$M/basic.so" --call echo --input '[0.1,18.2]'
is "$(cat "$T/out")" '[0.1,18.2]' "and no more"

# ---- text for people and for programs ----
ks run --module "$M/basic.so" --call echo --input "" --report "$T/report"
is "$rc $(js "$T/report" '[L[0]["value"], L[0]["value_type"]]')" "0 ['', 'text']" "--input of nothing: text of no bytes"
ks run --module "$M/basic.so" --call echo --input hi
is "$(od -An -c "$T/out" | tr -d ' ')" "hi" "text comes out as it is"
if command -v script >/dev/null; then
	script -qec "$KS run --quiet --module $M/basic.so --call echo --input hi" /dev/null >"$T/tty" 2>&1
	is "$(od -An -c "$T/tty" | tr -d ' ')" 'hi\r\n' "on a terminal its line is ended"
	rm -f "$T/tty"
fi

# ---- stopped ----
"$PY" -c 'import json
for i in range(50): print(json.dumps({"id": str(i), "call": "sleep_ms", "value": 1000 if i else 1}))' >"$T/tasks"
: >"$T/out"
"$KS" run --module "$M/basic.so" --workers 2 --tasks "$T/tasks" >"$T/out" 2>"$T/err" &
pid=$!
wait_lines "$T/out" 1
kill -TERM $pid
wait $pid
is $? 143 "SIGTERM ends a batch of calls"
is "$(js "$T/out" 'len(L) > 0 and len(L) == len(by)')" yes "and what was taken has its line"
left_after "modules"
done_testing
