// SPDX-License-Identifier: Apache-2.0

package source

import (
	"regexp"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

var (
	// textOrKey matches texts, which are no names of elements, and keys of objects.
	textOrKey = regexp.MustCompile("'[^'\n]*'|`[^`]*`|\\b[\\w-]+: ")
	// word matches a name with the property that is read.
	word = regexp.MustCompile(`(\.?\b\w+)(\.\w+)?\b`)
)

// placed returns the names in the source of an element, and of the elements that it contains: those that are made by h or
// field in the function.
func placed(function, element string) map[string]bool {
	found := map[string]bool{}
	var add func(source string)
	add = func(source string) {
		for _, m := range word.FindAllStringSubmatch(textOrKey.ReplaceAllString(source, ""), -1) {
			if name := m[1]; (m[2] == "" || m[2] == ".element") && !found[name] {
				found[name] = true
				made := regexp.MustCompile(`(?s)\b` + regexp.QuoteMeta(name) + ` =\s(?:[\w.]+\s+\? )?(?:h|field)\((.*?)(?:;\n|,\n\s+\w+ = )`)
				if parts := made.FindStringSubmatch(function); parts != nil {
					add(parts[1])
				}
			}
		}
	}
	add(element)
	return found
}

// An input of which a request has the value, and which is in no element, is one that nobody can fill in.
func TestEachInputThatARequestReadsIsOnThePage(t *testing.T) {
	for _, form := range []struct {
		file, function string
		// reads is where the part that reads the inputs begins, and element where the element begins that contains them.
		reads, element string
	}{
		{"booking.js", "export function bookingForm(", "\n  function request() {", "\n  const form = h("},
		{"booking.js", "export function changeForm(", "{", "\n  return h("},
		{"reservation.js", "  function changes(", "{", "\n    return ["},
	} {
		_, function, begins := strings.Cut(repository.Read(t, "../../pkg/dashboard/page/"+form.file), form.function)
		indent, _, _ := strings.Cut(form.function, "function")
		function, _, ends := strings.Cut(function, "\n"+strings.TrimPrefix(indent, "export ")+"}\n")
		_, reads, readsInputs := strings.Cut(function, form.reads)
		if strings.HasPrefix(form.reads, "\n") {
			reads, _, _ = strings.Cut(reads, "\n  }\n")
		}
		_, element, hasElement := strings.Cut(function, form.element)
		if !begins || !ends || !readsInputs || !hasElement {
			t.Fatalf("%s: %s is not as the test reads it: %v %v %v %v", form.file, form.function, begins, ends, readsInputs, hasElement)
		}
		read := repository.Matches(`\b(\w+)\.(?:value|checked)\b`, reads)
		if len(read) == 0 {
			t.Errorf("%s: %s reads no input", form.file, form.function)
		}
		on := placed(function, element)
		for _, input := range read {
			if !on[input] {
				t.Errorf("%s: %s reads %s, which is in no element of the form", form.file, form.function, input)
			}
		}
	}
}
