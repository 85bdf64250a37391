#!/bin/sh
# 05-files.t: files into a task, files out of it: files, keep, from, collect, tricks.
. "$(dirname "$0")/../lib/tap.sh"
left_before
v() {
	js "$T/out" "by['$1']['verdict']"
}

# ---- in ----
cat >"$T/tasks" <<'X'
{"id":"text","argv":["cat","a.txt","d/e/b.txt"],"files":{"a.txt":{"content":"A\u00e4\n"},"d/e/b.txt":{"content":"B\n"}}}
{"id":"bytes","argv":["od","-An","-tx1","f"],"files":{"f":{"content_b64":"/wAB"}}}
{"id":"mode","argv":["sh","-c","stat -c %a x r; ./x"],"files":{"x":{"content":"#!/bin/sh\necho ran\n","mode":"755"},"r":{"content":"","mode":"400"}}}
{"id":"noexec","argv":["./x"],"files":{"x":{"content":"#!/bin/sh\necho ran\n"}}}
{"id":"write","argv":["sh","-c","echo more >>f; cat f"],"files":{"f":{"content":"one\n"}}}
{"id":"many","argv":["sh","-c","ls | wc -l"],"files":{"1":{"content":""},"2":{"content":""},"3":{"content":""},"a b":{"content":""},"-rf":{"content":""},"\u00e4":{"content":""}}}
X
ks run --tasks "$T/tasks"
is $rc 1 "files: one of them is not executable"
is "$(js "$T/out" 'by["text"]["stdout"] == "A\u00e4\nB\n"')" yes "content, also below folders"
is "$(js "$T/out" 'by["bytes"]["stdout"].split() == ["ff", "00", "01"]')" yes "content_b64"
is "$(js "$T/out" 'by["mode"]["stdout"].split()')" "['755', '400', 'ran']" "mode"
is "$(v noexec)" not-executable "a file without an x bit is not executable"
is "$(js "$T/out" 'by["write"]["stdout"]')" "one
more" "files given are writable"
is "$(js "$T/out" 'by["many"]["stdout"].strip()')" 6 "names with spaces, dashes, letters"

# A file of 5 MB given whole.
"$PY" -c '
import json
print(json.dumps({"id": "big", "argv": ["sha256sum", "f"], "files": {"f": {"content": "0123456789abcde\n" * 327680}}}))' >"$T/tasks"
want=$("$PY" -c 'import hashlib; print(hashlib.sha256(b"0123456789abcde\n" * 327680).hexdigest())')
ks run --tasks "$T/tasks"
is "$(js "$T/out" '(by["big"].get("stdout") or by["big"]["verdict"]).split()[0]')" "$want" "a file of 5 MiB"

# ---- keep and from ----
cat >"$T/tasks" <<'X'
{"id":"c1","argv":["sh","-c","printf '\\377\\000k' >bin; mkdir d; echo deep >d/f; printf '#!/bin/sh\necho ran\n' >x; chmod 755 x"],"keep":["bin","d/f","x"]}
{"id":"u1","after":["c1"],"argv":["sh","-c","od -An -tx1 b; cat f; ./x"],"files":{"b":{"from":"c1/bin"},"f":{"from":"c1/d/f"},"x":{"from":"c1/x","mode":"755"}}}
{"id":"u2","after":["c1"],"argv":["sh","-c","echo changed >b; cat b"],"files":{"b":{"from":"c1/bin","mode":"644"}}}
{"id":"u3","after":["c1","u2"],"argv":["od","-An","-tx1","b"],"files":{"b":{"from":"c1/bin"}}}
{"id":"nokeep","after":["c1"],"argv":["true"],"files":{"b":{"from":"c1/never"}}}
{"id":"noafter","argv":["true"],"files":{"b":{"from":"c1/bin"}}}
{"id":"climb","after":["c1"],"argv":["true"],"files":{"b":{"from":"c1/../../etc/passwd"}}}
{"id":"missing","argv":["true"],"keep":["nothing-here"]}
{"id":"m2","after":["missing"],"argv":["true"],"files":{"b":{"from":"missing/nothing-here"}}}
X
ks run --tasks "$T/tasks" --workers 1
is "$(v c1) $(js "$T/out" 'by["u1"]["stdout"].split()')" "ok ['ff', '00', '6b', 'deep', 'ran']" "keep, then from"
is "$(js "$T/out" 'by["u2"]["stdout"].strip() + by["u3"]["stdout"]')" "changed ff 00 6b" \
    "what one task does to its copy the next one does not see"
