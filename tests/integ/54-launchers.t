#!/bin/sh
# 54-launchers.t: the same examples through every launcher: the same results but for usage
# and worker. KNIT_LAUNCHER and KNIT_IMAGE (tap.sh): which alone is compared with bwrap.
compared=${KNIT_LAUNCHER:-} compared_args=${KNIT_IMAGE:+--set /launcher/image=$KNIT_IMAGE}
unset KNIT_LAUNCHER KNIT_IMAGE # each is named below
. "$(dirname "$0")/../lib/tap.sh"
left_before
runtime=
for dir in /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin; do
	[ -x "$dir/runc" ] && runtime=oci:runc
done
[ -n "$runtime" ] || [ -n "$compared" ] || lacking "no runc here" "the examples through oci:runc"
who=user
[ -z "$root" ] || who=root
mkdir "$T/shown" "$T/writable" "$T/hidden"
chmod 777 "$T/writable"
echo canary | tee "$T/hidden/canary" >"$T/shown/canary"
chmod 666 "$T/hidden/canary"
echo plain >"$T/shown/plain"
printf '\177ELF\002\001\001\000garbage' >"$T/shown/elf"
printf '#!/nosuch/interpreter\n' >"$T/shown/interpreter"
printf '#!/bin/sh\necho "$0" "$@"\n' >"$T/shown/script"
chmod 755 "$T/shown/elf" "$T/shown/interpreter" "$T/shown/script"
"$PY" -S "$t_lib/examples.py" lines "$T/shown" "$T/writable" "$T/hidden" >"$T/tasks"
slowly "$T/tasks"
at_least "$(wc -l <"$T/tasks")" 60 "enough examples"

through() { # LAUNCHER
	watch_opts="--limit 300"
	bind=--bind
	[ "$1$root" != oci:docker1 ] || bind=--ro-bind # it refuses the other
	# shellcheck disable=SC2086
	ks run --launcher "$1" ${2-} --workers 4 --quiet --set /timeouts/grace_ms=5000 --ro-bind "$T/shown" "$bind" "$T/writable" --tasks "$T/tasks"
	mv "$T/out" "$T/results-$1"
	is "$(wc -l <"$T/results-$1")" "$(wc -l <"$T/tasks")" "$1: a result for each"
}
through bwrap
for launcher in ${compared:-direct $runtime}; do
	if [ "$launcher" = direct ]; then # 52-direct.t has what it needs
		ks run --launcher direct -- true
		if err | grep -q 'layer landlock: required for /launcher/type'; then
			not_here "launcher direct: $(head -n 1 "$T/err")"
			continue
		fi
	fi
	through "$launcher" "$compared_args"
	"$PY" -S "$t_lib/examples.py" judge "$launcher" "$who" "$T/results-bwrap" "$T/results-$launcher" >"$T/judged" 2>&1
	while read -r line; do
		case $line in
		"ok "*) pass "$launcher: ${line#ok }" ;;
		*) fail_because "$line" "$launcher" ;;
		esac
	done <"$T/judged"
	at_least "$(grep -c '^ok ' "$T/judged")" 60 "$launcher: judged"
done
is "$(cat "$T/hidden/canary") $(ls "$T/writable")" "canary " "nothing outside has changed"
left_after "examples through every launcher"
done_testing
