# Answers with bytes that are no text in any encoding.
import os
os.write(1, bytes(range(256)) + b"\xff\xfe\x00\xc3\x28")
