while :; do
	echo "still thinking about the sum, please wait, this takes a while"
done >&2
