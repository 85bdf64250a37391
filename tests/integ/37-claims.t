#!/bin/sh
# 37-claims.t: workers that take calls from one place are killed, and stopped, every 10 ms:
# each call is answered once, run once, and right. As many calls as take a few seconds; with
# N=100000 it is a test of its own: tests/fault/claims.py.
cd "$(dirname "$0")/../.." || exit 1
PY=/usr/bin/python3
[ -x $PY ] || PY=python3
N=1500 exec $PY tests/fault/claims.py kills stops
