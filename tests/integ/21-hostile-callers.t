#!/bin/sh
# 21-hostile-callers.t: what the program is started with that nobody would choose.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# ---- files that may not grow ----
for n in 0 8 20000; do
	got=$( (ulimit -f $n && "$KS_REAL" run -- true; echo "status $?") 2>&1 | cat)
	like "$got" 'File too large' "ulimit -f $n: the line says so"
	like "$got" 'status 125$' "ulimit -f $n: an error of ours and no signal"
done
watched sh -c "cd \"$T/home\" && ulimit -f 400000 && exec \"$KS\" run --report r -- sh -c 'echo hi'"
is "$rc $(out)" "0 hi" "a limit with room enough is none"
rm -f "$T/home/r"

# ---- output that is no text ----
cat >"$T/tasks" <<'X'
{"id":"zeros","argv":["head","-c","900000","/dev/zero"]}
{"id":"some","argv":["printf","a\\000b\\033[1mc\\n"]}
{"id":"text","argv":["sh","-c","seq 1000; printf '\\t\\r\\n'"]}
X
ks run --tasks "$T/tasks"
is "$(js "$T/out" '"stdout" not in by["zeros"] and raw(by["zeros"]) == bytes(900000)')" yes "zeros come as bytes, all of them"
is "$(js "$T/out" 'by["some"]["stdout"] == "a\0b\x1b[1mc\n"')" yes "a few control characters are text"
is "$(js "$T/out" 'by["text"]["stdout"].endswith("1000\n\t\r\n")')" yes "and so is what lines are made of"
at_most "$(wc -c <"$T/out")" 1300000 "a megabyte of zeros is not six of text"

# ---- everything about a start that can be odd ----
watched sh -c "exec \"$KS\" run -- sh -c 'echo hi' <&- >&- 2>&-"
is $rc 0 "0, 1 and 2 are closed"
watched env -i "$KS" run -- sh -c 'echo hi'
is "$rc $(out)" "0 hi" "no environment at all"
mkdir "$T/gone"
watched sh -c "cd \"$T/gone\" && rmdir \"$T/gone\" && exec \"$KS\" run -- sh -c 'echo hi'"
is "$rc $(out)" "0 hi" "the working directory is gone"
watched "$PY" -c '
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execv(sys.argv[1], [sys.argv[1], "run", "--", "sh", "-c", "grep -E ^Sig[BI] /proc/self/status; exit 7"])' "$KS"
is $rc 7 "SIGCHLD ignored and all signals blocked"
is "$(out | awk '{print $2}' | sort -u)" 0000000000000000 "none of that reaches the task"

# ---- ids and names that are paths ----
cat >"$T/tasks" <<'X'
{"id":"../up","argv":["sh","-c","mkdir d; echo up >d/k"],"keep":["d/k"]}
{"id":"/abs","argv":["sh","-c","mkdir d; echo abs >d/k"],"keep":["d/k"]}
{"id":"..","argv":["sh","-c","mkdir d; echo dots >d/k"],"keep":["d/k"]}
{"id":"u1","after":["../up"],"argv":["cat","f"],"files":{"f":{"from":"../up/d/k"}}}
{"id":"u2","after":["/abs"],"argv":["cat","f"],"files":{"f":{"from":"/abs/d/k"}}}
{"id":"u3","after":[".."],"argv":["cat","f"],"files":{"f":{"from":"../d/k"}}}
{"id":"u4","after":[".."],"argv":["cat","f"],"files":{"f":{"from":"../../../etc/passwd"}}}
X
mkdir "$T/tmp/k"
ks run --tasks "$T/tasks" --keep "$T/tmp/k"
is "$(js "$T/out" '" ".join(by[i]["stdout"].strip() for i in ("u1", "u2", "u3"))')" "up abs dots" "ids that look like paths are names"
is "$(js "$T/out" 'by["u4"]["verdict"]')" invalid "and lead nowhere"
is "$(find "$T/tmp" -name k -type f | sed "s|^$T/tmp/k/||" | grep -c '^%\|^\.\.%\|^[^/]*/d/k$')" 3 "all below the folder of kept files"
is "$(find "$T" -path "$T/tmp/k" -prune -o -name k -type f -print)" "" "and none beside it"
rm -rf "$T/tmp/k"

left_after "hostile callers"
done_testing
