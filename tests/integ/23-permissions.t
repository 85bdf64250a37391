#!/bin/sh
# 23-permissions.t: the words of /permissions: the project and its secrets, what is not
# written to, variables, the console.
. "$(dirname "$0")/../lib/tap.sh"
left_before

words() { # JSON COMMAND...: run with those "permissions", by a policy in the project
	printf '{"version":1,"permissions":{%s}}' "$1" >"$T/proj/p.json"
	shift
	ks run --policy "$T/proj/p.json" -- "$@"
}
mkdir -p "$T/proj/.git" "$T/proj/src/lib" "$T/proj/out" "$T/proj/hooks2" "$T/home/.ssh" "$T/home/.config/gcloud"
for f in proj/.env proj/.git/config home/.ssh/id home/.config/gcloud/key; do
	echo canary >"$T/$f"
done
echo open >"$T/proj/pub"
echo open >"$T/proj/src/lib/a.c"
ln -s hooks2 "$T/proj/hooks"

words '"mode":"project"' sh -c "cd $T/proj; cat .env .git/config; cat pub; echo new >made; touch .git/x; rm -rf .env .git; true"
is "$(out) $(cat "$T/proj/made")" "open new" "mode project: read and written, but for its secrets"
is "$(cat "$T/proj/.env" "$T/proj/.git/config" | sort -u)" canary "which are as they were"
rm -f "$T/proj/made"
words '"mode":"project","project":".."' sh -c "cat $T/home/.ssh/id $T/home/.config/gcloud/key"
is "$rc:$(out)" "1:" "secrets of the home are denied where a project shows it"
words '"mode":"project","write":["out"]' sh -c "cd $T/proj; cat pub .env; echo x >made; echo new >out/made"
is "$(out) $(cat "$T/proj/out/made") $(ls "$T/proj/made" 2>/dev/null)" "open new " "write in place of the project: that is only read"
rm -f "$T/proj/out/made"
words '"mode":"project","read":["src"],"write":[]' sh -c "cat $T/proj/src/lib/a.c; ls $T/proj"
is "$(out | tr '\n' ' ')" "open src " "read and write in place of the project"
words '"mode":"project","deny_read":["src/lib/a.c"]' sh -c "cat $T/proj/src/lib/a.c"
is "$rc:$(out)" "1:" "deny_read"
words '"mode":"project","deny_write":["src/lib","pub","hooks"]' sh -c "cd $T/proj; cat src/lib/a.c pub
echo x >pub; touch src/lib/n hooks/n; rm -f pub hooks src/lib/a.c; mv src s2; mv hooks h2; mv pub p2; ln -sfn out hooks; touch src/made"
is "$rc $(out | tr '\n' ' ')" "0 open open " "deny_write: read all the same"
is "$(cat "$T/proj/pub" "$T/proj/src/lib/a.c" | tr '\n' ' ')$(find "$T/proj" -name n | grep -c .) $(readlink "$T/proj/hooks")" \
	"open open 0 hooks2" "deny_write: neither written to, moved nor removed"
ok "and beside it the task may write" test -e "$T/proj/src/made"
rm -f "$T/proj/src/made"
words '"write":["."],"deny_write":["*.c"]' true
is $rc 125 "deny_write of what a task could make: refused"
like "$(err)" '/permissions/deny_write/0' "by its name"
words '"read":["src"]' sh -c "cat $T/proj/src/lib/a.c; cat $T/proj/pub $T/proj/.env; echo x >$T/proj/src/n; true"
is "$(out)" open "without a mode the words are only what they say"
HOME=$T/home
KNIT_A=canary
KNIT_B=canary
export KNIT_A KNIT_B
words '"env":["KNIT_A"]' sh -c 'echo "$KNIT_A,$KNIT_B"'
is "$(out)" "canary," "env: the names that pass"
words '"env":["A=B"]' true
is "$rc $(err | grep -c '/permissions/env/0')" "125 1" "env: what is no name"
words '"console":false' sh -c 'echo out; echo err >&2; exit 3'
is "$rc $(out)" "3 " "console false: the status, and no output"
unlike "$(err)" 'err|cut' "on neither stream"
printf '%s\n' '{"id":"a","argv":["sh","-c","echo out; echo err >&2; echo f >f"],"collect":["f"]}' >"$T/tasks"
ks run --policy "$T/proj/p.json" --tasks "$T/tasks"
is "$(js "$T/out" 'L[0]["verdict"], L[0].get("stdout", ""), L[0].get("stderr", ""), sorted(L[0]["files"])')" "('ok', '', '', ['f'])" "nor in a result; files are no output"
words '"console":true' echo out
is "$(out)" out "console true"
rm -rf "$T/home/.ssh" "$T/home/.config"
left_after "permissions"
done_testing
