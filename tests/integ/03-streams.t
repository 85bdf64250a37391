#!/bin/sh
# 03-streams.t: stdin, stdout, stderr, as they come, closed, broken, binary.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# ---- single command ----
head -c 3000000 /dev/urandom >"$T/random"
hash=$(sha256sum <"$T/random")
ks run --quiet -- sha256sum <"$T/random"
is "$rc $(out)" "0 $hash" "3 MB of random bytes through stdin: same hash"
ks run --quiet -- cat <"$T/random"
is "$rc $(sha256sum <"$T/out")" "0 $hash" "and through stdout, uncapped and unchanged"
ks run --quiet -- sh -c 'cat >&2' <"$T/random"
is "$rc $(sha256sum <"$T/err")" "0 $hash" "and through stderr"
"$KS" run --quiet -- cat <"$T/random" | sha256sum >"$T/piped"
is "$(cat "$T/piped")" "$hash" "and into a pipe"
cat "$T/random" | "$KS" run --quiet -- sha256sum >"$T/piped"
is "$(cat "$T/piped")" "$hash" "and from a pipe"
ks run --stdin "$T/random" -- sha256sum
is "$rc $(out)" "0 $hash" "--stdin FILE"
ks run --stdin - -- sha256sum <"$T/random"
is "$rc $(out)" "0 $hash" "--stdin -: the caller's"
ks run --set /limits/task/stdout=10 --report "$T/report" -- sh -c 'echo 0123456789abc'
is "$rc $(out)" "0 0123456789" "a limit that was asked for cuts a relayed stream"
like "$(err)" 'stdout was cut: 10 of 14 bytes' "and that is said"
is "$(js "$T/report" '(L[0]["stdout_bytes"], L[0]["stdout_truncated"], L[0]["stderr_truncated"])')" "(14, True, False)" "and stands in the report"
ks run --quiet -- sh -c 'echo out; echo err >&2'
is "$(out)/$(err)" "out/err" "the two outputs stay apart"
watched sh -c 'exec "$1" run -- touch /tmp/x </' sh "$KS"
is $rc 125 "a directory as standard input is refused"
one_clear_line 'standard input is a directory' "a directory as standard input"
ks run --stdin / -- touch /tmp/x
is $rc 125 "a directory as --stdin is refused"
one_clear_line '\-\-stdin: / is a directory' "a directory as --stdin"
ks run --quiet -- cat </dev/null
is "$rc $(out)" "0 " "end of input reaches the task"

# As they come: the first line is there while the task goes on.
mkfifo "$T/in"
"$KS" run --quiet -- sh -c 'echo first; read -r x; echo "got $x"' <"$T/in" >"$T/live" 2>&1 &
pid=$!
exec 7<>"$T/in"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
	[ -s "$T/live" ] && break
	pause 100
done
is "$(cat "$T/live")" first "output comes while the task is running"
echo word >&7
exec 7>&-
wait $pid
is "$(tail -n 1 "$T/live")" "got word" "input reaches the task while it is running"

# C102: a task that does not read, a reader that goes away, both outputs full.
ks run --quiet -- sh -c 'exit 5' <"$T/random"
is $rc 5 "stdin is not read by the task: its status is kept (C102)"
ks run --quiet -- sh -c 'exec 0<&-; sleep 0.2; exit 6' <"$T/random"
is $rc 6 "the task closes its stdin: its status is kept (C102)"
ks run --quiet -- sh -c 'head -c 2000000 /dev/zero >&2; head -c 2000000 /dev/zero; exit 3'
is "$rc $(wc -c <"$T/out") $(wc -c <"$T/err")" "3 2000000 2000000" "stderr before stdout, both over a pipe's size (C102)"
watch_opts="--limit 20"
watched sh -c '"$0" run --quiet -- yes | head -n 1' "$KS"
is "$(out)/$hung/$left" "y/0/0" "a reader that goes away ends a single command (EPIPE)"

# Closed descriptors (C141).
watched sh -c '"$0" run --quiet -- sh -c "cat; echo to-out; echo to-err >&2; exit 4" <&-' "$KS"
is "$rc $(out) $(err)" "4 to-out to-err" "stdin closed (C141)"
watched sh -c '"$0" run --quiet -- sh -c "echo to-err >&2; exit 4" >&-' "$KS"
is "$rc $(err)" "4 to-err" "stdout closed, and not used (C141)"
watched sh -c '"$0" run --quiet -- sh -c "echo to-out; exit 4" >&-' "$KS"
is "$rc/$left" "141/0" "stdout closed, and used: as if its reader had gone"
watched sh -c '"$0" run --quiet -- sh -c "echo to-out; exit 4" 2>&-' "$KS"
is "$rc $(out)" "4 to-out" "stderr closed (C141)"
watched sh -c '"$0" run --quiet -- sh -c "exit 4" <&- >&- 2>&-' "$KS"
is $rc 4 "all three closed (C141)"
watched sh -c '"$0" run --quiet -- sh -c "ls /proc/self/fd | wc -l" <&-' "$KS"
is "$(out)" 4 "with stdin closed no descriptor of ours slips into its place (C141)"

