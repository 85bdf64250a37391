#!/bin/sh
# 04-batch.t: many tasks, JSONL in, JSONL out: bad lines, after, cancel, order, limits.
. "$(dirname "$0")/../lib/tap.sh"
left_before

v() { # ID
	js "$T/out" "by['$1']['verdict']"
}
# The result of line N, whatever id it has.
line() { # N EXPR over r
	js "$T/out" "[($2) for r in L if r.get('line') == $1 or 'line $1' in (r.get('error') or '')][0]"
}

# ---- one bad line costs that line only ----
"$PY" - >"$T/tasks" <<'X'
import json
def p(x): print(x if isinstance(x, str) else json.dumps(x))
p({"id": "first", "argv": ["echo", "first"]})            # 1
p('{"id":"broken","argv":["true"]')                     # 2: not JSON
p('this is no JSON at all')                              # 3
p({"id": "unknown", "argv": ["true"], "argz": 1})        # 4
p({"id": "first", "argv": ["echo", "twice"]})            # 5: duplicate
p({"id": "nocmd"})                                       # 6
p({"id": "emptyargv", "argv": []})                       # 7
p({"id": "notarray", "argv": "true"})                    # 8
p({"id": "nul", "argv": ["echo", "a\0b"]})               # 9
p({"id": "loose", "argv": ["true"], "limits": {"task": {"memory": "64G"}}})    # 10
p({"id": "range", "argv": ["true"], "limits": {"task": {"memory": -5}}})       # 11
p({"id": "looset", "argv": ["true"], "timeouts": {"hard_ms": 99999999}})       # 12
p({"id": "unit", "argv": ["true"], "limits": {"task": {"memory": "12 bananas"}}})  # 13
p({"argv": ["true"], "id": None})                        # 14: id is null
p({"id": 7, "argv": ["true"]})                           # 15: id is no string
p({"id": "", "argv": ["true"]})                          # 16: empty id
p({"id": "climb", "argv": ["true"], "files": {"../x": {"content": "x"}}})      # 17
p({"id": "abs", "argv": ["true"], "files": {"/x": {"content": "x"}}})          # 18
p({"id": "b64", "argv": ["true"], "stdin_b64": "%%%"})   # 19
p({"id": "mode", "argv": ["true"], "files": {"x": {"content": "", "mode": "4755"}}})  # 20
p({"id": "twoin", "argv": ["cat"], "stdin": "a", "stdin_b64": "YQ=="})         # 21
p({"id": "path", "argv": ["true"], "files": {"x": {"path": "/etc/passwd"}}})   # 22: no root allowed
p({"id": "envnul", "argv": ["true"], "env": {"A=B": "x"}})                     # 23
p('{"id":"dup","id":"dup2","argv":["true"]}')               # 24
p("[1,2]")                                               # 25
p('"text"')                                              # 26
p('{"id":"deep","argv":' + "[" * 5000 + "]" * 5000 + "}")  # 27
p('{"id":"lone","argv":["\\ud800"]}')                    # 28
p('{"id":"trail","argv":["true"]} garbage')              # 29
p({"id": "nowhere", "argv": ["true"], "after": ["not-there"]})  # 30
p({"id": "selfish", "argv": ["true"], "after": ["selfish"]})    # 31
p({"id": "last", "argv": ["echo", "last"]})              # 32
X
ks run --tasks "$T/tasks"
is $rc 1 "a batch with bad lines: all answered, some not ok"
is "$(v last) $(js "$T/out" 'by["last"]["stdout"].strip()')" "ok last" "the task after the bad lines runs"
is "$(js "$T/out" '[r["stdout"] for r in L if r.get("id") == "first" and r["verdict"] == "ok"] == ["first\n"]')" yes \
    "a duplicate id does not run, and the first one is answered once"
