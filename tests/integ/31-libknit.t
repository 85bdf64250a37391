#!/bin/sh
# 31-libknit.t: libknit as somebody else finds it: installed, by pkg-config, from C and C++,
# shared and static; and what its libraries export.
. "$(dirname "$0")/../lib/tap.sh"

dest=$T/dest
CC=${CC:-cc}
if ! command -v "$CC" >/dev/null 2>&1 || ! command -v pkg-config >/dev/null 2>&1; then
	skip "no compiler or no pkg-config" "an embedder's build"
	done_testing
	exit
fi
# Built already: only put elsewhere. The folder may be another user's.
if ! make -s -C "$t_top" B="$B" PREFIX=/opt/knit DESTDIR="$dest" install >"$T/log" 2>&1; then
	tail -n 3 "$T/log" | sed 's/^/# /'
	skip "make install does not work for this user" "an embedder's build"
	done_testing
	exit
fi
lib=$dest/opt/knit/lib
ok "the shared library by its soname" test -e "$lib/libknit.so.0"
ok "the static one" test -e "$lib/libknit.a"
ok "headers" test -e "$dest/opt/knit/include/knit/pool.h" -a -e "$dest/opt/knit/include/knit/value.h"
ok "the manual page" test -e "$dest/opt/knit/share/man/man3/libknit.3"
is "$(readelf -d "$lib/libknit.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" libknit.so.0 "soname"

# ---- names ----
nm -D --defined-only "$lib/libknit.so" | awk '{ print $NF }' | sed 's/@.*//' | sort -u >"$T/exported"
is "$(grep -vE '^(knit_[a-z0-9_]+|KNIT_0)$' "$T/exported" | tr '\n' ' ')" "" "knit_* only is exported"
sed -nE 's/.*[ *](knit_(policy|pool|job|batch|outcome|layer|verdict|error|debug|host)_[a-z_]+)\(.*/\1/p' \
	"$dest/opt/knit/include/knit/pool.h" | sort -u >"$T/declared"
is "$(grep -v KNIT_0 "$T/exported" | diff - "$T/declared" | tr '\n' ' ')" "" \
	"exported is what the header declares, all of it"
is "$(nm --defined-only -g "$lib/libknit.a" 2>/dev/null | awk 'NF == 3 { print $3 }' |
	grep -vE '^(_*kn(it)?_|__(asan|odr|tsan|ubsan)|DW\.ref)' | sort -u | tr '\n' ' ')" "" \
	"the static one has names with our prefix only"
for f in $(cat "$T/declared"); do
	grep -q "$f" "$t_top/man/libknit.3" || echo "$f"
done >"$T/unsaid"
is "$(tr '\n' ' ' <"$T/unsaid")" "" "each is in libknit(3)"

# ---- from C and C++ ----
PKG_CONFIG_PATH=$lib/pkgconfig
PKG_CONFIG="pkg-config --define-variable=prefix=$dest/opt/knit"
export PKG_CONFIG_PATH PKG_CONFIG
is "$($PKG_CONFIG --modversion libknit)" "$("$KS_REAL" version | sed -n '1s/^knit-sandbox //p' | cut -d' ' -f1)" \
	"pkg-config knows the version"
printf '#include <knit/pool.h>\n#include <knit/task.h>\nint main(void) { struct knit_error e = KNIT_ERROR_NONE; return e.kind; }\n' >"$T/h.c"
cp "$T/h.c" "$T/h.cc"
for std in c11 c17 gnu11; do
	ok "the headers in $std, without a warning" "$CC" -std=$std -Wall -Wextra -Wpedantic -Wstrict-prototypes \
		-Werror $($PKG_CONFIG --cflags libknit) -fsyntax-only "$T/h.c"
done
if command -v "${CXX:-g++}" >/dev/null 2>&1; then
	for std in c++11 c++20; do
		ok "and in $std" "${CXX:-g++}" -std=$std -Wall -Wextra -Wpedantic -Werror \
			$($PKG_CONFIG --cflags libknit) -fsyntax-only "$T/h.cc"
	done
else
	not_here "no C++ compiler"
fi

# ---- the example ----
example() { # NAME ARGS-OF-MAKE...
	name=$1
	shift
	make -s -C "$t_top/examples/embed" OUT="$T/$name" CC="$CC" "$@" >"$T/log" 2>&1
	ok "$name: the example is built" test -x "$T/$name/pool"
	[ -x "$T/$name/pool" ] || sed 's/^/# /' "$T/log"
	LD_LIBRARY_PATH=$lib "$T/$name/pool" 'echo hello' 'exit 3' >"$T/out" 2>"$T/err"
	is $? 0 "$name: it runs"
	is "$(sort "$T/out" | tr '\n' '|')" "echo hello: ok|exit 3: exit 3|hello|" "$name: it says how the commands ended"
	is "$(cat "$T/err")" "" "$name: and nothing else"
	printf '{"id":"a","argv":["sh","-c","echo kept >k"],"keep":["k"]}\n{"id":"b","argv":["cat","k"],"after":["a"],"files":{"k":{"from":"a/k"}}}\n' |
		LD_LIBRARY_PATH=$lib "$T/$name/lines" >"$T/out" 2>"$T/err"
	is "$? $(js "$T/out" 'len(L), by["b"]["verdict"], by["b"]["stdout"].strip()')" "0 (2, 'ok', 'kept')" \
		"$name: task lines become results"
}
if nm -D "$lib/libknit.so" | grep -qE '__(asan|tsan)_'; then
	not_here "a sanitizer's runtime is in the library: a plain program cannot load it"
else
	example shared
	is "$(readelf -d "$T/shared/pool" | grep -c 'NEEDED.*libknit.so.0')" 1 "it names the library by its soname"
	if printf 'int main(void) { return 0; }\n' >"$T/s.c" &&
		"$CC" -static -o "$T/s" "$T/s.c" $(pkg-config --static --libs libseccomp jansson libcap) 2>/dev/null; then
		example static STATIC=y
	else
		not_here "no static libraries to link with"
	fi
fi
done_testing
