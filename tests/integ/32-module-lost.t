#!/bin/sh
# 32-module-lost.t: a call that had begun is not run again unasked, whatever took its
# worker; one that had not begun is, and no attempt is counted.
. "$(dirname "$0")/../lib/tap.sh"
M=$B/tests/module/hostile.so

"$PY" - >"$T/tasks" <<'X'
import json
print(json.dumps({"id": "begun", "call": "deaf_ms", "value": 20000}))
for i in range(5):
    print(json.dumps({"id": "behind%d" % i, "call": "echo", "value": str(i)}))
X
# Kill the sandbox around the call, launcher and stub with it.
lost() { # ARGS...
	"$KS" run --module "$M" --workers 1 --debug lifecycle --tasks "$T/tasks" "$@" >"$T/out" 2>"$T/err" &
	pid=$!
	# (that it was handed over does not say that it has begun)
	wait_deaf $pid 1
	kill -9 "$(sed -n 's/.* spawned pid=\([0-9]*\) .*/\1/p' "$T/err" | head -n 1)"
	wait $pid
	rc=$?
}
lost
is "$rc $(js "$T/out" 'by["begun"]["verdict"]')" "1 worker-lost" "a call whose sandbox is killed is lost"
is "$(grep -c 'task begun slot' "$T/err")" 1 "and was given to nobody else"
is "$(js "$T/out" '[(by["behind%d" % i]["verdict"], by["behind%d" % i]["value"], by["behind%d" % i]["attempt"]) for i in range(5)] == [("ok", str(i), 1) for i in range(5)]')" yes \
	"those behind it are run elsewhere, at their first attempt"
"$PY" - "$(scaled 2000)" >"$T/tasks" <<'X'
import json, sys
print(json.dumps({"id": "begun", "call": "deaf_ms", "value": int(sys.argv[1])}))
X
lost --retries 1
is "$rc $(js "$T/out" '(by["begun"]["verdict"], by["begun"]["attempt"])')" "0 ('ok', 2)" "with a retry: run again, and that is said"

done_testing
