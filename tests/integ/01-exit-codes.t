#!/bin/sh
# 01-exit-codes.t: the exit status of a single command, and its verdict.
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

single 124 timeout "--timeout" --timeout "$(scaled 500)ms" -- sleep "$(scaled 60)"
at_most "$elapsed_ms" 20000 "--timeout 500ms: all over long before the command would be"
single 124 cpu-timeout "--cpu-time" --cpu-time "$(scaled 300)ms" --timeout "$(scaled 60)s" -- sh -c 'while :; do :; done'
single 124 timeout "a sleeper meets the wall clock, not the CPU limit (C075)" \
    --cpu-time "$(scaled 2)s" --timeout "$(scaled 300)ms" -- sleep "$(scaled 9)"
single 124 soft-timeout "task_ms" --set "/timeouts/task_ms=$(scaled 200)" -- sleep "$(scaled 9)"

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
	ks run --report "$T/report" --ro-bind "$T" -- "$T/$f"
	is_any $rc "126 127" "cannot be started (C086): $f: status"
	is_any "$(verdict)" "not-executable not-found" "cannot be started (C086): $f: verdict"
	like "$(err)" "$f" "cannot be started (C086): $f: named"
	rm -f "$T/report"
done
ks run --ro-bind "$T" -- "$T/nox"
is $rc 126 "a file without the x bit: 126"

# C083: an orphan's status is not the task's.
single 7 exit "an orphan's status is not taken for the task's (C083)" -- \
    sh -c '(sleep 0.1; exit 9) & exit 7'

# --dry-run shows the command and starts nothing.
ks run --dry-run --bind "$T" -- touch "$T/made"
is $rc 0 "--dry-run: 0"
case ${KNIT_LAUNCHER:-bwrap} in oci:*) command=${KNIT_LAUNCHER#oci:} ;; direct) command=/proc/self/fd/ ;; *) command=bwrap ;; esac
like "$(out)" "$command" "--dry-run: the launch command"
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
