# Talks on stderr, answers right on stdout.
import sys
n = int(input())
total = 0
for i, x in enumerate(input().split()):
    total += int(x)
    if i < 100:
        print("debug: total is now", total, file=sys.stderr)
print(total)
