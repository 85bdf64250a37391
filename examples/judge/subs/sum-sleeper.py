import time
time.sleep(60)
print(6)
