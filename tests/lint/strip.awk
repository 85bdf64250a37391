# tests/lint/strip.awk: a C file with its comments blanked (and its strings too with
# -v strings=1), line for line, so that a lint neither trips over a word in a comment nor
# misses a call.
{
	out = ""
	n = length($0)
	for (i = 1; i <= n; i++) {
		c = substr($0, i, 1)
		two = substr($0, i, 2)
		if (incomment) {
			if (two == "*/") {
				incomment = 0
				i++
			}
			continue
		}
		if (quote != "") {
			if (c == "\\") {
				if (!strings)
					out = out two
				i++
				continue
			}
			if (c == quote)
				quote = ""
			else if (strings)
				continue
			out = out c
			continue
		}
		if (two == "/*") {
			incomment = 1
			out = out " "
			i++
			continue
		}
		if (two == "//")
			break
		if (c == "\"" || c == "'")
			quote = c
		out = out c
	}
	quote = ""
	print out
}
