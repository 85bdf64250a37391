import sys
words = sys.stdin.read().split()
total = 0
for word in words[1:]:
    total += int(word)
sys.stdout.write("%d\n" % total)
