// SPDX-License-Identifier: Apache-2.0

package source

import (
	"regexp"
	"slices"
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

// withoutTerms are the flags of reservation create and host maintenance that the command on the page of a reservation
// does not have, and why.
var withoutTerms = map[string]string{
	"end":             "the start and the duration say it",
	"dry-run":         "it books nothing",
	"wait":            "it is about the command, and no term of the reservation",
	"wait-timeout":    "it is about the command",
	"idempotency-key": "it is about one request",
}

// The command that books the same has each term that a flag has, and no option that the command line does not know.
func TestTheCommandOnThePageHasEachTermOfAReservation(t *testing.T) {
	_, text, _ := strings.Cut(repository.Read(t, "../../pkg/dashboard/page/command.js"), "function times(")
	options := repository.Matches(`\['([a-z-]+)',`, text)
	flags := map[string]bool{}
	for _, file := range []string{"reservation_create.go", "host_maintenance.go"} {
		for _, flag := range repository.Matches(`flags\.\w*Var\([^"\n]*, "([a-z-]+)"`, repository.Read(t, "../../cmd/almanac/"+file)) {
			flags[flag] = true
		}
	}
	if len(flags) < 15 {
		t.Fatalf("the flags are %v", flags)
	}
	for flag := range flags {
		if !slices.Contains(options, flag) && withoutTerms[flag] == "" {
			t.Errorf("the command on the page lacks --%s: add it to command.js, or to withoutTerms with the reason", flag)
		}
	}
	for flag := range withoutTerms {
		if !flags[flag] || slices.Contains(options, flag) {
			t.Errorf("withoutTerms names --%s, which the command has or no command knows", flag)
		}
	}
	for _, option := range options {
		if !flags[option] {
			t.Errorf("the command on the page has --%s, which no command knows", option)
		}
	}
}
