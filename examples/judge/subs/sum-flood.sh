yes 6
