// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"strings"
)

// Unknown returns the sentence for a name that is not in known, with the nearest known name if
// there is one. what is what the name stands for: "option", "policy".
func Unknown[T ~string](what, name string, known []T) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("there is no %s %q; did you mean %q?", what, name, near)
	}
	return fmt.Sprintf("there is no %s %q", what, name)
}

// Texts returns the values of a vocabulary as strings.
func Texts[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// Counted formats a number and a noun, which gets an s unless the number is 1 or it is "series".
func Counted(n int, what string) string {
	if n == 1 || what == "series" {
		return fmt.Sprintf("%d %s", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// longestGuess is the length from which a name is not a typing error.
const longestGuess = 100

// Nearest returns the known name that is the fewest edits away from name, ignoring case: the
// first of several, or "" if all need more edits than half of its letters.
func Nearest[T ~string](name string, known []T) T {
	if len(name) > longestGuess {
		return ""
	}
	letters := []rune(strings.ToLower(name))
	best, bestEdits := T(""), len(letters)/2+1
	for _, k := range known {
		if edits := distance(letters, []rune(strings.ToLower(string(k)))); edits < bestEdits {
			best, bestEdits = k, edits
		}
	}
	return best
}

// distance returns the Levenshtein distance.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			replaced := diagonal
			if x != y {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
