import time
x = bytearray(1 << 30)
time.sleep(60)
