#!/bin/sh
# 12-install.t: make install into a DESTDIR, use what is there, uninstall.
. "$(dirname "$0")/../lib/tap.sh"
left_before

dest=$T/dest
cd "$t_top" || exit 1
install() {
	make --no-print-directory -s B="$B" DESTDIR="$dest" PREFIX=/usr/local "$@" >"$T/make" 2>&1
}
if ! command -v make >/dev/null; then
	skip "no make here" "make install"
	done_testing
fi
install install
is $? 0 "make install with DESTDIR"
[ -s "$T/make" ] && diag "$(head -n 5 "$T/make")"
inst=$dest/usr/local/bin/knit-sandbox
ok "the program is there" test -x "$inst"
is "$(find "$dest" -type f -perm /022 | wc -l)" 0 "nothing is writable by others"
is "$(find "$dest" -path "$dest/usr/local" -prune -o -type f -print)" "" "nothing outside the prefix"
for page in man1/knit-sandbox.1 man3/knit-task.3 man3/libknit.3 man5/knit-tasks.5 man5/knit-policy.5 man7/knit-lifecycle.7 man7/knit-arena.7 man8/knit-serve.8; do
	ok "page $page" test -s "$dest/usr/local/share/man/$page"
done
# Macros that swallow the rest of their line.
if command -v mandoc >/dev/null; then
	for page in "$dest"/usr/local/share/man/man*/*; do
		mandoc -T utf8 -O width=200 "$page"
	done 2>"$T/err" | sed 's/.\x08//g' >"$T/pages"
	is "$(grep -c '””\| direct\]' "$T/pages")" 0 "the pages: a quotation or an option ends where it should"
	at_least "$(grep -c . "$T/pages")" 1000 "the pages: rendered"
else
	not_here "no mandoc"
fi
ok "the schemas of task and result lines" test -n "$(find "$dest" -name '*.json' -path '*schema*')"
ok "the presets, to read" test -s "$dest/usr/local/share/knit-sandbox/policies/default.json"
watched "$inst" version
is "$rc" 0 "the installed program: version"
watched "$inst" run -- echo fine
is "$rc $(out)" "0 fine" "the installed program: runs, with no file of the checkout"
# Moved elsewhere and alone it works too: stub and presets travel inside it.
mkdir "$T/alone"
cp "$inst" "$T/alone/ks"
watched env -C / "$T/alone/ks" run --policy python -- python3 -c 'print("fine")'
if cgroup_granted || [ $rc = 0 ]; then
	is "$rc $(out)" "0 fine" "a copy of the one file works"
else
	like "$(err)" 'cgroup' "a copy of the one file works as far as the machine allows"
fi
# What was installed is enough to build a module, as the README of the examples has it.
pc() {
	PKG_CONFIG_PATH=$dest/usr/local/lib/pkgconfig pkg-config --define-variable=prefix="$dest/usr/local" "$@" knit-task
}
if command -v pkg-config >/dev/null && command -v cc >/dev/null; then
	like "$(pc --modversion)" '^[0-9]+\.[0-9]+' "knit-task.pc: a version"
	cp -r "$dest/usr/local/share/doc/knit-sandbox/examples/module" "$T/mine"
	# shellcheck disable=SC2046
	ok "an example builds with the installed header alone" \
		cc $(pc --cflags) -shared -fPIC -o "$T/mine/upper.so" "$T/mine/upper.c"
	make -s -C "$T/mine" KNIT="$dest/usr/local/include" >"$T/make" 2>&1
	is $? 0 "the installed examples build by their own makefile"
	ok "and make modules" test -s "$T/mine/hash.so" -a -s "$T/mine/primes.so"
else
	skip "no pkg-config or cc here" "a module built from what was installed"
fi
# The same build put elsewhere: what pkg-config reads follows.
make --no-print-directory -s B="$B" DESTDIR="$T/other" PREFIX=/opt/knit LIBDIR=/opt/knit/lib64 install >"$T/make" 2>&1
is $? 0 "make install with another PREFIX, nothing built anew"
is "$(sed -n 's/^prefix=//p' "$T"/other/opt/knit/lib64/pkgconfig/*.pc | sort -u)" /opt/knit "the .pc files have that prefix"
like "$(cat "$T/other/opt/knit/lib64/pkgconfig/libknit.pc")" '^libdir=\$\{prefix\}/lib64$' "and that folder of libraries"
rm -rf "$T/other"
install uninstall
is $? 0 "make uninstall"
is "$(find "$dest" -type f -o -type l)" "" "uninstall leaves no file"

cd / || exit 1
rm -rf "$T/dest"
left_after "install"
done_testing
