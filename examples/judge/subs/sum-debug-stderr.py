# Talks a lot on stderr, answers right on stdout.
import sys
n = int(input())
total = 0
for x in input().split():
    total += int(x)
    print("debug: total is now", total, file=sys.stderr)
print(total)
