#!/bin/sh
# 22-paths.t: filesystem.read, write and deny: what is shown, what cannot be opened, and
# that neither the task nor the launcher makes anything of it on the machine.
. "$(dirname "$0")/../lib/tap.sh"
left_before

fs() { # JSON COMMAND...: run with that "filesystem"
	printf '{"version":1,"filesystem":{%s}}' "$1" >"$T/p.json"
	shift
	ks run --policy "$T/p.json" -- "$@"
}
names() {
	(cd "$T" && find work data -print | sort | tr '\n' ' ')
}
mkdir -p "$T/work/sub/deep" "$T/work/.git" "$T/work/hooks2" "$T/data/d" "$T/home/.ssh"
for f in work/.env work/sub/deep/.env work/.git/config data/d/.env data/c.key home/.ssh/id; do
	echo canary >"$T/$f"
done
echo open >"$T/work/pub"
echo open >"$T/data/a.csv"
ln -s hooks2 "$T/work/hooks"
ln -s data "$T/link"
before=$(names)

# ---- read and write ----
fs '"read":["data"],"write":["work"]' sh -c "cat $T/data/a.csv $T/work/pub; echo x >$T/data/n; echo new >$T/work/new && ls $T"
is "$(out | tr '\n' ' ')" "open open data work " "read and write show their paths at the same place, and nothing beside them"
is "$(cat "$T/work/new")" new "write: written on the machine"
rm -f "$T/work/new"
is "$(names)" "$before" "read: not written to"
fs '"read":["data/*.csv"]' sh -c "ls $T/data"
is "$(out)" a.csv "a pattern shows what it means"
fs '"read":["~/.ssh"]' sh -c "cat $T/home/.ssh/id"
is "$(out)" canary "~ is the caller's home"
fs '"root":"empty","read":["/bin","/lib","/lib64","/usr"]' /bin/sh -c 'test -e /usr/bin/sh && echo runs'
is "$(out)" runs "directories of the system, as listed, on a root that is empty (C016)"
if [ -L /bin ]; then
	fs '"root":"empty","read":["/bin","/lib","/lib64"]' /bin/sh -c 'readlink /bin'
	is "$(out)" "$(readlink /bin)" "a link on the way is made again (C016)"
fi
fs '"read":["link/a.csv"]' sh -c "cat $T/link/a.csv"
is "$(out)" open "a file read through a link"

# ---- deny ----
for order in '"deny":["work/.env","work/sub/deep/.env","work/.git","data/**/.env","data/*.key"],"write":["work"],"read":["data"]' \
	'"write":["work"],"read":["data"],"deny":["data/*.key","data/**/.env","work/.git","work/sub/deep/.env","work/.env"]'; do
	fs "$order" sh -c "cd $T; cat work/.env work/sub/deep/.env work/.git/config data/d/.env data/c.key
ls work/.git; chmod 777 work/.env work/.git; cat work/.env; ls work/.git; cat work/pub data/a.csv"
	is "$(out | tr '\n' ' ')" "open open " "deny wins whatever the order (C018)"
	is "$(grep -c 'Permission denied' "$T/err")" 8 "and opening says so"
done
fs '"write":["work"],"deny":["work/.env","work/sub/deep/.env","work/.git"]' sh -c "cd $T/work
mv .env x; mv .git x; mv sub x; mv sub/deep sub/x; rm -rf .git sub .env; ln sub/deep/.env y; mkdir sub/deep/n; true"
is "$(cat "$T/work/.env" "$T/work/sub/deep/.env" "$T/work/.git/config" | sort -u)" canary "what is denied, and the way to it, cannot be moved or removed"
ok "but beside it the task may write" test -d "$T/work/sub/deep/n"
rm -rf "$T/work/sub/deep/n" "$T/work/sub/x"
is "$(names)" "$before" "nothing else was made on the machine (C008)"
fs '"mounts":[{"bind":"'"$T"'/data","at":"/d"},{"bind":"'"$T"'/work","at":"/w"}],"deny":["data/c.key","/w/pub","**/.env"]' \
	sh -c 'cat /d/c.key /w/pub /w/.env /d/d/.env; cat /d/a.csv'