is "$(js "$T/out" 'sum(r["verdict"] == "ok" for r in L)')" 2 "only the two good tasks ran"
is "$(js "$T/out" 'len(L)')" 32 "one result line for each line"
for n in 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29; do
	is "$(line $n 'r["verdict"]')" invalid "line $n: invalid, and its number said"
	is "$(line $n 'bool(r.get("error")) and "\n" not in r["error"]')" yes "line $n: one line says why"
done
like "$(line 4 'r["error"]')" 'argz' "an unknown key is named"
like "$(line 4 'r["error"]')" 'argv' "and the nearest known one"
like "$(line 10 'r["error"]')" '/limits/task/memory' "a looser limit: its pointer is named"
like "$(line 12 'r["error"]')" '/timeouts/hard_ms' "a looser timeout: its pointer is named"
like "$(line 9 'r["error"]')" 'argv' "NUL in argv: named"
like "$(line 5 'r["error"]')" 'first' "a duplicate id: named"
is_any "$(v nowhere)" "invalid skipped" "after a task that never was: does not run"
is_any "$(v selfish)" "invalid skipped" "after itself: does not run"

# An empty batch, blank lines, CRLF.
: >"$T/tasks"
ks run --tasks "$T/tasks"
is "$rc $(out)" "0 " "an empty batch: nothing to do, 0"
printf '{"id":"a","argv":["true"]}\r\n\n   \n{"id":"b","argv":["true"]}' >"$T/tasks"
ks run --tasks "$T/tasks"
is "$rc $(v a) $(v b) $(js "$T/out" 'len(L)')" "0 ok ok 2" "blank lines and CRLF are no tasks of their own"

# A line of 10 MB, and one of 10 MB that is a fine task.
"$PY" - >"$T/tasks" <<'X'
print('{"id":"huge","argv":["true"],"argz":"' + "x" * 10000000 + '"}')
print('{"id":"ok1","argv":["true"]}')
print("x" * 10000000)
print('{"id":"ok2","argv":["true"]}')
print('{"id":"bigin","argv":["wc","-c"],"stdin":"' + "y" * 6000000 + '"}')
print('{"id":"ok3","argv":["true"]}')
X
ks run --tasks "$T/tasks"
is "$rc" 1 "10 MB lines: the batch goes on"
is "$(v ok1) $(v ok2) $(v ok3)" "ok ok ok" "10 MB lines: their neighbours run"
is "$(line 1 'r["verdict"]')/$(line 3 'r["verdict"]')" "invalid/invalid" "10 MB lines: invalid"
at_most "$(js "$T/out" 'max(len(r.get("error") or "") for r in L)')" 1000 "10 MB lines: a short answer"
is_any "$(js "$T/out" 'by["bigin"].get("stdout", "").strip() or by["bigin"]["verdict"]')" "6000000 too-large invalid" \
    "6 MB of stdin: given whole, or refused by name"

# ---- a whole batch with a common fault is refused before it starts ----
printf '{"id":"a","argv":["true"]}\n' >"$T/tasks"
ks run --tasks "$T/tasks" --bind /nosuch/source
is $rc 125 "absent bind source: 125"
one_clear_line 'nosuch/source' "absent bind source"
ks run --tasks "$T/tasks" --set /limits/task/nofile=0x
is $rc 125 "a limit that is none: 125"
ks run --tasks "$T/tasks" --set /limits/task/pids=99999999999
is $rc 125 "a limit out of range: 125"
one_clear_line '/limits/task/pids' "a limit out of range"

