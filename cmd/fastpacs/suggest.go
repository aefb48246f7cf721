package main

import "fmt"

// suggest returns ": did you mean X?" for the known name nearest to name, or
// nothing if none is near enough to be a slip.
func suggest(name string, known []string) string {
	best, nearest := "", len(name)/3+2
	for _, k := range known {
		if d := editDistance(name, k); d < nearest {
			best, nearest = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", best)
}

// editDistance counts the bytes to insert, delete or replace to get from a to b
// (Levenshtein), with two swapped neighbours as one step.
func editDistance(a, b string) int {
	before, previous := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			replace := previous[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, previous[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, previous = previous, row
	}
	return previous[len(b)]
}
