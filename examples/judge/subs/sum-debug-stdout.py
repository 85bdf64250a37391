n = int(input())
print("reading", n, "numbers")
print(sum(map(int, input().split())))
