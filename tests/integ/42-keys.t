#!/bin/sh
# 42-keys.t: what each key of a policy does, asked from inside; see tests/keys/keys.py.
. "$(dirname "$0")/../lib/tap.sh"
chmod 755 "$T"
KS=$KS_REAL B=$B T=$T exec "$PY" -S "$t_top/tests/keys/keys.py"
