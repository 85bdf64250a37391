# Never reads its input, which is larger than a pipe holds in one of the runs.
print(6)
