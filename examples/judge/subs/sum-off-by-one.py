n = int(input())
print(sum(int(x) for x in input().split()[:n - 1]))
