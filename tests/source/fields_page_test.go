// SPDX-License-Identifier: Apache-2.0

package source

import (
	"regexp"
	"slices"
	"strings"
	"testing"

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
	request, view := repository.Read(t, "../../pkg/dashboard/page/form-request.js"), repository.Read(t, "../../pkg/dashboard/page/form-view.js")
	read := repository.Matches(`\bfields\.(\w+)`, request)
	for _, names := range repository.Matches(`(?m)^(?:const|function) (?:timesOf|sizeOf|namesOf)[ =(]+\{([\w, ]+)\}`, request) {
		read = append(read, strings.Split(names, ", ")...)
	}
	if len(read) < 15 {
		t.Fatalf("the request reads %v", read)
	}
	for _, field := range read {
		set := regexp.MustCompile(`(?:edit\(|input\(form, |number\(form, |timeOf\(form, )'` + field + `'`).MatchString(view)
		if set == (notFilledIn[field] != "") {
			t.Errorf("form-request.js reads %s, an input sets it: %v; notFilledIn says %q", field, set, notFilledIn[field])
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
