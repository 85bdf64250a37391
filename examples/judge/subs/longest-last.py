# Of several words of the greatest length it takes the last, not the first.
import sys
best = ""
for word in sys.stdin.read().split():
    if len(word) >= len(best):
        best = word
print(best)
