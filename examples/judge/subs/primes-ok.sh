read -r n
awk -v n="$n" 'BEGIN {
	for (i = 2; i <= n; i++) {
		if (i in composite) continue
		count++
		for (j = i * i; j <= n; j += i) composite[j]
	}
	print count + 0
}'