ok "a kept file that never was: its user does not run" test "$(v nokeep)" != ok
is "$(v noafter)" invalid "from without after: invalid"
ok "from that climbs: does not run" test "$(v climb)" != ok
ok "the user of a file that was not made does not run" test "$(v m2)" != ok
like "$(js "$T/out" 'by["missing"]')" 'nothing-here' "a file to keep that is missing is named"

mkdir "$T/keep"
cat >"$T/tasks" <<'X'
{"id":"c1","argv":["sh","-c","echo kept >f"],"keep":["f"]}
X
ks run --tasks "$T/tasks" --keep "$T/keep"
like "$(find "$T/keep" -type f -exec cat {} +)" kept "--keep DIR: kept files are there afterwards"
rm -rf "$T/keep"

# The default mode of content is that of a text: what to do stands in the answer.
printf '%s\n' '{"id":"nox","argv":["./s"],"files":{"s":{"content":"#!/bin/sh\necho hi\n"}}}' >"$T/tasks"
ks run --tasks "$T/tasks"
is "$(v nox)" not-executable "a file of a task without an x bit is no program"
like "$(js "$T/out" 'by["nox"]["error"]')" '"mode":"755"' "and the answer says how it becomes one"

# ---- collect ----
cat >"$T/tasks" <<'X'
{"id":"c","argv":["sh","-c","mkdir out; echo one >out/a.txt; echo two >out/b.txt; echo no >out/c.log; printf '\\377' >out/d.txt; chmod 755 out/b.txt"],"collect":["out/*.txt"]}
{"id":"failed","argv":["sh","-c","echo partial >r.txt; exit 3"],"collect":["r.txt"]}
{"id":"killed","argv":["sh","-c","echo partial >r.txt; sleep 30"],"collect":["*.txt"],"timeouts":{"hard_ms":500}}
{"id":"nothing","argv":["true"],"collect":["*.txt"]}
X
slowly "$T/tasks"
ks run --tasks "$T/tasks" --set /timeouts/hard_slack_ms=20000
is "$(js "$T/out" 'sorted(by["c"]["files"])')" "['out/a.txt', 'out/b.txt', 'out/d.txt']" "collect: what the glob matches"
is "$(js "$T/out" 'base64.b64decode(by["c"]["files"]["out/d.txt"]["content_b64"])')" "b'\\xff'" "collect: content_b64"
is "$(js "$T/out" 'by["c"]["files"]["out/b.txt"]["mode"]')" 755 "collect: mode"
is "$(js "$T/out" '[(by[i]["verdict"], sorted(by[i].get("files", {}))) for i in ("failed", "killed")]')" "[('exit', ['r.txt']), ('timeout', ['r.txt'])]" \
    "collect: also of a task that failed or was ended"
