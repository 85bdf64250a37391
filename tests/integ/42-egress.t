#!/bin/sh
# 42-egress.t: hosts by name (--allow): what is named is reached, nothing else is, and
# all that was asked for is told.
. "$(dirname "$0")/../lib/tap.sh"

"$PY" -S "$t_lib/netserver.py" "$T" 2>"$T/server-err" &
server=$!
trap 'kill $server 2>/dev/null; t_clean' EXIT
wait_for() { # FILE
	t_try=0
	while [ ! -s "$1" ] && [ $t_try -lt 200 ]; do
		pause 50
		t_try=$((t_try + 1))
	done
}
wait_for "$T/ports"
read -r open secret abstract <"$T/ports"
cp "$t_lib/netclient.py" "$T/nc.py"
chmod 644 "$T/nc.py"
me=localhost:$open
nc() { # OPTIONS -- ARGS of netclient.py
	nc_opts=
	while [ "$1" != -- ]; do
		nc_opts="$nc_opts $1"
		shift
	done
	shift
	# shellcheck disable=SC2086
	ks run --report "$T/report" --ro-bind "$T/nc.py:/nc.py" $nc_opts -- /usr/bin/python3 -S /nc.py "$@"
}
seen() { # of server $1
	grep -c "^$1 " "$T/seen"
}
net() { # Python expression over N, the report's account
	js "$T/report" "(lambda N: $1)(L[0]['network'])"
}
code() { # what a target was answered: CONNECT, SOCKS5
	out | grep -F "$1 " | head -n 1 | cut -d' ' -f2-
}
nobody_else() {
	is "$(seen secret) $(seen abstract)" "0 0" "$1: nobody else heard anything"
}

# ---- what is allowed is reached ----
if command -v curl >/dev/null; then
	ks run --report "$T/report" --allow "$me" -- sh -c "curl -sS http://$me/plain; curl -sSp http://$me/tunnel; curl -sS --proxy \$all_proxy http://$me/socks"
	is "$rc" 0 "curl: works as it is"
	like "$(out)" "^served GET /plain HTTP/1.1 Host: $me odd=0$" "curl: http:// by its proxy, which is not heard of further on"
	like "$(out)" "^served GET /tunnel HTTP/1.1 Host: $me " "curl: CONNECT"
	like "$(out)" "^served GET /socks HTTP/1.1 Host: $me " "curl: SOCKS5 with a name"
	is "$(net '[N["connections"], N["refused"], [h["address"] for h in N["hosts"]]]')" "[3, 0, ['127.0.0.1']]" \
		"three connections, and to which address"
	is "$(net 'N["bytes_in"] == N["hosts"][0]["bytes_in"] > 300 < N["bytes_out"] + 200')" yes "bytes both ways"
	ks run --allow "$me" -- curl -sS "http://localhost:$secret/"
	is "$(out)" "knit-sandbox: localhost:$secret: in /network/allow with another port" "curl: a refusal says why, in words"
else
	skip "no curl" "curl inside"
fi
ks run --allow "$me" -- /usr/bin/python3 -c "import urllib.request as u; print(u.urlopen('http://$me/u').read().decode())"
like "$(out)" "^served GET /u HTTP/1.1 Host: $me" "python's urllib: works as it is"
ks run -- env
unlike "$(out)" '_proxy|_PROXY' "without --allow there is no word of a proxy"
http_proxy=http://10.9.8.7:1 no_proxy=x ks run --allow "$me" --set '/environment/inherit=["http_proxy","no_proxy"]' --env all_proxy=mine -- sh -c 'echo $http_proxy $ALL_PROXY $all_proxy ${no_proxy-none}'
is "$(out)" "http://127.0.0.1:3128 socks5h://127.0.0.1:3128 mine none" "the caller's proxies stay outside; what the policy sets wins"

# ---- every way around ----
nc --policy python --allow "$me" -- ways "$open" "$abstract"
is "$(out | grep -c :) $(out | grep -c THROUGH)" "20 0" "20 ways around the proxy, none leads anywhere"
like "$(out)" '^loopback: ECONNREFUSED' "127.0.0.1 is the sandbox's own"
like "$(out)" '^metadata: ENETUNREACH' "169.254.169.254 has no route"
like "$(out)" '^UDP: EAFNOSUPPORT' "UDP: no socket"
like "$(out)" '^abstract: (ECONNREFUSED|EPERM)' "the machine's abstract sockets: out of reach"
is "$(seen open)" "$(grep -c '^open [GP]' "$T/seen")" "and the allowed server heard of none"
nobody_else "ways around"

