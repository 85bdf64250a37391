# Every fork that fails ends its process with an exception, the first one too.
import os, time
while True:
    if os.fork() == 0:
        time.sleep(60)
