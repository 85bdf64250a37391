n = int(input())
print(sum(all(i % d for d in range(2, int(i ** 0.5) + 1)) for i in range(1, n + 1)))