# An output that cannot be written is not passed over in silence.
watched sh -c '"$0" run --quiet -- echo hello >/dev/full' "$KS"
ok "stdout is a full disk: not status 0" test $rc -ne 0
like "$(err)" 'No space left' "stdout is a full disk: said"
ks run --report /dev/full -- true
is $rc 125 "the report cannot be written: 125"
one_clear_line '/dev/full' "the report cannot be written"
ks run --report /nosuch/dir/report -- true
is $rc 125 "no folder for the report: 125"

# --report - is the report on stdout... as one JSON line after the task's output.
ks run --report - -- sh -c 'exit 3'
is "$(js "$T/out" 'L[-1]["verdict"]')" exit "--report -: the report on stdout"

# Escapes reach a terminal only through us, and a pty is given where stdin is one.
if command -v script >/dev/null; then
	script -qec "$KS run --quiet -- sh -c 'test -t 0 && test -t 1 && echo is-a-tty'" /dev/null >"$T/tty" 2>&1
	like "$(cat "$T/tty")" 'is-a-tty' "a terminal as stdin: the task has a pty"
	script -qec "$KS run --quiet -- sh -c 'exit 3'" /dev/null >"$T/tty" 2>&1
	is $? 3 "its status comes through a terminal too"
	# The terminal is sent before the result, and the result is seen first by who comes late.
	if command -v strace >/dev/null && strace -o /dev/null -e trace=getppid true 2>/dev/null; then
		script -qec "strace -o $T/late -e trace=sendmsg -e inject=sendmsg:delay_exit=300000 $KS run --quiet -- echo whole" /dev/null >"$T/tty" 2>&1
		like "$(cat "$T/tty")" 'whole' "a supervisor that comes late loses nothing of a terminal"
		like "$(cat "$T/late")" 'DELAYED' "and it came late"
	else
		skip "no strace here" "a supervisor that comes late loses nothing of a terminal"
	fi
else
	skip "no script(1) here" "a terminal as stdin"
fi

# ---- batch ----
cat >"$T/tasks" <<'X'
{"id":"text","argv":["printf","a\\nb\\n"]}
{"id":"bin","argv":["printf","\\377\\000\\376ok"]}
{"id":"err","argv":["sh","-c","printf '\\302' >&2; echo out"]}
{"id":"utf","argv":["printf","\u00e4\u20ac\ud83d\ude00"]}
{"id":"in","argv":["cat"],"stdin":"\u00e4\n"}
{"id":"inb","argv":["od","-An","-tx1"],"stdin_b64":"/wD+"}
{"id":"none","argv":["cat"]}
{"id":"both","argv":["sh","-c","echo o; echo e >&2"]}
X
ks run --tasks "$T/tasks"
is $rc 0 "batch of streams: all ok"
is "$(js "$T/out" 'by["text"]["stdout"] == "a\nb\n"')" yes "text arrives as text"
is "$(js "$T/out" 'by["text"]["stdout_bytes"]')" 4 "stdout_bytes counts"
is "$(js "$T/out" 'raw(by["bin"]) == b"\xff\0\xfeok"')" yes "bytes that are not UTF-8 arrive as stdout_b64 (C104)"
is "$(js "$T/out" 'raw(by["err"], "stderr") == b"\xc2" and by["err"]["stdout"] == "out\n"')" yes "also those of stderr"
is "$(js "$T/out" 'by["utf"]["stdout"] == "\u00e4\u20ac\U0001f600"')" yes "UTF-8 arrives as text"
is "$(js "$T/out" 'by["in"]["stdout"] == "\u00e4\n"')" yes "stdin as text"
is "$(js "$T/out" 'by["inb"]["stdout"].split() == ["ff", "00", "fe"]')" yes "stdin_b64 as bytes"
is "$(js "$T/out" 'by["none"]["stdout"] == ""')" yes "no stdin: end of file"
is "$(js "$T/out" '(by["both"]["stdout"], by["both"]["stderr"]) == ("o\n", "e\n")')" yes "both outputs, apart"

