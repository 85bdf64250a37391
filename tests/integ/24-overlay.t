#!/bin/sh
# 24-overlay.t: a directory that each task writes to in a layer of its own.
. "$(dirname "$0")/../lib/tap.sh"
left_before

mkdir -p "$T/src/sub" "$T/src/.git"
echo old >"$T/src/f"
echo old >"$T/src/sub/g"
echo canary >"$T/src/sub/.env"
echo canary >"$T/src/.git/config"
before=$(cd "$T/src" && find . -type f -exec md5sum {} + | sort)

policy() { # MEMBERS DENY
	printf '{"version":1,"filesystem":{"mounts":[{"overlay":"src","at":"/work"%s}],"deny":[%s]}}' "$1" "$2" >"$T/p.json"
}
policy '' '"**/.env","/work/.git"'
ks run --policy "$T/p.json" -- sh -c 'cd /work; cat f sub/g; echo new >f; echo new >made; mv f sub/h; rm sub/g; cat sub/h made; ls sub'
is "$(out | tr '\n' ' ')" "old old new new h " "a task writes, moves and removes as in a copy"
is "$(cd "$T/src" && find . -type f -exec md5sum {} + | sort)" "$before" "and nothing of it is on the machine"
ks run --policy "$T/p.json" -- sh -c 'cd /work; cat sub/.env .git/config; find . -name .env; ls -d .git; rm -rf sub; mkdir sub; ls -A sub; mkdir .git; ls -A .git; echo own >sub/.env; cat sub/.env'
is "$(out)" own "what is denied does not exist, also after its place was made anew"
printf '%s\n' '{"id":"1","argv":["sh","-c","echo left >/work/left; rm /work/f"]}' \
	'{"id":"2","argv":["sh","-c","cat /work/f; ls /work/left"]}' >"$T/tasks"
ks run --policy "$T/p.json" --workers 1 --tasks "$T/tasks"
is "$(js "$T/out" 'by["1"]["verdict"], by["2"]["stdout"]')" "('ok', 'old\\n')" "what one task writes the next one does not see"
policy ',"size":"1M","inodes":40' ''
ks run --policy "$T/p.json" -- sh -c 'dd if=/dev/zero of=/work/big bs=64k count=64; rm /work/big; i=0; while touch /work/n$i; do i=$((i + 1)); done; echo $i'
is "$(err | grep -c 'No space left')" 2 "bytes and files are bounded"
at_most "$(out)" 40 "as the policy says"
policy '' ''
ks run --policy "$T/p.json" -- sh -c 'umount /work; echo x >/work/sub/x; mount -t tmpfs none /work; cat /work/f'
is "$(out)" old "it is not taken away"
ok "and has kept everything" test ! -e "$T/src/sub/x"
policy '' '"src"'
ks run --policy "$T/p.json" -- sh -c 'cat /work/f; ls /work'
is "$rc:$(out)" "2:" "denied as a whole"
for bad in '"overlay":"src/f","at":"/work"' '"overlay":"src","at":"/tmp/x"' '"overlay":"src","at":"/a:b"'; do
	printf '{"version":1,"filesystem":{"mounts":[{%s}]}}' "$bad" >"$T/p.json"
	ks run --policy "$T/p.json" -- true
	is $rc 125 "$bad: refused"
	one_clear_line '/filesystem/mounts/0' "$bad"
done
policy '},{"bind":"/usr/share","at":"/work/sub"' ''
ks run --policy "$T/p.json" -- true
is $rc 125 "a mount in it: refused"
like "$(err)" 'lies in the overlay' "and told"
left_after "overlay"
done_testing