is "$(v nothing)" ok "collect: nothing matched is no failure"
ks run --collect '*.txt' --out-dir "$T/tmp/out" -- sh -c 'echo result >r.txt; echo no >r.log'
is "$rc $(cat "$T/tmp/out/r.txt") $(ls "$T/tmp/out")" "0 result r.txt" "--collect with --out-dir"
ks run --collect '*.pdf' --out-dir "$T/tmp/none" -- true
is "$rc $(err | grep -c 'nothing below /task matches')" "0 1" "--collect: that nothing matches is said, and no failure"
ks run --collect '*' --out-dir "$T/tmp/none" -- sh -c 'truncate -s 17M big; echo fine >small; exit 3'
is "$rc $(ls "$T/tmp/none")" "3 small" "--collect: a file of more than 16M stays behind, the status is the command's"
like "$(err)" 'big: too large \(16M' "--collect: and how large they may be"
rm -rf "$T/tmp/none"
ks run --collect '*.txt' --out-dir "$T/tmp/out" -- sh -c 'echo again >r.txt'
is "$rc $(cat "$T/tmp/out/r.txt")" "125 result" "--collect into a place that is taken: nothing is overwritten"
like "$(err)" '^hint: nothing is overwritten' "--collect into a place that is taken: what to do"
mkdir "$T/seen" && chmod 777 "$T/seen"
ks run --collect r.txt --out-dir "$T/tmp/out" --bind "$T/seen:/seen" -- sh -c 'echo ran >/seen/x; echo again >r.txt'
is "$rc $(ls "$T/seen") $(cat "$T/tmp/out/r.txt")" "125  result" "--collect of a name that is there already: before the command runs"
one_clear_line "r.txt is in $T/tmp/out already" "which is said"
like "$(err)" '^hint: nothing is overwritten' "and what to do"
mkdir "$T/shut" && chmod 555 "$T/shut"
if [ -z "$root" ]; then
	ks run --collect r.txt --out-dir "$T/shut" --bind "$T/seen:/seen" -- sh -c 'echo ran >/seen/x; echo again >r.txt'
	is "$rc $(ls "$T/seen")" "125 " "--out-dir that cannot be written to: before the command runs"
	one_clear_line "--out-dir: write to $T/shut: " "which is said"
	like "$(err)" "^hint: .*namei -l $T/shut" "and how to see why"
else
	not_here "a directory that root may not write to"
fi
chmod 755 "$T/shut"
rm -rf "$T/tmp/out"

# ---- tricks: C013, C014 ----
mkdir "$T/bin"
cp "$t_top/tests/hostile/out_tricks.py" "$T/bin/"
chmod 755 "$T/bin" "$T/bin/out_tricks.py"
echo host-canary-content >"$T/bin/canary"
watch_opts="--limit 60"
ks run --ro-bind "$T/bin" --timeout "$(scaled 20)s" --collect '*' --collect '*/*' --collect '**/*' --out-dir "$T/tmp/out" \
    -- python3 "$T/bin/out_tricks.py" --race 3
like "$(out)" PENDING "out_tricks: planted (C013, C014)"
at_most "$elapsed_ms" 15000 "out_tricks: no FIFO holds the collector (C014)"
mkdir -p "$T/tmp/out"
is "$("$PY" "$T/bin/out_tricks.py" --check "$T/tmp/out" --canary host-canary-content | cut -d: -f1)" BLOCKED \
    "out_tricks: the collected copy is clean (C013)"
chmod -R u+rwx "$T/tmp/out"
rm -rf "$T/tmp/out"
cat >"$T/tasks" <<X
{"id":"trick","argv":["python3","$T/bin/out_tricks.py"],"collect":["*","*/*"],"keep":["stdout.txt","result.json"]}
{"id":"link","argv":["ln","-s","/etc/passwd","out.txt"],"collect":["out.txt"]}
{"id":"fifo","argv":["mkfifo","out.txt"],"collect":["out.txt"]}
{"id":"dir","argv":["mkdir","out.txt"],"collect":["out.txt"]}
{"id":"suid","argv":["sh","-c","echo x >out.txt; chmod 6755 out.txt"],"collect":["out.txt"]}
{"id":"sparse","argv":["sh","-c","truncate -s 1T out.txt; echo fine >small.txt"],"collect":["out.txt","small.txt"]}
{"id":"count","argv":["sh","-c","i=0; while [ \$i -lt 3000 ]; do : >f\$i; i=\$((i+1)); done"],"collect":["f*"]}
{"id":"linkdir","argv":["sh","-c","ln -s /etc d"],"collect":["d/passwd","d/*"]}
{"id":"keeplink","argv":["ln","-s","/etc/passwd","k"],"keep":["k"]}
{"id":"keepuser","after":["keeplink"],"argv":["cat","f"],"files":{"f":{"from":"keeplink/k"}}}
X
ks run --ro-bind "$T/bin" --tasks "$T/tasks" --workers 2
unlike "$(cat "$T/out")" 'root:x:0:0|cm9vdDp4OjA6' "no result carries a file of the host"
unlike "$(cat "$T/out")" 'host-canary' "nor the canary"
for id in link fifo dir linkdir; do
	is "$(js "$T/out" "[n for n, f in by['$id']['files'].items() if 'content_b64' in f or 'content' in f]")" "[]" \
	    "collect of a $id: no content (C013, C014)"
