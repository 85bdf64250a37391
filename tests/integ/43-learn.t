#!/bin/sh
# 43-learn.t: policy learn: what a command calls becomes a policy that runs it and no more.
. "$(dirname "$0")/../lib/tap.sh"
left_before

# A base that allows next to nothing.
cat >"$T/base.json" <<X
{"version":1,"extends":"default","seccomp":{"groups":{"replace":["@execve"]}}}
X
ks run --policy "$T/base.json" -- sh -c 'echo hi | cat'
unlike "$rc$(out)" "0hi" "the base does not run the command"
ks policy learn --policy "$T/base.json" --out "$T/learnt.json" -- sh -c 'echo hi | cat'
is "$rc $(out)" "0 hi" "learning runs it"
like "$(err)" 'learned [0-9]+ kinds of calls, [0-9]+ of them seen once' "and says how much it saw"
ks policy check "$T/learnt.json"
is $rc 0 "what it wrote is a policy"
is "$(js "$T/learnt.json" '(L[0]["extends"] == "'"$T/base.json"'", sorted(L[0]["seccomp"]))')" "(True, ['rules'])" \
	"that extends the base by rules"
ks run --policy "$T/learnt.json" -- sh -c 'echo hi | cat'
is "$rc $(out)" "0 hi" "which runs the command"
ks run --policy "$T/learnt.json" --report "$T/report" -- sh -c 'umask 077; mkdir /tmp/x && echo made'
unlike "$(out)" made "and refuses a call that it does not list"
like "$(js "$T/report" '[x["call"] for x in L[0]["refused"]]')" 'umask' "by name"
once=$(js "$T/learnt.json" '[r for r in L[0]["seccomp"]["rules"] if r["why"] == "Learned; seen once."]')
like "$once" "names" "what was seen once is marked"

# What something in the base refuses is not learned, but said.
cat >"$T/calls.py" <<'X'
import ctypes, socket, sys
c = ctypes.CDLL(None, use_errno=True)
def sc(*a): return ctypes.get_errno() if c.syscall(*a) < 0 else 0
mount, keyctl = (165, 250) if sys.argv[1] == "x86_64" else (40, 219)
print(sc(mount, 0, 0, 0, 0, 0), sc(keyctl, 17, 0, 0, 0, 0))
try: socket.socket(2, 1)
except OSError as e: print(e.errno)
X
cat >"$T/bound.json" <<X
{"version":1,"extends":"$T/base.json","filesystem":{"mounts":[{"bind":"$T/calls.py","at":"/calls.py"}]}}
X
m=$(uname -m)
ks policy learn --policy "$T/bound.json" --out "$T/l2.json" -- python3 -S /calls.py "$m"
is "$rc $(out | tr '\n' ' ')" "0 1 1 97 " "what is always refused is refused while learning"
like "$(err)" 'not granted: mount, seen 1 time: always refused' "and named with the reason"
like "$(err)" 'not granted: socket' "a socket without a network too"
is "$(js "$T/l2.json" 'any("mount" in r["names"] or "socket" in r["names"] for r in L[0]["seccomp"]["rules"])')" no "the policy does not allow them"
ks policy learn --policy "$T/bound.json" --grant keyctl --out "$T/l3.json" -- python3 -S /calls.py "$m"
[ -n "$around" ] || like "$(js "$T/l3.json" '[r["args"] for r in L[0]["seccomp"]["rules"] if "keyctl" in r["names"]]')" "'value': 17" \
	"one that is asked for by name is, in the form that was seen"
unlike "$(err)" 'not granted: keyctl' "and not listed as refused"

# Arguments where they matter.
is "$(js "$T/l2.json" 'all("args" in r for r in L[0]["seccomp"]["rules"] if set(r["names"]) & {"ioctl", "clone", "openat", "fcntl", "prctl"})')" \
	yes "calls that guards look into are allowed in the forms that were seen"

# ---- merging ----
ks policy learn --policy "$T/base.json" -- true >/dev/null
cp "$T/out" "$T/a.json"
is "$(js "$T/a.json" 'L[0]["version"]')" 1 "without --out the policy is on stdout"
ks policy learn --policy "$T/base.json" --out "$T/b.json" -- sh -c 'mkdir /tmp/x'
ks policy learn --merge --out "$T/ab.json" "$T/a.json" "$T/b.json"
is $rc 0 "two are merged"
ks run --policy "$T/ab.json" -- sh -c 'mkdir /tmp/x'
is $rc 0 "the merged one does what either does"
ks run --policy "$T/a.json" -- sh -c 'mkdir /tmp/x'
unlike $rc '^0$' "which the first did not"
is "$(js "$T/ab.json" '(lambda n: len(n) == len(set(n)))([x for r in L[0]["seccomp"]["rules"] if "args" not in r for x in r["names"]])')" \
	yes "each call once"
ks policy learn --merge "$T/a.json" "$T/bound.json"
is $rc 125 "a policy that was not learned is not merged"
one_clear_line 'merge this yourself' "merging"

# ---- usage ----
ks policy learn
is $rc 125 "no command"
ks policy learn --set /seccomp/explain=true -- true
is $rc 125 "one base"
one_clear_line 'one base' "one base"
ks policy learn --grant nosuchcall -- true
one_clear_line '--grant: unknown system call' "--grant"
ks policy learn -- no-such-command
is $rc 125 "what cannot be run teaches nothing"

left_after "policy learn"
done_testing
