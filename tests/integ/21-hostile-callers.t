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
watched sh -c "exec \"$KS\" run -- sh -c 'exit 0' <&- >&- 2>&-"
is $rc 0 "0, 1 and 2 are closed"
watched sh -c "exec \"$KS\" run -- sh -c 'echo hi' <&- >&- 2>&-"
is $rc 141 "output that has no place to go is not taken for delivered"
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

# Of two ids that fit, the longer is meant.
cat >"$T/tasks" <<'X'
{"id":"p/1","argv":["sh","-c","echo long >f"],"keep":["f"]}
{"id":"p","argv":["sh","-c","echo short >f"],"keep":["f"]}
{"id":"use","after":["p","p/1"],"argv":["cat","x","y"],"files":{"x":{"from":"p/1/f"},"y":{"from":"p/f"}}}
X
ks run --tasks "$T/tasks"
is "$(js "$T/out" 'by["use"]["stdout"].split()')" "['long', 'short']" "from: an id that another begins with"

# ---- results that would be written over what is read ----
printf '{"id":"a","argv":["true"]}\n' >"$T/lines"
cp "$T/lines" "$T/same"
ln -s lines "$T/link"
spared() { # NAME ARGS...
	name=$1
	shift
	ks run "$@"
	is "$rc $(cmp "$T/lines" "$T/same" 2>&1)" "125 " "$name: refused, and the file is whole"
	like "$(err)" 'is the file of' "$name: says of what else it is the file"
}
spared "--report on the tasks" --tasks "$T/lines" --report "$T/link"
spared "--trace on the tasks" --tasks "$T/link" --trace "$T/lines"
spared "--report on standard input's file" --stdin "$T/lines" --report "$T/lines" -- cat
spared "--report and --trace in one file" --report "$T/new" --trace "$T/new" -- true
watched sh -c "exec \"$KS\" run --tasks - --report \"$T/lines\" <\"$T/lines\""
is "$rc $(cmp "$T/lines" "$T/same" 2>&1)" "125 " "tasks on standard input: the same"
printf '{"version":1}' >"$T/p.json"
ks run --policy "$T/p.json" --report "$T/p.json" -- true
is "$rc $(cat "$T/p.json")" '125 {"version":1}' "--report on a policy: refused"
printf '%04000d' 0 >"$T/old"
ks run --report "$T/old" -- true
is "$rc $(js "$T/old" 'L[0]["verdict"]')" "0 ok" "an old report is replaced, all of it"
rm -f "$T/lines" "$T/same" "$T/link" "$T/new" "$T/p.json" "$T/old"

# ---- rights that are not the caller's ----
if [ $root ] && command -v setpriv >/dev/null; then
	cp "$KS_REAL" "$T/lent"
	chmod 4755 "$T/lent"
	if setpriv --reuid 65534 --clear-groups "$T/lent" version >"$T/out" 2>"$T/err"; then
		case ,$(findmnt -nT "$T" -o OPTIONS), in
		*,nosuid,*) not_here "set-user-id has no effect below TMPDIR" ;;
		*) fail "a set-user-id program lends root's rights" ;;
		esac
	else
		like "$(err)" 'set-user-id' "set-user-id: it refuses to run for another user"
	fi
	watched "$T/lent" run -- echo fine
	is "$rc $(out)" "0 fine" "for its owner it is what it was"
	rm -f "$T/lent"
else
	not_here "making a set-user-id program of root's takes root"
fi

# ---- no more processes ----
if [ ! $root ] && command -v prlimit >/dev/null; then
	prlimit --nproc=1 "$KS_REAL" run --quiet -- true >"$T/out" 2>"$T/err"
	is $? 125 "no process left for this user: an error of ours"
	like "$(err)" 'ulimit -u' "and what to look at"
fi

left_after "hostile callers"
done_testing
