#!/bin/sh
# 40-refused.t: calls that are refused stand in the result, with what would allow them;
# who makes them without end slows itself only.
. "$(dirname "$0")/../lib/tap.sh"
left_before

ref() { # FILE EXPR over r (the refused list of the one line)
	js "$1" "(lambda r: $2)(L[0].get('refused', []))"
}
SYS='import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def sc(*a):
    r = libc.syscall(*a)
    return ctypes.get_errno() if r < 0 else 0
'
case $(uname -m) in
x86_64) mount=165 umount2=166 pivot_root=155 keyctl=250 io_setup=206 seccomp=317 ptrace=101 ;;
*) mount=40 umount2=39 pivot_root=41 keyctl=219 io_setup=0 seccomp=277 ptrace=117 ;;
esac
key=keyctl key_n=$keyctl
own=io_setup own_n=$io_setup own_errno=ENOSYS own_no=38 own_group=@aio
if [ -n "$around" ]; then # calls that it does let through, since we make sandboxes there
	key=umount2 key_n=$umount2
	own=pivot_root own_n=$pivot_root own_errno=EPERM own_no=1 own_group='always refused'
fi

# ---- one command ----
ks run --report "$T/report" -- python3 -c "${SYS}
import socket
for f in 2, 2, 10:
    try: socket.socket(f, 1)
    except OSError as e: print(e.errno)
print(sc($mount, 0, 0, 0, 0, 0), sc($own_n, 1, 0))"
is "$(out | tr '\n' ' ')" "97 97 97 1 $own_no " "a call gets the error number that the policy says"
is "$(ref "$T/report" '[(x["call"], x["count"], x["errno"]) for x in r]')" \
	"[('socket', 2, 'EAFNOSUPPORT'), ('socket', 1, 'EAFNOSUPPORT'), ('mount', 1, 'EPERM'), ('$own', 1, '$own_errno')]" \
	"by name, number of times and answer"
is "$(ref "$T/report" '(r[0]["args"][0], r[1]["args"][0], r[3]["args"][:2])')" "(2, 10, [1, 0])" "with the arguments"
like "$(ref "$T/report" 'r[0]["by"]')" 'Without a network' "what refused it"
like "$(ref "$T/report" 'r[3]["by"]')" "$own_group" "and which group would have it"
# The line that would allow it does, and no other.
ref "$T/report" 'r[0]["allow"]' >"$T/rule"
printf '{"version":1,"seccomp":{"rules":[%s]}}' "$(cat "$T/rule")" >"$T/more.json"
ks run --policy "$T/more.json" --report "$T/report" -- python3 -c '
import socket
socket.socket(2, 1)
try: socket.socket(10, 1)
except OSError as e: print(e.errno)'
is "$rc $(out)" "0 97" "pasted into a policy the rule allows that call"
is "$(ref "$T/report" '[(x["call"], x["args"][0]) for x in r]')" "[('socket', 10)]" "and its neighbour is still refused"

# A rule that allows a group has its calls in mind, not what is always refused of them.
printf '{"version":1,"seccomp":{"rules":[{"names":["@file-system"],"action":"SCMP_ACT_ALLOW"}]}}' >"$T/group.json"
ks run --policy "$T/group.json" --report "$T/report" -- python3 -c '
import os
open("f", "w").close()
os.chmod("f", 0o755)
try: os.chmod("f", 0o4755)
except OSError as e: print(e.errno)'
is "$rc $(out)" "0 1" "a group that is allowed makes no file set-user-id"
like "$(ref "$T/report" 'r[0]["by"]')" '^always refused, unless a rule names it: A set-user-id' "and it is told why"
ks policy explain --policy "$T/group.json" --call fchmodat 3 0 04755
like "$(out)" '^fchmodat: refused' "policy explain says so"
printf '{"version":1,"extends":"./group.json","seccomp":{"rules":[{"names":["chmod","fchmodat"],"action":"SCMP_ACT_ALLOW"}]}}' >"$T/named.json"
ks run --policy "$T/named.json" -- python3 -c 'import os; open("f", "w").close(); os.chmod("f", 0o4755); print(oct(os.stat("f").st_mode))'
is "$rc $(out)" "0 0o104755" "a call that is named itself does"

ks run --set /seccomp/explain=false --report "$T/report" -- python3 -c "${SYS}print(sc($mount, 0, 0, 0, 0, 0))"
is "$(out) $(js "$T/report" '"refused" in L[0]')" "1 no" "explain: false refuses alike and tells nothing"
ks run --set /seccomp/explain=1 -- true
is $rc 125 "explain is true or false"
one_clear_line '/seccomp/explain' "explain is true or false"
ks run --report "$T/report" -- sh -c 'ls / >/dev/null; echo hi | cat'
is "$rc $(js "$T/report" '"refused" in L[0]')" "0 no" "what refuses nothing reports nothing"
ks run --report "$T/report" -- python3 -c "${SYS}
import struct
# allow all, with a listener of one's own
ins = struct.pack('HBBI', 6, 0, 0, 0x7fff0000)
buf = ctypes.create_string_buffer(ins)
prog = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 1, ctypes.addressof(buf)))
print(sc($seccomp, 1, 8, prog), sc($seccomp, 1, 0, prog))"
is "$(out)" "16 0" "a task's own filter may stand beside ours, a second listener may not"

# A call that kills is known to the kernel only: those that it can have been are named.
ks run --report "$T/report" --set '/seccomp/rules=[{"names":["ptrace","bpf"],"action":"SCMP_ACT_KILL_PROCESS"}]' -- \
	python3 -c "${SYS}sc($key_n, 0, 0, 0, 0, 0); sc($ptrace, 0, 0, 0, 0)"
