trap '' TERM INT HUP
sleep 60
sleep 60
