ls /root/ || exit 4