name=$(hostname)
getent ahosts "$name" | grep -Eq '^(127|10|172|192|::1|f[cde])' || name=
nc --allow "$me" --allow "${name:-nobody.invalid}:$open" --allow '*.below.invalid:1' -- ask "$me" "LOCALHOST:$open" "localhost.:$open" \
	"127.0.0.1:$open" "[::ffff:127.0.0.1]:$open" "[::1]:$open" "2130706433:$open" "127.1:$open" "0x7f.1:$open" \
	"0.0.0.0:$open" "localhost:$secret" "ip6-localhost:$open" "localhost.localdomain:$open" \
	"169.254.169.254:80" "example.com:443" "below.invalid:1" "a.below.invalid:1" "${name:-nobody.invalid}:$open"
is "$(code "$me"), $(code "LOCALHOST:$open"), $(code "localhost.:$open")" "200 0, 200 0, 200 0" "a name in any case, with its dot"
for t in "127.0.0.1:$open" "[::ffff:127.0.0.1]:$open" "[::1]:$open" "0.0.0.0:$open" "localhost:$secret" "ip6-localhost:$open" \
	"localhost.localdomain:$open" 169.254.169.254:80 example.com:443 below.invalid:1; do
	is "$(code "$t")" "403 2" "not on the list: $t"
done
for t in "2130706433:$open" "127.1:$open" "0x7f.1:$open"; do
	is "$(code "$t")" "400 1" "no name and no address: $t"
done
is "$(code a.below.invalid:1)" "502 4" "below a name of the list; nobody has its address"
if [ -n "$name" ]; then
	is "$(code "$name:$open")" "403 2" "the machine's own name leads to an address that names may not"
	is "$(net '[h["reason"][:40] for h in N["hosts"] if h["host"] == "'"$(echo "$name" | tr A-Z a-z)"'"]')" \
		"['the name leads to an address that is not']" "and that is the reason"
	address=$(getent ahosts "$name" | awk '{print $1; exit}')
	case $address in
	127.0.0.1)
		nc --allow "$name:$open" --allow "$address:$open" -- ask "$name:$open" "$address:$open"
		is "$(code "$name:$open"), $(code "$address:$open")" "200 0, 200 0" "unless the list has that address too"
		;;
	esac
else
	not_here "no name of this machine leads to an address of its own"
fi
nobody_else "by other names"

# ---- hostile words to the proxy ----
for t in 'GET / HTTP/1.1\r\n\r\n=400' "GET http://$me/ HTTP/2.0\r\n\r\n=400" "CONNECT $me HTTP/1.1\r\nA b\r\n\r\n=400" \
	"GET http://u@$me/ HTTP/1.1\r\n\r\n=400" "CONNECT localhost HTTP/1.1\r\n\r\n=400" "GET ftp://$me/ HTTP/1.1\r\n\r\n=400"; do
	nc --allow "$me" -- raw "${t%=*}"
	like "$(out)" "HTTP/1.1 ${t##*=} " "refused: ${t%%\\*}"
done
nc --allow "$me" -- raw "GET http://$me/twice HTTP/1.1\r\nHost: secret.invalid\r\nProxy-Authorization: x\r\n\r\n"
like "$(tail -n 1 "$T/seen")" "^open GET /twice HTTP/1.1" "an http:// request is handed on by its path"
nc --allow "$me" -- raw '\x04\x01\x00\x50'
is "$(out) $(net 'N["refused"]')" "'' 1" "SOCKS4: closed, and counted"
nc --allow "$me" -- raw "$(printf 'GET http://x/%9000s' '' | tr ' ' a)"
like "$(out)" 'HTTP/1.1 431 ' "8 KiB of head and no end: refused"

# ---- much, slowly, and by halves ----
nc --allow "$me" -- many 100 "$me"
is "$(out)" 100 "100 connections at once by one task"
is "$(net '[N["connections"], len(N["hosts"])]')" "[100, 1]" "all of them counted, in one line"
nc --allow "$me" -- half "$me" 300000
is "$(out)" "got 300000 b''" "an end in one direction, and the answer in the other"
nc --allow "$me" -- echo "$me" 20480000
is "$(out)" "back 20480000" "20 MB there and back"
nc --allow "$me" -- flood "$me" 268435456 1000
is "$(out)" "read 1000" "a reader that stops reads what it wants"
is "$(net 'N["bytes_in"] < 64 << 20')" yes "and who floods it is held back"

# (longer than the server, which is Python, needs for all that the first one opens)
hold=1.5
[ "${KNIT_SLOW:-1}" = 1 ] || hold=$(scaled 4)
cat >"$T/tasks" <<X
{"id":"hog","argv":["/usr/bin/python3","-S","/nc.py","hold","400","$me","$hold"]}
{"id":"fine","argv":["/usr/bin/python3","-S","/nc.py","half","$me","10"]}
X
ks run --workers 2 --timeout 300s --tasks "$T/tasks" --ro-bind "$T/nc.py:/nc.py" --allow "$me"
is "$(js "$T/out" 'by["fine"]["stdout"], by["fine"]["network"]["connections"]')" "(\"got 10 b''\\n\", 1)" \
	"a task that opens all it can leaves the others theirs"
