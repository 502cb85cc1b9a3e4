// SPDX-License-Identifier: Apache-2.0

package source

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/repository"
)

// notFilledIn are the fields of the form that a request reads and no input sets, and why.
var notFilledIn = map[string]string{
	"by":      "it says which of the end and the length the user has set last",
	"filter":  "the editor of the filter sets it, which has events of its own: editors.test.js",
	"terms":   "they are those of the reservation that is booked again; withTerms takes them or not",
	"unadded": "it is what is typed in the editor of the filter and not added",
	"unread":  "it is what of the wish in words is not understood",
}

// A field that a request reads and that no input sets is one that nobody can fill in.
func TestEachInputThatARequestReadsIsOnThePage(t *testing.T) {
	script := func(name string) string { return repository.Read(t, "../../pkg/dashboard/page/"+name) }
	request, view := script("form-request.js")+script("form-place.js")+script("offers.js"), script("form-view.js")+script("form-place.js")+script("offers.js")
	read := repository.Matches(`(?:^|[^-\w])fields\.(\w+)`, request)
	for _, names := range repository.Matches(`(?m)^(?:const|function) (?:timesOf|sizeOf|namesOf|mostOf|longestOf)[ =(]+\{([\w, ]+)\}`, request) {
		read = append(read, strings.Split(names, ", ")...)
	}
	if len(read) < 20 {
		t.Fatalf("the request reads %v", read)
	}
	_, first, _ := strings.Cut(repository.Read(t, "../../pkg/dashboard/page/form-fields.js"), "\n  const first = {\n")
	first, _, _ = strings.Cut(first, "\n  };\n")
	_, place, _ := strings.Cut(script("form-place.js"), "\nexport const fieldsOfPlace = ")
	place, _, _ = strings.Cut(place, "\n});\n")
	values := repository.Matches(`(?m)^ +(\w+):`, first+"\n"+place)
	for _, field := range read {
		if !slices.Contains(values, field) {
			t.Errorf("a request reads %s, which has no value at first: add it to fieldsFrom of form-fields.js", field)
		}
		set := regexp.MustCompile(`(?:edit\(|input\(form, |number\(form, |timeOf\(form, )'` + field + `'`).MatchString(view)
		if set == (notFilledIn[field] != "") {
			t.Errorf("a request reads %s, an input sets it: %v; notFilledIn says %q", field, set, notFilledIn[field])
		}
	}
}

// bookedAgain returns the keys of a reservation that the form takes when its user books the same again.
func bookedAgain(t *testing.T) (keys []string) {
	t.Helper()
	_, text, _ := strings.Cut(repository.Read(t, "../../pkg/dashboard/page/form-fields.js"), "\nconst termsOf = ")
	text, _, _ = strings.Cut(text, "\nconst timeOf = ")
	keys = repository.Matches(`\bone\.(\w+)`, text)
	for _, names := range repository.Matches(`(?m)^function otherTerms\(\{([^}]+)\}\)`, text) {
		for name := range strings.SplitSeq(names, ", ") {
			key, _, _ := strings.Cut(name, ":")
			keys = append(keys, key)
		}
	}
	if len(keys) < 12 {
		t.Fatalf("termsOf and otherTerms take %v", keys)
	}
	return keys
}

// A field that the page can change has its form, with the id of its input, and the sentence after the change.
func TestEachFieldThatThePageChangesHasItsFormAndItsWords(t *testing.T) {
	state, view := repository.Read(t, "../../pkg/dashboard/page/reservation-fields.js"), repository.Read(t, "../../pkg/dashboard/page/reservation-change.js")
	keysOf := func(name string) []string {
		_, text, found := strings.Cut(state, "const "+name+" = {")
		if !found {
			t.Fatalf("reservation-fields.js has no %s", name)
		}
		text, _, _ = strings.Cut(text, ";\n")
		return repository.Matches(`\b(\w+): (?:\w+ =>|')`, text)
	}
	_, view, _ = strings.Cut(view, "\nexport function changes(")
	view, _, _ = strings.Cut(view, "\n}\n")
	words := slices.DeleteFunc(keysOf("done"), func(key string) bool { return key == "reason" }) // the name of maintenance
	want := keysOf("values")
	if len(want) < 3 {
		t.Fatalf("the page changes %v", want)
	}
	for where, keys := range map[string][]string{
		"written": keysOf("written"), "fieldIDs": keysOf("fieldIDs"), "done": words, "a form of changes": repository.Matches(`\bform\(\s*'(\w+)'`, view),
	} {
		slices.Sort(keys)
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), keys); diff != "" {
			t.Errorf("fields that the page changes (-values +%s):\n%s", where, diff)
		}
	}
}

// withoutTerms are the flags of reservation create and host maintenance that their command on the page of a reservation
// does not have, and why.
var withoutTerms = map[string]string{
	"end":             "the start and the duration say it",
	"notice":          "the command books the present time, which has no window",
	"hold":            "the reservation is confirmed, or over, when somebody books the same again",
	"wait-until":      "there was room, or the wait is over, when somebody books the same again",
	"dry-run":         "it books nothing",
	"wait":            "it is about the command, and no term of the reservation",
	"wait-timeout":    "it is about the command",
	"idempotency-key": "it is about one request",
}

// The command that books the same has each term that a flag has, and no option that the command line does not know.
func TestTheCommandOnThePageHasEachTermOfAReservation(t *testing.T) {
	_, text, _ := strings.Cut(repository.Read(t, "../../pkg/dashboard/page/command.js"), "function times(")
	times, text, _ := strings.Cut(text, "\nexport function command(")
	text, _, _ = strings.Cut(text, "\n}\n")
	maintenance, create, _ := strings.Cut(text, "\n  }\n")
	known := map[string]bool{}
	for file, text := range map[string]string{"reservation_create.go": create, "host_maintenance.go": maintenance} {
		options := repository.Matches(`\['([a-z-]+)',`, times+text)
		source := repository.Read(t, "../../cmd/almanac/"+file)
		if strings.Contains(source, "togetherFlags") {
			source += repository.Read(t, "../../cmd/almanac/together.go")
		}
		flags := repository.Matches(`flags\.\w*Var\([^"\n]*, "([a-z-]+)"`, source)
		if len(flags) < 6 {
			t.Fatalf("the flags of %s are %v", file, flags)
		}
		for _, flag := range flags {
			known[flag] = true
			if slices.Contains(options, flag) == (withoutTerms[flag] != "") {
				t.Errorf("the command on the page has --%s of %s: %v; withoutTerms says %q: add it to command.js, or state the reason there", flag, file, withoutTerms[flag] != "", withoutTerms[flag])
			}
		}
		for _, option := range options {
			if !slices.Contains(flags, option) {
				t.Errorf("the command on the page has --%s, which %s does not know", option, file)
			}
		}
	}
	for flag := range withoutTerms {
		if !known[flag] {
			t.Errorf("withoutTerms names --%s, which no command knows", flag)
		}
	}
}
