#!/bin/sh
# 25-copy.t: a directory of which each task has a copy, and what it changed there brought out.
. "$(dirname "$0")/../lib/tap.sh"
left_before

mkdir -p "$T/src/sub" "$T/got"
echo old >"$T/src/f"
echo old >"$T/src/sub/g"
echo canary >"$T/src/sub/.env"
echo canary >"$T/canary"
before=$(cd "$T/src" && find . -type f -exec md5sum {} + | sort)

policy() { # MEMBERS
	printf '{"version":1,"filesystem":{"mounts":[{"copy":"src","at":"/work"%s}],"deny":["**/.env"]}}' "$1" >"$T/p.json"
}
tree() { # DIR
	(cd "$1" && find . ! -type d | sort | tr '\n' ' ')
}

# ---- a copy ----
policy ''
ks run --policy "$T/p.json" -- sh -c 'cd /work; cat f sub/g; echo new >f; mv f sub/h; rm sub/g; cat sub/h; ls -A sub'
is "$(out | tr '\n' ' ')" "old old new h " "a task writes, moves and removes in its copy"
is "$(tree "$T/got")" "" "of which nothing is brought out unless the policy says where to"

# ---- out ----
policy ',"out":"got"'
ks run --policy "$T/p.json" --report "$T/report" -- sh -c 'cd /work; echo new >f; mkdir -p a/.h; echo x >a/.h/.x; chmod 751 a/.h/.x
	rm sub/g; mkdir empty; ln -s '"$T"'/canary link; ln -s .. up; mkfifo pipe; exit 3'
is "$rc" 3 "the status is the command's"
is "$(tree "$T/got")" "./command/a/.h/.x ./command/f " "what it made and changed is brought out, and nothing that it left alone or may not see"
is "$(cat "$T/got/command/f") $(stat -c '%a %u' "$T/got/command/a/.h/.x")" "new 751 $(id -u)" "with content, mode and the caller as owner"
is "$(js "$T/report" 'sorted((k, v["error"]) for k, v in L[0]["files"].items())')" \
	"[('/work/link', 'a symbolic link'), ('/work/pipe', 'not a regular file'), ('/work/up', 'a symbolic link')]" \
	"links and pipes are named and left (C013, C014)"
is "$(js "$T/report" 'L[0]["verdict"], L[0]["out"]["files"], L[0]["out"]["bytes"], L[0]["out"]["dir"] == "'"$T"'/got/command"')" \
	"('exit', 2, 6, True)" "the result tells where to and how much"
like "$(err)" 'out: 2 files in .*/got/command$' "and so does a line"
is "$(cd "$T/src" && find . -type f -exec md5sum {} + | sort)" "$before" "the directory itself is as it was"
ks run --policy "$T/p.json" -- sh -c 'echo again >/work/f'
is "$(cat "$T/got/command/f" "$T/got/command.2/f" | tr '\n' ' ')" "new again " "nothing is overwritten: the next one has a new folder"
ks run --policy "$T/p.json" --report "$T/report" -- cat /work/f
is "$(out) $(js "$T/report" '"out" in L[0]') $(ls "$T/got" | wc -l)" "old no 2" "who changes nothing has no folder"