is "$(js "$T/out" '50 < int(by["hog"]["stdout"]) <= 256, by["hog"]["network"]["connections"] <= 400')" "(True, True)" \
	"it has 256 at most"
is "$(js "$T/out" 'by["fine"]["usage"]["wall_ms"] < by["hog"]["usage"]["wall_ms"]')" yes "and they do not wait for it"

# ---- one task and the next ----
cat >"$T/tasks" <<X
{"id":"a","argv":["/usr/bin/python3","-S","/nc.py","leave","$me"]}
{"id":"b","argv":["/usr/bin/python3","-S","/nc.py","look"]}
{"id":"c","argv":["/usr/bin/python3","-S","/nc.py","half","$me","10"]}
X
ks run --workers 1 --tasks "$T/tasks" --ro-bind "$T/nc.py:/nc.py" --allow "$me" --report "$T/report"
is "$(js "$T/out" 'by["a"]["stdout"], by["a"]["network"]["connections"]')" "('left\\n', 1)" "one leaves connections, a listener and a child"
is "$(js "$T/out" 'by["b"]["stdout"]')" 'ECONNREFUSED' "the next does not find its listener"
is "$(js "$T/out" 'by["b"]["network"]["connections"] + by["b"]["network"]["refused"]')" 0 "and answers for none of its connections"
is "$(js "$T/out" '[by["c"]["network"][k] for k in ("connections", "refused")]')" "[1, 0]" "nor the one after that"
is "$(js "$T/out" 'len(set(l["worker"] for l in L))')" 1 "all on one worker"
is "$(net '[N["connections"], N["refused"] <= 20]')" "[2, True]" "the batch's report has what all asked for"

# ---- what is told ----
nc --allow "$me" --trace "$T/trace" -- ask "$me" example.com:443 "localhost:$secret"
is "$(net '[N["connections"], N["refused"]]')" "[2, 4]" "made and refused"
is "$(net 'sorted(h.get("allow", "-") for h in N["hosts"])')" "['-', '--allow example.com:443', '--allow localhost:$secret']" \
	"what would allow it is said"
is "$("$PY" -S -c 'import json,sys; print(sum(1 for e in json.load(open(sys.argv[1])) if e.get("cat") == "net" and e["ph"] == "b"))' "$T/trace")" 6 \
	"each connection is in the trace"
t_try=0
while [ "$(cat "$T/now")" != 0 ] && [ $t_try -lt 100 ]; do
	pause 50
	t_try=$((t_try + 1))
done
is "$(cat "$T/now")" 0 "none of all the connections is open any more"
is "$left" 0 "no process is left"

# ---- what cannot be ----
ks run --allow 'example.com' -- true
is $rc 125 "no port: refused"
one_clear_line 'HOST:PORT' "no port"
for t in '*:80' '1.2.3:80' 'http://x:80' 'a b:80' 'x:0' 'x:65536' '::1:80' '[::1]' '*.1.2.3.4:80' '224.0.0.1:80' 'x:80/' '-x:80'; do
	ks run --allow "$t" -- true
	is $rc 125 "--allow $t: refused"
	one_clear_line '/network/allow|HOST:PORT' "--allow $t"
done
ks run --set '/seccomp/groups/remove=["@network-io"]' --allow a.b:80 -- true
is $rc 125 "a policy whose filter has no sockets: refused"
one_clear_line '@network-io' "no sockets"
ks run --network host --set '/network/allow=["a:1"]' -- true
one_clear_line '/network/allow' "a list without its mode"
printf '{"version":1,"permissions":{"net":["%s"]}}' "$me" >"$T/p.json"
nc --policy "$T/p.json" -- ask "$me" example.com:443
is "$(code "$me"), $(code example.com:443)" "200 0, 403 2" "permissions.net is the same list"
nc --policy "$T/p.json" --allow example.com:443 -- ask "$me"
is "$(code "$me")" "200 0" "and adds up with --allow"
ks run --policy "$T/p.json" --network none -- true
one_clear_line '/permissions/net' "a network of none, said by name"
ks policy explain "$T/p.json"
like "$(out | tr -s ' \n' ' ')" "Network Of its own none\\. Through a broker of ours it reaches localhost \\(port $open\\) and nothing else" "policy explain has the hosts in words"

printf '{"version":1,"network":{"mode":"allow","allow":["a.b:80"]}}' >"$T/p.json"
for f in oci docker k8s systemd; do
	ks policy export --format $f "$T/p.json"
	like "$rc $(err)" '125 .*/network/mode' "export to $f, which has no such proxy: refused"
done
ks run --module "$T/nc.py" --allow a.b:80 --call x -- 2>/dev/null
one_clear_line '/network/mode' "modules"
nobody_else "in all"
done_testing
