# A task may start programs of its own.
import subprocess, sys
words = sys.stdin.read().split()
expr = " + ".join("(%s)" % w for w in words[1:11])
if len(words) > 11:
    print(sum(map(int, words[1:])))
else:
    sys.stdout.write(subprocess.run(["sh", "-c", "echo $(( %s ))" % expr],
                                    stdout=subprocess.PIPE).stdout.decode())
