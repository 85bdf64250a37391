def count(n):
    return 1 + count(n - 1)
print(count(10 ** 9))
