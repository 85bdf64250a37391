tr -s ' \t' '\n\n' | awk 'length($0) > length(best) { best = $0 } END { print best }'
