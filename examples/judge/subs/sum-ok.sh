read -r n
read -r line
total=0
for x in $line; do
	total=$((total + x))
done
echo "$total"
