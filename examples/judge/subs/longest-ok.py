import sys
best = ""
for word in sys.stdin.read().split():
    if len(word) > len(best):
        best = word
print(best)