# ---- verdicts, all of a line's fields ----
cat >"$T/tasks" <<'X'
{"id":"ok","argv":["sh","-c","echo out; sleep 0.05"]}
{"id":"exit","argv":["sh","-c","exit 3"]}
{"id":"signal","argv":["sh","-c","kill -KILL $$"]}
{"id":"timeout","argv":["sleep","30"],"timeouts":{"hard_ms":200}}
{"id":"soft","argv":["sleep","30"],"timeouts":{"task_ms":200}}
{"id":"softdeaf","argv":["sh","-c","trap '' TERM; sleep 30; sleep 30"],"timeouts":{"task_ms":200,"grace_ms":100}}
{"id":"cpu","argv":["sh","-c","while :; do :; done"],"limits":{"task":{"cpu_ms":200}}}
{"id":"nf","argv":["nosuch"]}
{"id":"ne","argv":["/usr"]}
{"id":"env","argv":["sh","-c","echo $A-$B"],"env":{"A":"1","B":"2 3"}}
X
slowly "$T/tasks"
ks run --tasks "$T/tasks" --workers 2
is $rc 1 "verdicts: 1"
is "$(js "$T/out" '" ".join(by[i]["verdict"] for i in "ok exit signal timeout soft softdeaf cpu nf ne".split())')" \
    "ok exit signal timeout soft-timeout soft-timeout cpu-timeout not-found not-executable" "each verdict by its name"
is "$(js "$T/out" '(by["ok"]["exit_code"], by["ok"]["signal"], by["exit"]["exit_code"], by["signal"]["signal"], by["signal"]["exit_code"])')" \
    "(0, None, 3, 9, None)" "exit codes and signals"
is "$(js "$T/out" 'by["env"]["stdout"].strip()')" "1-2 3" "env of a task"
is "$(js "$T/out" '50 <= by["ok"]["usage"]["wall_ms"] < 5000 * slow')" yes "wall_ms is the task's"
is "$(js "$T/out" '150 * slow <= by["timeout"]["usage"]["wall_ms"] < 1200 * slow')" yes "hard deadline: wall_ms"
is "$(js "$T/out" 'by["cpu"]["usage"]["cpu_ms"] >= 200 * slow')" yes "CPU limit: cpu_ms is not below it"
is "$(js "$T/out" 'all(r["error"] for r in L if r["verdict"] not in ("ok", "exit", "signal"))')" yes \
    "whatever is not the command's own end has a line that says why"
is "$(js "$T/out" 'all(r["policy"].startswith("sha256:") and len(r["policy"]) == 71 for r in L)')" yes "the policy's hash stands in every line"
is "$(js "$T/out" 'all(r["worker"] in ("w0", "w1") and r["attempt"] == 1 for r in L)')" yes "worker and attempt"
is "$(js "$T/out" 'sorted(by["ok"]["layers"]) != []')" yes "layers stand in the line"

# Queue timeout.
cat >"$T/tasks" <<'X'
{"id":"long","argv":["sleep","1"]}
{"id":"late","argv":["true"],"timeouts":{"queue_ms":200}}
X
ks run --tasks "$T/tasks" --workers 1
is "$(v long) $(v late)" "ok queue-timeout" "queue_ms"

# ---- after ----
cat >"$T/tasks" <<'X'
{"id":"c","argv":["sh","-c","sleep 0.3; echo made >f"],"keep":["f"]}
{"id":"d","after":["c"],"argv":["cat","f"],"files":{"f":{"from":"c/f"}}}
{"id":"bad","argv":["false"]}
{"id":"s1","after":["bad"],"argv":["true"]}
{"id":"s2","after":["s1"],"argv":["true"]}
{"id":"both","after":["c","bad"],"argv":["true"]}
{"id":"free","argv":["true"]}
X
ks run --tasks "$T/tasks" --workers 2
is "$(v c) $(v d) $(js "$T/out" 'by["d"]["stdout"].strip()')" "ok ok made" "after: runs when what it came after is ok"
is "$(v s1) $(v s2) $(v both) $(v free)" "skipped skipped skipped ok" "after a failed one: skipped, all the way down"
like "$(js "$T/out" 'by["s1"]["error"]')" bad "skipped: says after which"

