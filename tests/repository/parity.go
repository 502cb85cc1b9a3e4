// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"regexp"
	"strings"
	"testing"
)

// Parity returns the words of a chapter of docs/parity.md, by the name in their row.
func Parity(t *testing.T, chapter string) map[string]string {
	t.Helper()
	_, text, _ := strings.Cut(Read(t, Root+"/docs/parity.md"), "\n## "+chapter+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	_, text, _ = strings.Cut(text, "|---|---|---|\n")
	said := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `?([^|`]+)`? \\| ([^|]*) \\|").FindAllStringSubmatch(text, -1) {
		name, word := row[1], row[2]
		if _, twice := said[name]; twice {
			t.Errorf("%s: %s has two rows", chapter, name)
		}
		said[name] = word
	}
	return said
}
