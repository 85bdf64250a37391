# Right, and far too slow for the second run.
n = int(input())
print(sum(all(i % d for d in range(2, i)) for i in range(2, n + 1)))
