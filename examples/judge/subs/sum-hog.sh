x=0123456789abcdef
while :; do
	x=$x$x
done
