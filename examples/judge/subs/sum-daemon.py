# Leaves a process behind, answers right and ends.
import os, time
n = int(input())
total = sum(map(int, input().split()))
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in (0, 1, 2):
            os.close(fd)
        time.sleep(60)
    os._exit(0)
print(total)