# Caps: head and tail kept, the rest counted; a cut never makes bad JSON.
cat >"$T/tasks" <<'X'
{"id":"cut","argv":["sh","-c","echo HEAD; yes \u00e4\u20ac | head -c 3000000; echo; echo TAIL"],"limits":{"task":{"stdout":"10K"}}}
{"id":"under","argv":["sh","-c","head -c 10000 /dev/zero | tr '\\0' x"],"limits":{"task":{"stdout":"10K"}}}
{"id":"default","argv":["sh","-c","head -c 5000000 /dev/zero | tr '\\0' x"]}
{"id":"errcut","argv":["sh","-c","head -c 100000 /dev/zero | tr '\\0' x >&2; echo fine"],"limits":{"task":{"stderr":"1K"}}}
X
ks run --tasks "$T/tasks"
is $rc 0 "a task that is only noisy is ok"
is "$(js "$T/out" 'by["cut"]["stdout_truncated"]')" yes "over its cap: said"
is "$(js "$T/out" 'raw(by["cut"]).startswith(b"HEAD\n") and raw(by["cut"]).endswith(b"TAIL\n")')" yes "head and tail are kept"
is "$(js "$T/out" 'by["cut"]["stdout_bytes"]')" 3000011 "all bytes are counted"
is "$(js "$T/out" 'len(raw(by["cut"])) <= 11 * 1024')" yes "and not more than the cap kept"
is "$(js "$T/out" '(by["under"]["stdout_truncated"], len(raw(by["under"]))) == (False, 10000)')" yes "below its cap: whole"
is "$(js "$T/out" 'by["default"]["stdout_truncated"] and len(raw(by["default"])) <= (1 << 20) + 1024')" yes "the default cap is 1 MiB"
is "$(js "$T/out" 'by["errcut"]["stdout"] == "fine\n" and by["errcut"].get("stderr_truncated") is True')" yes "stderr has a cap of its own"

# C106: an endless flood costs the supervisor nothing.
cat >"$T/tasks" <<'X'
{"id":"flood","argv":["yes"],"timeouts":{"hard_ms":1500}}
X
slowly "$T/tasks"
ks run --tasks "$T/tasks"
is "$(js "$T/out" 'by["flood"]["verdict"]')" timeout "an endless flood meets its deadline"
is "$(js "$T/out" 'by["flood"]["stdout_truncated"]')" yes "its output was cut"
at_most "$maxrss_kb" 65536 "the supervisor's memory stayed small meanwhile (C106)"

# | head -n 1 on a batch of 10,000.
"$PY" -c '
for i in range(10000): print("{\"id\":\"t%d\",\"argv\":[\"echo\",\"%d\"]}" % (i, i))' >"$T/tasks"
watch_opts="--grace 2000 --limit 100"
watched sh -c '"$0" run --tasks "$1" --workers 2 | head -n 1' "$KS" "$T/tasks"
like "$(out)" '^\{.*"verdict":"ok".*\}$' "| head -n 1 on a batch of 10,000: one line"
is "$left" 0 "and nothing left after 2 s"
at_most "$elapsed_ms" 20000 "and it did not run the rest"
watched sh -c '"$0" run --tasks "$1" --workers 2 >/dev/full' "$KS" "$T/tasks"
is $rc 125 "results to a full disk: the batch cannot go on (125)"
like "$(err)" 'No space left' "results to a full disk: said"
"$PY" -c 'for i in range(4): print("{\"argv\":[\"sh\",\"-c\",\"head -c 900000 /dev/zero | tr \\\\0 x\"]}")' >"$T/few"
watched sh -c 'ulimit -f 5000; exec "$0" run --quiet --tasks "$1"' "$KS" "$T/few"
is $rc 125 "shared memory over the limit of file sizes: 125, no SIGXFSZ"
like "$(err)" '^hint: .*ulimit -f' "shared memory over the limit of file sizes: what to do"
watched sh -c 'ulimit -f 5000; exec "$0" run --quiet --set /payload/max=64K --set /payload/area=512K --tasks "$1" >"$2"' "$KS" "$T/few" "$T/results"
is $rc 125 "results over the limit of file sizes: 125, no SIGXFSZ"
case ${KNIT_LAUNCHER:-} in
oci | oci:runc) like "$(err)" '^hint: .*ulimit -f' "a runtime over the limit of file sizes: what to do" ;;
*) like "$(err)" 'write results.*File too large' "results over the limit of file sizes: said" ;;
esac
is "$left" 0 "results over the limit of file sizes: nothing left"

# From a pipe, tasks one by one, with results as they come.
mkfifo "$T/lines"
"$KS" run --tasks - <"$T/lines" >"$T/first" 2>"$T/err" &
pid=$!
exec 7<>"$T/lines"
echo '{"id":"one","argv":["true"]}' >&7
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
	[ -s "$T/first" ] && break
	pause 100
done
is "$(js "$T/first" 'by["one"]["verdict"]')" ok "--tasks -: the first result comes before the input ends"
printf '{"id":"two","argv":["true"]}' >&7
exec 7>&-
wait $pid
is "$? $(js "$T/first" 'by["two"]["verdict"]')" "0 ok" "a last line without its newline counts"
rm -f "$T/lines" "$T/in"

# By name, as scripts do: as root the pipes are root's, and the task is another user.
watched sh -c "echo in | \"$KS\" run -- sh -c 'echo out >/dev/stdout; echo more >>/proc/self/fd/1; echo err >/dev/stderr; cat /dev/stdin'"
is "$(out | tr '\n' ' ')" "out more in " "/dev/stdin and /dev/stdout can be opened"
like "$(err)" '^err$' "and /dev/stderr"

left_after "streams"
done_testing