is "$(out)" open "deny goes by the file, by the place inside, and by ** in all binds"
fs '"read":["data"],"deny":["link/c.key"]' sh -c "cat $T/data/c.key"
is "$rc:$(out)" "1:" "denied by the name of a link, hidden by its own"
fs '"read":["data"],"deny":["data"]' sh -c "ls $T/data; cat $T/data/a.csv"
is "$rc:$(out)" "1:" "what is denied as a whole is hidden as a whole"
if [ -z "${KNIT_IMAGE:-}" ]; then
	fs '"deny":["/usr/share","/etc/passwd"]' sh -c 'ls /usr/share; cat /etc/passwd; echo on'
	is "$(out)" on "deny reaches into the system root"
else
	not_here "deny is of what is bound, and not of an image's own files"
fi
fs '"write":["work"],"deny":["work/hooks"]' sh -c "cd $T/work; ls hooks hooks2; touch hooks/x; rm hooks; mv hooks h; ln -sfn . hooks; echo ran"
is "$rc $(out | grep -v : | tr '\n' ' ')" "0 ran " "deny of a link to a directory: the task runs (C009)"
is "$(readlink "$T/work/hooks") $(ls "$T/work/hooks2")" "hooks2 " "and both names are protected (C009)"
fs '"write":["work"],"read":["work/sub/deep"]' sh -c "cd $T/work; touch sub/deep/n; mv sub x; mkdir -p sub/deep && touch sub/deep/m; true"
is "$(names)" "$before" "what is read in what is written stays where and as it is"
fs '"read":["data"],"deny":["data/none","**/none"]' true
is "$rc $(names)" "0 $before" "what is not there, where nothing can be made, is denied in peace"

# What is read of the system root is the caller's to be searched, too.
if [ -f /usr/lib/os-release ] && [ ! -L /usr/lib/os-release ]; then
	fs '"read":["/usr/lib/os-release"],"deny":["**/os-release"]' cat /usr/lib/os-release
	is "$rc:$(out)" "1:" "deny of ** reaches what read names below /usr"
fi
# The supervisor opens what a task line names by its path.
cat >"$T/tasks" <<X
{"id":"plain","argv":["cat","x"],"files":{"x":{"path":"$T/work/.env"}}}
{"id":"any","argv":["cat","x"],"files":{"x":{"path":"$T/data/d/.env"}}}
{"id":"unshown","argv":["cat","x"],"files":{"x":{"path":"$T/home/.ssh/id"}}}
{"id":"link","argv":["cat","x"],"files":{"x":{"path":"$T/work/../data/c.key"}}}
{"id":"open","argv":["cat","x"],"files":{"x":{"path":"$T/data/a.csv"}}}
X
printf '{"version":1,"filesystem":{"task_paths":["%s"],"write":["work"],"deny":["work/.env","data/**/.env","~/.ssh","link/*.key"]}}' "$T" >"$T/p.json"
ks run --policy "$T/p.json" --tasks "$T/tasks"
is "$(js "$T/out" '[by[i]["verdict"] for i in ("plain", "any", "unshown", "link", "open")]')" \
	"['invalid', 'invalid', 'invalid', 'invalid', 'ok']" "what is denied is not handed to a task as a file of its line"
is "$(grep -c canary "$T/out")" 0 "none of it came out"
like "$(cat "$T/out")" 'files/x/path: the policy denies it' "and why is said"

# A task does not write the policy of the next one.
mkdir "$T/work/etc"
echo '{"version":1,"extends":"etc/base.json","permissions":{"mode":"project"}}' >"$T/work/p.json"
echo '{"version":1}' >"$T/work/etc/base.json"
cp "$T/work/p.json" "$T/work/etc/base.json" "$T/tmp"
ks run --policy "$T/work/p.json" -- sh -c "cd $T/work; echo >p.json; rm p.json; mv etc x; mv etc/base.json y; echo >etc/base.json; echo x >p2.json; cat p2.json"
is "$rc:$(out)" "0:x" "a task writes beside its policy"
ok "but not to it, nor to what it extends" sh -c "cmp '$T/work/p.json' '$T/tmp/p.json' && cmp '$T/work/etc/base.json' '$T/tmp/base.json'"
rm -rf "$T/work/p.json" "$T/work/p2.json" "$T/work/y" "$T/work/etc" "$T/tmp/p.json" "$T/tmp/base.json"