done
like "$(js "$T/out" 'by["link"]')" 'symlink|symbolic|link' "a link is refused by name (C013)"
like "$(js "$T/out" 'by["fifo"]')" 'regular' "a FIFO is reported as no regular file (C014)"
like "$(js "$T/out" 'by["suid"]["files"]["out.txt"]["mode"]')" '^[0-7]{3}$' "setuid bits do not come out"
is "$(js "$T/out" 'len(by["sparse"]["files"].get("out.txt", {}).get("content_b64", "")) < 1000')" yes "a sparse terabyte is not collected"
ok "the user of a kept link does not run" test "$(v keepuser)" != ok
at_most "$maxrss_kb" 131072 "and the supervisor's memory stayed small"

# C024, C023: what a task leaves in its folder goes away with it.
cat >"$T/tasks" <<'X'
{"id":"locked","argv":["sh","-c","mkdir -p a/b/c; echo x >a/b/c/f; chmod 000 a/b/c; chmod 500 a"]}
{"id":"deep","argv":["python3","-c","import os\nfor i in range(3000):\n    os.mkdir('d' * 20)\n    os.chdir('d' * 20)"]}
{"id":"next","argv":["sh","-c","ls -A . /tmp | grep -v : | grep -c ."]}
X
ks run --tasks "$T/tasks" --workers 1
is "$(v locked) $(v deep)" "ok ok" "locked and deep folders (C023, C024)"
is "$(js "$T/out" 'by["next"]["stdout"].strip()')" 0 "the next task on that worker finds nothing (C023, C024)"

# C090, C092: what may be written is bounded.
cat >"$T/tasks" <<'X'
{"id":"fill","argv":["sh","-c","i=0; while dd if=/dev/zero of=f$i bs=1M count=16 2>/dev/null; do i=$((i+1)); [ $i -gt 300 ] && exit 9; done; exit 4"]}
{"id":"falloc","argv":["python3","-c","import os\nf = os.open('f', os.O_CREAT | os.O_RDWR)\ntry:\n    os.posix_fallocate(f, 0, 10 << 30)\nexcept OSError:\n    raise SystemExit(4)"]}
{"id":"inodes","argv":["python3","-c","i = 0\ntry:\n    while i < 2000000:\n        open('/tmp/f%d' % i, 'w').close(); i += 1\nexcept OSError:\n    raise SystemExit(4)"]}
X
# (of direct only the size of a file is bounded)
[ -z "$direct" ] || sed -i '/"fill"\|"inodes"/d' "$T/tasks"
ks run --tasks "$T/tasks" --workers 1
[ -n "$direct" ] ||
	is_any "$(js "$T/out" 'str(by["fill"]["exit_code"]) + by["fill"]["verdict"]')" "4exit Nonememory" "filling /task ends in an error of its own (C092)"
is_any "$(js "$T/out" 'str(by["falloc"]["exit_code"]) + by["falloc"]["verdict"]')" "4exit Nonesignal" "fallocate of 10 GiB is refused (C090)"
[ -n "$direct" ] ||
	is_any "$(js "$T/out" 'str(by["inodes"]["exit_code"]) + by["inodes"]["verdict"]')" "4exit Nonememory" "files without end are refused (C092)"

# C094: more shared memory than the mount holds.
ks run -- python3 -c '
import mmap, os
f = os.open("/dev/shm/x", os.O_CREAT | os.O_RDWR)
os.ftruncate(f, 1 << 30)
m = mmap.mmap(f, 1 << 30)
for i in range(0, 1 << 30, 4096): m[i] = 1'
is_any $rc "135 1 137" "more shared memory than there is: the task's own end (C094)"

left_after "files"
done_testing