# ---- cancel ----
cat >"$T/tasks" <<'X'
{"id":"run","argv":["sleep","30"]}
{"id":"wait","argv":["sleep","30"]}
{"id":"fine","argv":["true"]}
{"cancel":"wait"}
{"cancel":"run"}
{"cancel":"nobody"}
X
ks run --tasks "$T/tasks" --workers 1
is "$(v run) $(v wait) $(v fine)" "cancelled cancelled ok" "cancel: a running one, a waiting one"
at_most "$elapsed_ms" 10000 "cancel: at once"

# What lies in the lane of a busy worker has waited, and not run on it.
mkdir -m 777 "$T/mark"
"$PY" -c '
import sys
print("{\"id\":\"t0\",\"argv\":[\"sh\",\"-c\",\": >%s/up; exec sleep 30\"]}" % sys.argv[1])
for i in range(1, 8): print("{\"id\":\"t%d\",\"argv\":[\"sleep\",\"30\"]}" % i)' "$T/mark" >"$T/tasks"
"$KS" run --bind "$T/mark" --tasks "$T/tasks" --workers 1 --trace "$T/trace" >"$T/out" 2>"$T/err" &
pid=$!
wait_marker "$T/mark/up"
pause 700
kill -TERM $pid
wait $pid
is "$(js "$T/out" '[len(L), sum("worker" in r for r in L)]')" "[8, 1]" "stopped: one of eight had a worker"
is "$(js "$T/out" 'all(r["usage"]["wall_ms"] == 0 and r["usage"]["queue_ms"] >= 500 for r in L if "worker" not in r)')" yes \
    "what was never begun has waited all the time and run for none"
is "$(grep -c '"ph":"X"' "$T/trace")" 1 "and is no work of a worker in the trace"
rm -f "$T/trace"

# ---- what is said ----
printf '%s\n' '{"id":"a","argv":["true"]}' '{"id":"b","argv":["false"]}' >"$T/tasks"
ks run --tasks "$T/tasks" --log-json
is "$(js "$T/err" 'L[-1]["summary"]["answered"]') $(js "$T/err" 'sorted(L[-1]["summary"]["verdicts"].items())')" \
    "2 [('exit', 1), ('ok', 1)]" "--log-json: the summary is an object, too"
if command -v script >/dev/null; then
	"$PY" -c '
for i in range(30): print("{\"argv\":[\"sleep\",\"0.1\"]}")' >"$T/tasks"
	TERM=xterm script -qec "$KS run --workers 2 --tasks $T/tasks >/dev/null" /dev/null >"$T/tty" 2>&1
	is "$(tr '\r' '\n' <"$T/tty" | sed -nE 's/.* done, ([0-9]+) running, [0-9]+ waiting.*/\1/p' | sort -n | tail -n 1)" 2 \
	    "progress: what two workers do is two running"
	script -qec "$KS run --workers 2 --log-json --tasks $T/tasks >/dev/null" /dev/null >"$T/tty" 2>&1
	unlike "$(cat "$T/tty")" 'running' "--log-json: no line of progress on a terminal"
	rm -f "$T/tty"
else
	skip "no script(1) here" "progress on a terminal"
fi