# Two ways to hide what is already a mount: each task has its own /tmp, and binds below
# it are put back; a mask comes with them.
mkdir "$T/tmp/b"
echo canary >"$T/tmp/b/secret"
cat >"$T/tasks" <<X
{"id":"1","argv":["sh","-c","cat $T/tmp/b/secret; ls $T/tmp/b"]}
{"id":"2","argv":["sh","-c","cat $T/tmp/b/secret; ls $T/tmp/b"]}
{"id":"1","argv":["sh","-c","cat $T/tmp/b/secret; ls $T/tmp/b"]}
{"id":"2","argv":["sh","-c","cat $T/tmp/b/secret; ls $T/tmp/b"]}
X
printf '{"version":1,"filesystem":{"write":["tmp/b"],"deny":["tmp/b/secret"]}}' >"$T/p.json"
ks run --policy "$T/p.json" --workers 1 --tasks "$T/tasks"
is "$(js "$T/out" '[by[i]["stdout"] for i in ("1", "2")]')" "['secret\\n', 'secret\\n']" "each task of a worker meets the masks"
rm -rf "$T/tmp/b"

# ---- refused when the policy is read ----
refused() { # FILESYSTEM ERE NAME
	fs "$1" touch "$T/work/ran"
	is $rc 125 "$3: refused"
	one_clear_line "$2" "$3"
	is "$(names)" "$before" "$3: nothing made (C007)"
}
refused '"write":["work"],"deny":["**/.env"]' '/filesystem/deny/0.*task makes' "a pattern that a task's file could match"
refused '"write":["work"],"deny":["work/.cfg/commands"]' '/filesystem/deny/0.*not there' "a name that a task could make"
refused '"read":["data/*.zip"]' '/filesystem/read/0.*means no file' "a pattern that means nothing"
refused '"read":["nowhere"]' 'nowhere.*No such file' "a path that is not there"
refused '"deny":["/proc/cpuinfo"]' '/filesystem/deny/0.*sandbox.s own' "a file of the sandbox's own /proc, which no mask hides"
refused '"deny":["/dev/n*"]' '/filesystem/deny/0.*sandbox.s own' "and of its /dev"
refused '"read":["data"],"deny":["data/{a,b}"]' '/filesystem/deny/0.*braces' "braces"
if [ -z "$root" ]; then
	mkdir -m 0 "$T/data/locked"
	fs '"read":["data"],"deny":["**/.env"]' true
	is $rc 125 "a directory that cannot be searched for what is denied: refused (C144)"
	like "$(err)" 'data/locked' "and named"
	rmdir "$T/data/locked"