is "$(verdict) $(ref "$T/report" '[x["call"] for x in r]')" "denied ['$key']" "what was refused before a kill is told"
like "$(js "$T/report" 'L[0]["error"]')" 'ptrace, bpf' "and what can have killed"

# ---- many tasks ----
L="${SYS}
n = int(sys.argv[1])
if n % 3 == 0: sc($mount, 0, 0, 0, 0, 0)
if n % 3 == 1: sc($key_n, n, 0, 0, 0, 0)
"
printf '%s' "$L" >"$T/some.py"
for i in $(seq 0 29); do echo "{\"id\":\"t$i\",\"argv\":[\"python3\",\"-S\",\"/some.py\",\"$i\"]}"; done >"$T/tasks"
ks run --workers 2 --ro-bind "$T/some.py:/some.py" --tasks "$T/tasks"
is "$(js "$T/out" 'sum([[x["call"] for x in l.get("refused", [])] == [["mount"], ["'$key'"], []][int(l["id"][1:]) % 3] for l in L])')" \
	30 "each task has its own calls, and none of another's"
is "$(js "$T/out" 'all(l["refused"][0]["args"][0] == int(l["id"][1:]) for l in L if int(l["id"][1:]) % 3 == 1)')" yes "with its own arguments"

# A task that leaves a process behind, which goes on asking; the next one in that worker.
cat >"$T/tasks" <<X
{"id":"a","argv":["python3","-S","/left.py"]}
{"id":"b","argv":["python3","-S","-c","print(6*7)"]}
{"id":"c","argv":["true"]}
X
printf '%s' "${SYS}
r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    sc($key_n, 3, 0, 0, 0, 0)
    os.write(w, b'x')
    while True: sc($key_n, 3, 0, 0, 0, 0)
os.read(r, 1)
" >"$T/left.py"
ks run --workers 1 --ro-bind "$T/left.py:/left.py" --tasks "$T/tasks"
is "$(js "$T/out" '[(l["verdict"], [x["call"] for x in l.get("refused", [])]) for l in L]')" \
	"[('ok', ['$key']), ('ok', []), ('ok', [])]" "what a task left is not charged to the next"

# ---- without end ----
printf '%s' "${SYS}
for i in range(40): sc($key_n, i, 0, 0, 0, 0)
while True: sc($key_n, 1, 0, 0, 0, 0)
" >"$T/spam.py"
{
	echo '{"id":"spam","argv":["python3","-S","/spam.py"],"timeouts":{"hard_ms":6000}}'
	for i in $(seq 40); do echo "{\"id\":\"i$i\",\"argv\":[\"sh\",\"-c\",\"echo \$((6*7))\"]}"; done
} >"$T/tasks"
slowly "$T/tasks"
ks run --workers 2 --ro-bind "$T/spam.py:/spam.py" --tasks "$T/tasks"
if [ -z "$around" ]; then
	is "$(js "$T/out" 'by["spam"]["verdict"], len(by["spam"]["refused"]), by["spam"]["refused_more"] > 0')" \
		"('timeout', 16, True)" "16 kinds of refused calls are listed, the rest is counted"
	# (answered: as fast as the rests allow, some thousands a second at most)
	at_most "$(js "$T/out" 'by["spam"]["refused_more"] // slow')" 100000 "it was slowed down"
else
	not_here "a call of many kinds that a filter around us lets through"
fi
is "$(js "$T/out" 'sum(l.get("stdout") == "42\n" for l in L)')" 40 "and the innocent beside it were served"
is "$(js "$T/out" 'L[-1]["id"]')" spam "all of them before its time was over"

# ---- the supervisor is killed while a call waits for it ----
cat >"$T/killed.sh" <<X
"$KS_REAL" run --bind "$T:/t" -- python3 -S -c '${SYS}
open("/t/go", "w").close()
while not os.path.exists("/t/stopped"): time.sleep(0.01)
sc($mount, 0, 0, 0, 0, 0)
open("/t/answered", "w").close()
time.sleep(60)' &
echo "\$!-\$(cut -d' ' -f22 /proc/\$!/stat)" >>$T/pids
i=0
while [ ! -e $T/go ] && [ \$i -lt 400 ]; do sleep 0.05; i=\$((i + 1)); done
kill -STOP \$!
touch $T/stopped
sleep 0.3
[ -e $T/answered ] && echo answered
kill -9 \$!
wait \$! 2>/dev/null
exit 0
X
chmod 777 "$T" 2>/dev/null
watched sh "$T/killed.sh"
is "$rc$(out)" 0 "while the supervisor is stopped the call waits"
is "$left" 0 "and when it is killed nothing stays"
chmod 755 "$T"
ks run -- true # sweeps the groups that the killed one left

# ---- modules ----
M=$B/tests/module/refused.so
if [ -e "$M" ]; then
	{
		echo '{"id":"a","call":"nothing"}'
		echo '{"id":"b","call":"internet"}'
		echo '{"id":"c","call":"nothing"}'
	} >"$T/tasks"
	ks run --workers 1 --module "$M" --tasks "$T/tasks"
	is "$(js "$T/out" '[(l["id"], l["value"], [x["call"] for x in l.get("refused", [])]) for l in L]')" \
		"[('a', None, []), ('b', -97, ['socket']), ('c', None, [])]" "a module's refused call stands with the call that ran"
	[ -n "$around" ] || like "$(err)" 'w0: outside of a call, refused: keyctl\(17, ' "what it did as it was loaded, with its worker"
fi

left_after "refused calls"
done_testing