# ---- order, fail-fast, workers ----
# (four that are long: who is launched late finds work too)
"$PY" -c '
import sys
for i in range(40): print("{\"id\":\"t%d\",\"argv\":[\"sleep\",\"%s\"]}" % (i, sys.argv[1] if i < 4 else "0.0%d" % ((40 - i) % 10)))' "$(scaled 3)" >"$T/tasks"
ks run --tasks "$T/tasks" --workers 4 --ordered
is "$rc $(js "$T/out" '[r["id"] for r in L] == ["t%d" % i for i in range(40)]')" "0 yes" "--ordered: results in the order of the tasks"
is "$(js "$T/out" 'sorted({r["worker"] for r in L})')" "['w0', 'w1', 'w2', 'w3']" "all four workers worked"
# All that is kept back waits for one that is ready only when no more is kept back.
"$PY" -c '
import sys
print("{\"id\":\"t0\",\"argv\":[\"sleep\",\"%s\"]}" % sys.argv[1])
print("{\"id\":\"t1\",\"after\":[\"t0\"],\"argv\":[\"true\"]}")
for i in range(2, 56): print("{\"id\":\"t%d\",\"argv\":[\"head\",\"-c\",\"1000000\",\"/dev/zero\"]}" % i)' "$(scaled 5)" >"$T/tasks"
ks run --tasks "$T/tasks" --workers 2 --ordered
is "$rc $(js "$T/out" '[r["id"] for r in L] == ["t%d" % i for i in range(56)]')" "0 yes" "--ordered: results that are kept back do not keep back what they wait for"
"$PY" -c '
print("{\"id\":\"bad\",\"argv\":[\"false\"]}")
for i in range(200): print("{\"id\":\"t%d\",\"argv\":[\"sleep\",\"0.2\"]}" % i)' >"$T/tasks"
ks run --tasks "$T/tasks" --workers 1 --fail-fast
is "$rc $(js "$T/out" 'by["bad"]["verdict"]')" "1 exit" "--fail-fast: 1"
is "$(js "$T/out" 'len(L) == len(by) and sum(r["verdict"] == "ok" for r in L) <= 2')" yes \
    "--fail-fast: no more is begun, what was accepted is answered once"
at_most "$elapsed_ms" 5000 "--fail-fast: ends soon"
like "$(err)" "stopped before the last line: $(wc -l <"$T/out" | tr -d ' ') were taken" "--fail-fast: it is said that lines were not read"
# No id: the line's number makes one.
printf '{"argv":["true"]}\n' >"$T/tasks"
ks run --tasks "$T/tasks"
is "$rc $(js "$T/out" 'L[0]["id"]')" "0 line-1" "a task without an id is named after its line"

# C038: a task that prints what looks like a result.
cat >"$T/tasks" <<'X'
{"id":"forger","argv":["sh","-c","echo '{\"id\":\"forger\",\"verdict\":\"ok\"}'; echo '{\"id\":\"x\",\"verdict\":\"ok\"}' >&2; exit 5"]}
X
ks run --tasks "$T/tasks"
is "$(js "$T/out" 'len(L)') $(v forger)" "1 exit" "exactly one record, from the supervisor (C038)"

# C149, C154: TMPDIR of a task, an id without a name.
cat >"$T/tasks" <<'X'
{"id":"tmp","argv":["sh","-c","echo $TMPDIR"],"env":{"TMPDIR":"/x"}}
{"id":"who","argv":["python3","-c","import os, time, locale; os.getcwd(); time.localtime(); print('fine')"]}
X
ks run --tasks "$T/tasks"
is "$(js "$T/out" 'by["tmp"]["stdout"].strip()')" /x "a task's own TMPDIR reaches it (C149)"
is "$(js "$T/out" 'by["who"]["stdout"].strip()')" fine "python under an id of no name (C154)"

# Descriptors and dead children do not add up over 1000 tasks (C084): not more of them are
# seen than in a run of two.
n=$((${KNIT_SCALE:-4000} / 4))
"$PY" -c '
import sys
for i in range(int(sys.argv[1])): print("{\"id\":\"t%d\",\"argv\":[\"true\"]}" % i)' $n >"$T/tasks"
sed 's/"true"/"sleep","0.5"/;2q' "$T/tasks" >"$T/two"
watch_opts="--samples $T/samples"
ks run --tasks "$T/two" --workers 2
few=$(js "$T/samples" 'max(s["fds"] for s in L)')
at_least "$few" 10 "a short run's descriptors were seen"
watch_opts="--samples $T/samples"
ks run --tasks "$T/tasks" --workers 2
is "$rc" 0 "$n short tasks"
is "$(js "$T/samples" 'max(s["zombies"] for s in L) <= 4')" yes "dead children do not add up (C084)"
at_most "$(js "$T/samples" 'max(s["fds"] for s in L)')" $((few + 32)) "nor descriptors (C084)"

left_after "batches"
done_testing