fi
# C001: what a task leaves at the place of a bind is not followed.
mkdir "$T/work/cache"
ks run --bind "$T/work:/w" -- sh -c 'rm -r /w/cache; ln -s /etc /w/cache'
fs '"write":["work/cache"]' touch "$T/work/cache/knit-x"
is $rc 125 "write: a link that a task left is not followed (C001)"
like "$(err)" 'work/cache.*symbolic link' "and named (C001)"
ok "nothing came of it (C001)" test ! -e /etc/knit-x
rm "$T/work/cache"
# --ro-bind is read-only, or refused.
printf '{"version":1,"filesystem":{"write":["data"]}}' >"$T/p.json"
ks run --policy "$T/p.json" --ro-bind "$T/data" -- touch "$T/data/n"
is $rc 125 "--ro-bind of what an earlier document writes to: refused"
one_clear_line '/filesystem/write/0.*--ro-bind' "--ro-bind of what is written"
ks run --policy "$T/p.json" --set /filesystem/write=null --ro-bind "$T/data" -- sh -c "cat $T/data/a.csv; touch $T/data/n"
is "$rc:$(out)" 1:open "what the hint says: shown, and read-only"
ok "and not written to" test ! -e "$T/data/n"
# Nor what a task puts on the way to a mount, when the next worker is launched.
mkdir -p "$T/w/sub/dir" "$T/upon"
swap() { # NAME FROM MOUNTS: a task moves FROM away, and leads it to where it should not be
	cat >"$T/tasks" <<X
{"id":"1","argv":["sh","-c","mv $2 $2.x && ln -s /oldroot$T/home $2"]}
{"id":"2","argv":["sh","-c","ls /w/sub"]}
X
	printf '{"version":1,"pool":{"recycle":{"tasks":1}},"filesystem":{"mounts":[%s]}}' "$3" >"$T/p.json"
	ks run --policy "$T/p.json" --workers 1 --tasks "$T/tasks"
	is "$(js "$T/out" 'by["2"]["verdict"], by["2"]["stdout"]')" "('ok', 'dir\\n')" "$1: the next worker starts, and has it where it was"
	like "$(js "$T/out" 'by["1"]["stderr"]')" "busy" "$1: moving it is refused"
	is "$(find "$T/home" -name dir -o -name sub | sort | tr '\n' ' ')" "" "$1: nothing was made elsewhere on the machine"
	find "$T/w" -type l -exec rm -f {} +
}
rw() { # SOURCE AT
	printf '{"bind":"%s","at":"%s","mode":"rw"}' "$T/$1" "$2"
}
swap "a writable bind in a writable one" /w/sub "$(rw w /w),$(rw upon /w/sub/dir)"
swap "a mount in a bind that another shows writable" /v/w/sub "$(rw . /v),{\"bind\":\"$T/w\",\"at\":\"/w\"},$(rw upon /w/sub/dir)"
swap "a bind with a mount in it, in a writable one" /v/w "$(rw . /v),$(rw w /w),$(rw upon /w/sub/dir)"
rm -rf "$T/w" "$T/upon"
fs '"mounts":[{"bind":"'"$T"'/work","at":"/w","mode":"rw"},{"dir":"/w/sub"}]' true
is $rc 125 "an empty directory in a bind, which would be neither: refused"
like "$(err)" '/filesystem/mounts/1.*no empty directory' "and named"
# C020: many.
mkdir "$T/many"
(cd "$T/many" && for i in 1 2 3 4 5 6; do for j in 0 1 2 3 4 5 6 7 8 9; do for k in 0 1 2 3 4 5 6 7 8 9; do echo canary >$i$j$k; done; done; done)
fs '"read":["many"],"deny":["many/[1-4]*"]' sh -c "cat $T/many/* 2>/dev/null | grep -c canary"
is "$(out)" 200 "hundreds of files are hidden (C020)"
fs '"read":["many"],"deny":["many/*"]' true
is $rc 125 "more than the limit: refused (C020)"
like "$(err)" '600 .*at most 500' "and the limit is named (C020)"
rm -rf "$T/home/.ssh"

# ---- what is before the launcher ----
# As root a bind is brought where something is mounted over a directory of ours alone,
# which may be the one that this lies in. And it may take away what was checked.
mkdir -m 777 "$T/any"
mkdir "$T/any/goes"
printf '#!/bin/sh\n[ ! -e %s/go ] || rmdir %s/any/goes\nexec "$@"\n' "$T" "$T" >"$T/first"
chmod 755 "$T/first"
if [ -z "$direct" ]; then
	told=
	[ -n "$engine" ] || told="-u TMPDIR -u HOME"
	# shellcheck disable=SC2086
	watched env $told "$KS" run --set "/launcher/prefix=[\"$T/first\"]" --ro-bind "$T/any/goes:/srv" -- ls -d /srv
	is "$rc $(out)" "0 /srv" "a program before the launcher is found beside a bind"
	: >"$T/go"
	ks run --set "/launcher/prefix=[\"$T/first\"]" --ro-bind "$T/any/goes:/srv" -- ls -d /srv
	is $rc 125 "a bind's source that goes away after the check: refused"
	like "$(err)" "$T/any/goes" "and named"
	like "$(err)" '^hint: .*went away' "and what became of it"
fi
rm -rf "$T/any" "$T/go"
left_after "paths"
done_testing
