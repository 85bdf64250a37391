cat /etc/shadow >/tmp/copy || exit 4
cat /tmp/copy
