# Writes files below /tmp until the file system is full.
i = 0
while i < 4096:
    with open("/tmp/fill%d" % i, "wb") as f:
        f.write(b"x" * (1 << 20))
    i += 1
