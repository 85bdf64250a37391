for path in ("/usr/bin/sum", "/etc/passwd", "/sum", "/dev/sum", "/home/sum"):
    try:
        open(path, "w").write("owned")
        print("wrote", path)
    except OSError:
        pass
raise SystemExit(4)
