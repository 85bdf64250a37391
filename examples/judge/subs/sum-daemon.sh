read -r n
read -r line
total=0
for x in $line; do
	total=$((total + x))
done
(trap '' TERM HUP; sleep 60; sleep 60) &
echo "$total"
