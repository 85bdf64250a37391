raise ValueError("no idea how to add")
