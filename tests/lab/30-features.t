#!/bin/sh
# tests/lab/30-features.t: what a kernel lacks is degraded or refused by its name, and
# what it has is used. The kernel is asked first, in C's own way.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# call NR ARGS...: what the kernel answers, -errno for an error
call() {
	"$PY" -S -c 'import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
r = libc.syscall(*(ctypes.c_ulong(int(a)) for a in sys.argv[1:]))
print(r if r >= 0 else -ctypes.get_errno())' "$@"
}
layer() {
	js "$T/report" "L[0]['layers']['$1']"
}
run() {
	rm -f "$T/report"
	ks run --report "$T/report" "$@"
}
mseal=$(call 462 1 1 0)       # EINVAL where it is
landlock=$(call 444 0 0 1)    # its version
diag "$(uname -r): mseal says $mseal, Landlock has version $landlock"

run -- true
if [ "$mseal" = -38 ]; then
	is "$rc $(layer mseal)" "0 degraded" "no mseal: degraded"
	like "$(err)" 'something weaker stands in:.*mseal' "no mseal: said by name"
	run --set '/require=["mseal"]' -- echo it runs
	is "$rc $(out)" "125 " "no mseal, and required: refused"
	one_clear_line 'layer mseal: required' "no mseal, and required"
else
	is "$rc $(layer mseal)" "0 enforced" "mseal: enforced"
	unlike "$(err)" mseal "mseal: no word of it"
	run --set '/require=["mseal"]' -- echo it runs
	is "$rc $(out)" "0 it runs" "mseal, and required: it runs"
fi

run -- true
if [ "$landlock" -gt 0 ]; then
	is "$(layer landlock)" enforced "Landlock: enforced, with a network of the task's own"
else
	is "$(layer landlock)" degraded "no Landlock: degraded"
	like "$(err)" 'something weaker stands in:.*landlock' "no Landlock: said by name"
fi

# The machine's network has abstract sockets; only scopes keep a task from them whose
# policy lets it make such sockets, as the preset python does.
name=knit-test-$$
"$PY" -S -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind("\0" + sys.argv[1]); s.listen()
print("up", flush=True); time.sleep(9999)' "$name" >"$T/up" &
listener=$!
i=0
while [ ! -s "$T/up" ] && [ $i -lt 100 ]; do
	pause 20
	i=$((i + 1))
done
connect="import socket
s = socket.socket(socket.AF_UNIX)
try: s.connect('\\0$name'); print('connected')
except OSError: print('refused')"
is "$("$PY" -c "$connect")" connected "an abstract socket of the machine is there"
run --policy python --network host -- python3 -c "$connect"
if [ "$landlock" -ge 6 ]; then
	is "$rc $(out)" "0 refused" "scopes: out of reach, also with the machine's network"
	is "$(layer landlock)" enforced "scopes: Landlock is enforced"
else
	is "$rc $(layer landlock)" "0 degraded" "no scopes: Landlock is degraded with the machine's network"
	like "$(err)" 'something weaker stands in:.*landlock' "no scopes: said by name"
	run --policy python --network host --set '/require=["landlock"]' -- echo it runs
	is "$rc $(out)" "125 " "no scopes, and required: refused"
	one_clear_line 'layer landlock: required' "no scopes, and required"
fi
run --policy python -- python3 -c "$connect"
is "$rc $(out)" "0 refused" "a network of its own has none of the machine's sockets"
kill $listener
wait $listener 2>/dev/null

# ---- a file that the kernel does not splice (before Linux 6.5 many do not) is copied ----
env -i KNIT_MARK=$name sleep 9999 &
other=$!
i=0
until grep -qs "^KNIT_MARK=" "/proc/$other/environ" || [ $i -ge 100 ]; do
	pause 20
	i=$((i + 1))
done
diag "sendfile from such a file: $("$PY" -S -c 'import os, sys
try: print(os.sendfile(os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY), os.open(sys.argv[1], os.O_RDONLY), 0, 99))
except OSError as e: print(e)' "/proc/$other/environ" "$T/copy")"
printf '{"id":"f","argv":["cat","f"],"files":{"f":{"path":"/proc/%s/environ"}}}\n' $other >"$T/tasks"
ks run --set "/filesystem/task_paths=[\"/proc/$other\"]" --tasks "$T/tasks"
is "$rc $(js "$T/out" 'L[0]["stdout"].strip("\0")')" "0 KNIT_MARK=$name" "a file that sendfile may refuse reaches the task whole"
kill $other
wait $other 2>/dev/null

rm -f "$T/report"
left_after "features"
done_testing