# ---- many tasks ----
cat >"$T/tasks" <<'EOT'
{"id":"a","argv":["sh","-c","cat /work/f; echo a >/work/f; echo r >r"],"collect":["*"]}
{"id":"../b","argv":["sh","-c","cat /work/f; echo b >/work/f; kill -9 $$"]}
{"id":"slow","argv":["sh","-c","echo partial >/work/f; sleep 60"],"timeouts":{"hard_ms":1000}}
{"id":"deep","argv":["python3","-c","import os\nos.chdir('/work')\nfor i in range(60): os.mkdir('d'); os.chdir('d'); open('x','w').close()"]}
{"id":"many","argv":["python3","-c","for i in range(3000): open('/work/f%d' % i, 'w').close()"]}
{"id":"large","argv":["sh","-c","truncate -s 100M /work/sparse; truncate -s 17M /work/big; echo x >/work/small"]}
{"id":"shut","argv":["sh","-c","cd /work; mkdir d; echo x >d/x; chmod 0 d/x d; echo new >f; chmod 500 ."]}
{"id":"names","argv":["python3","-c","import os\nos.chdir('/work')\nfor n in b'\\xff', b'new\\nline', b'\\x1b[31m': open(n,'w').close()\nopen('fine','w').close()"]}
{"id":"hole","argv":["python3","-c","import os\nos.chdir('/work')\nos.unlink('f')\ntry: os.mknod('f', 0o20000, 0)\nexcept OSError as e: print(e.errno)\nos.link('sub/g', 'two')"]}
EOT
rm -rf "$T"/got/*
slowly "$T/tasks"
ks run --policy "$T/p.json" --workers 2 --set /timeouts/hard_slack_ms=20000 --tasks "$T/tasks"
is "$(js "$T/out" '[v["verdict"] for k, v in sorted(by.items())]')" \
	"['signal', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'timeout']" "whatever a task leaves, its verdict is its own"
is "$(js "$T/out" 'by["a"]["stdout"], by["../b"]["stdout"]')" "('old\\n', 'old\\n')" "what one task writes the next one does not see"
is "$(cat "$T/got/a/f" "$T/got/%2E./b/f" "$T/got/%2E.%2Fb/f" 2>/dev/null | tr '\n' ' ')$(ls "$T/got" | wc -l)" "a b 9" \
	"each task has a folder of its own, and no id leads out of the directory"
is "$(js "$T/out" 'sorted(by["a"]["files"]), "content_b64" in by["a"]["files"]["r"]')" "(['r'], True)" "files that are collected besides are as ever"
is "$(cat "$T/got/slow/f")" partial "of a task that was ended: what it had made"
is "$(find "$T/got/deep" -name x | wc -l) $(js "$T/out" 'list(by["deep"]["files"].values())')" \
	"31 [{'error': 'too deep (32 directories)'}]" "a deep tree ends somewhere, and that is told (C023)"
is "$(ls "$T/got/many" | wc -l) $(js "$T/out" 'by["many"]["files"], by["many"]["out"]["files"]')" \
	"999 ({'/work': {'error': 'too many files (999)'}}, 999)" "too many files: so many, and that is told"
is "$(tree "$T/got/large") $(js "$T/out" 'sorted(by["large"]["files"])')" "./small  ['/work/big', '/work/sparse']" \
	"too large ones are left and named, whatever they claim"
is "$(chmod -R u+rwx "$T/got/shut"; cat "$T/got/shut/f" "$T/got/shut/d/x" | tr '\n' ' ')" "new x " "folders that a task has shut are open to us (C024)"
is "$(tree "$T/got/names") $(js "$T/out" 'len(by["names"]["files"])')" "./fine  3" "names that cannot be handed on are refused, not made"
is "$(tree "$T/got/hole")" "./sub/g ./two " "what stands for something removed is no file"
is "$(cat "$T/canary")" canary "nothing was written through a link"

# ---- where to ----
refused() { # MEMBERS WORD NAME
	printf '{"version":1,"filesystem":{"mounts":[{"copy":"src","at":"/work"%s}]}}' "$1" >"$T/p.json"
	ks run --policy "$T/p.json" -- true
	is $rc 125 "$3: refused"
	like "$(err)" "$2" "$3: and told"
}
mkdir "$T/src/in" "$T/rw" "$T/rw/in"
ln -s ../got "$T/rw/way"
refused ',"out":"src/in"' 'has a copy of' "out in what is copied"
refused ',"out":"rw/in"},{"bind":"rw","at":"/rw","mode":"rw"' 'can write to' "out in what a task can write to"
refused ',"out":"rw/way"},{"bind":"rw","at":"/rw","mode":"rw"' 'symbolic link' "out by a link that a task may have left"
refused ',"out":"none"' 'No such file' "out to no directory"
refused ',"out":"canary"' 'no directory' "out to a file"
refused ',"out":"got"},{"copy":"rw","at":"/rw","out":"got"' '/filesystem/mounts/1.*one copy' "two copies to be brought out"
printf '{"version":1,"filesystem":{"mounts":[{"overlay":"src","at":"/work","out":"got"}]}}' >"$T/p.json"
ks run --policy "$T/p.json" -- true
is $rc 125 "out of an overlay: refused"
one_clear_line '/filesystem/mounts/0/out' "out of an overlay"
policy ',"out":"got"'
if [ -z "$root" ]; then
	chmod 500 "$T/got"
	refused ',"out":"got"' 'Permission denied' "out to what the caller cannot write to"
	chmod 700 "$T/got"
	policy ',"out":"got"'
	rm -rf "$T"/got/*
	# The new folder's mode does not let its owner write.
	(umask 0222 && "$KS" run --policy "$T/p.json" --report "$T/report" -- sh -c 'echo x >/work/x; exit 4' 2>"$T/said")
	is "$? $(js "$T/report" 'L[0]["files"]["/work/x"]["error"], L[0]["out"]["files"]')" "4 ('could not be written', 0)" \
		"what cannot be written is told, and the verdict stays"
	like "$(cat "$T/said")" 'Permission denied' "with the reason"
else
	not_here "root writes everywhere"
fi
left_after "copies"
done_testing
