#!/bin/sh
# 01-exit-codes.t: the exit status of a single command, its verdict, and usage errors.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# single WANT-RC WANT-VERDICT NAME ARGS...
single() {
	want_rc=$1 want_verdict=$2 name=$3
	shift 3
	rm -f "$T/report"
	ks run --report "$T/report" "$@"
	is $rc "$want_rc" "$name: status $want_rc"
	is "$(verdict)" "$want_verdict" "$name: verdict $want_verdict"
	is "$left" 0 "$name: no process left"
	rm -f "$T/report"
}

single 0 ok "print(6*7)" -- python3 -c 'print(6*7)'
is "$(out)" 42 "print(6*7): prints 42"
single 3 exit "exit 3" -- sh -c 'exit 3'
single 127 not-found "no such command" -- nosuch
like "$(err)" 'nosuch' "no such command: named"
like "$(err)" '^hint: .*--ro-bind' "no such command: what shows a file inside"
single 127 not-found "no such file" -- /nosuch/at/all
single 126 not-executable "a folder as command" -- /usr/share
single 134 signal "os.abort() (C085)" -- python3 -c 'import os;os.abort()'
single 143 signal "a task's own TERM ends it (C085)" -- sh -c 'kill -TERM $$; echo no'
is "$(out)" "" "a task's own TERM: nothing printed afterwards"
single 139 signal "segmentation fault" -- sh -c 'kill -SEGV $$'

single 124 timeout "--timeout" --timeout 500ms -- sleep 9
at_most "$elapsed_ms" 1000 "--timeout 500ms: all over in a second"
single 124 cpu-timeout "--cpu-time" --cpu-time 300ms --timeout 60s -- sh -c 'while :; do :; done'
single 124 timeout "a sleeper meets the wall clock, not the CPU limit (C075)" \
    --cpu-time 2s --timeout 300ms -- sleep 9
single 124 soft-timeout "task_ms" --set /timeouts/task_ms=200 -- sleep 9

if cgroup_granted; then
	single 137 memory "--memory" --memory 64M -- python3 -c 'x=bytearray(1<<30)'
else
	rm -f "$T/report"
	ks run --memory 64M -- python3 -c 'x=bytearray(1<<30)'
	is $rc 125 "--memory without a cgroup: refused"
	one_clear_line 'cgroup\.memory' "--memory without a cgroup"
fi

# The numbers that are ours when they are ours may also be the command's own.
for n in 1 124 125 126 127 137 143 255; do
	single $n exit "a command's own exit $n" -- sh -c "exit $n"
done

# C086: what cannot be started is told apart from what started and failed.
printf '#!/nosuch/interpreter\n' >"$T/noint"
printf '#!/bin/sh\r\necho hi\r\n' >"$T/crlf"
printf 'plain text, no program\n' >"$T/text"
printf '\177ELF\002\001\001\000garbage' >"$T/elf"
printf '#!/bin/sh\n' >"$T/nox"
chmod 755 "$T/noint" "$T/crlf" "$T/text" "$T/elf"
chmod 644 "$T/nox"
for f in noint crlf text elf nox; do
	ks run --report "$T/report" --ro-bind "$T:/t" -- "/t/$f"
	is_any $rc "126 127" "cannot be started (C086): $f: status"
	is_any "$(verdict)" "not-executable not-found" "cannot be started (C086): $f: verdict"
	like "$(err)" "$f" "cannot be started (C086): $f: named"
	rm -f "$T/report"
done
ks run --ro-bind "$T:/t" -- /t/nox
is $rc 126 "a file without the x bit: 126"

# C083: an orphan's status is not the task's.
single 7 exit "an orphan's status is not taken for the task's (C083)" -- \
    sh -c '(sleep 0.1; exit 9) & exit 7'

# ---- usage: 125 and one clear line ----
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

# --dry-run shows the command and starts nothing.
ks run --dry-run --bind "$T:/t" -- touch /t/made
is $rc 0 "--dry-run: 0"
like "$(out)" 'bwrap' "--dry-run: the launch command"
like "$(out)" '"version"' "--dry-run: the effective policy"
ok "--dry-run: nothing was run" test ! -e "$T/made"

# C107: arguments pass exactly, or the start is refused; argv[0] is never missing.
ks run -- printf '%s|' "" "a b" "tab	tab" "line
line" '$HOME' '*' '\'
is "$(out)" "|a b|tab	tab|line
line|\$HOME|*|\\|" "arguments pass exactly (C107)"
long=$("$PY" -c 'print("x" * 100000)')
ks run -- sh -c 'echo ${#1}' sh "$long"
is "$(out)" 100000 "an argument of 100,000 bytes (C107)"
"$PY" -c 'print("x" * 140000)' >"$T/arg"
# (the shell itself could not exec this one)
cat >"$T/line" <<X
{"id":"a","argv":["true","$(cat "$T/arg")"]}
X
ks run --tasks "$T/line"
is_any "$(js "$T/out" 'L[0]["verdict"]')" "not-executable invalid launch-failed" \
    "an argument longer than the kernel takes: a start error (C107)"

left_after "all single commands"
done_testing
