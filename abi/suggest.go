package abi

import (
	"strconv"
	"strings"
)

// maxGuess bounds the length of compared words, in bytes, and maxNamed the number of known
// words that a suggestion lists.
const (
	maxGuess = 64
	maxNamed = 12
)

// Nearest returns the known word that word most likely misspells, by edit distance without
// regard to case, or "" if none is close. Words of more than 64 bytes match nothing.
func Nearest(word string, known []string) string {
	word = strings.ToLower(word)
	best, least := "", max(1, len(word)/3)+1
	if word == "" || len(word) > maxGuess {
		return ""
	}
	for _, k := range known {
		if len(k) > maxGuess {
			continue
		}
		if d := distance(word, strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// Suggest names the known word closest to word, or lists the known words. It never repeats
// word itself.
func Suggest(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	switch {
	case len(known) == 0:
		return "there are none"
	case len(known) > maxNamed:
		return "there are " + strings.Join(known[:maxNamed], ", ") + " and " + strconv.Itoa(len(known)-maxNamed) + " more"
	}
	return "there are " + strings.Join(known, ", ")
}

// distance is the optimal string alignment distance of a and b, in bytes.
func distance(a, b string) int {
	var rows [3][maxGuess + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
