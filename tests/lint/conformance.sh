#!/bin/sh
# tests/lint/conformance.sh [ROOT]: the tests that tests/CONFORMANCE.md names exist.
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$here/../..}" || exit 2
bad=0
for name in $(grep -o '`[a-z0-9_-]*:[a-z0-9_]*`\|`[0-9][0-9a-z-]*\.t`\|`[a-z]*\.py:[a-z0-9_-]*`' tests/CONFORMANCE.md | tr -d '`'); do
	case $name in
	lies.py:*) grep -q "^    \"${name#*:}\":" tests/fault/lies.py ;;
	*.py:*) grep -q "^def test_${name#*:}(" "tests/fault/${name%%:*}" ;;
	transcripts:*) [ -f "tests/sim/transcripts/${name#*:}.txt" ] ;;
	*:*) grep -q "^${name#*:}(void" "tests/unit/${name%:*}.c" 2>/dev/null ||
		grep -q "^${name#*:}(void" "tests/lib_api/${name%:*}.c" 2>/dev/null ;;
	*) [ -f "tests/integ/$name" ] ;;
	esac || {
		echo "tests/CONFORMANCE.md names $name, which is not there"
		bad=1
	}
done
for file in $(grep -o '`tests/[a-z0-9_/]*\.[a-z]*`' tests/CONFORMANCE.md | tr -d '`'); do
	[ -f "$file" ] || {
		echo "tests/CONFORMANCE.md names $file, which is not there"
		bad=1
	}
done
exit $bad
