sleep 60
echo 6
