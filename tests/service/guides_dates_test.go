// SPDX-License-Identifier: Apache-2.0

package service

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// dayOfCalendar matches a day of the calendar, which is over one day.
var dayOfCalendar = regexp.MustCompile(`\b20\d\d-\d\d-\d\d`)

// A reader pastes commands, flags in tables, the examples of the commands' help, and the requests of the
// API's contract. None of them has a day, so that they work on any.
func TestNothingThatAReaderPastesHasADayThatPasses(t *testing.T) {
	for path, list := range pagesWithCommands(t) {
		for _, c := range list {
			if found := dayOfCalendar.FindString(c.command); found != "" {
				t.Errorf("%s has %s in %s", path, found, c.command)
			}
		}
		for _, flags := range repository.Matches("`(--[^`]*)`", repository.Read(t, "../../"+path)) {
			if found := dayOfCalendar.FindString(flags); found != "" {
				t.Errorf("%s has %s in %s", path, found, flags)
			}
		}
	}
	for _, program := range []string{"almanac", "almanacd", "almanac-power"} {
		folder := t.TempDir()
		built.Shell(t, ".", nil, filepath.Join(built.Commands(), program), "manual", folder)
		pages, err := os.ReadDir(folder)
		if err != nil || len(pages) == 0 {
			t.Fatal(err)
		}
		for _, page := range pages {
			_, examples, _ := strings.Cut(strings.ReplaceAll(repository.Read(t, filepath.Join(folder, page.Name())), `\-`, "-"), ".SH EXAMPLE")
			if found := dayOfCalendar.FindString(examples); found != "" {
				t.Errorf("an example of %s has %s", page.Name(), found)
			}
		}
	}
	for _, path := range []string{"../../pkg/api/openapi.yaml", "../../pkg/api/openapi-blazar.yaml"} {
		var contract map[string]any
		if err := yaml.Unmarshal([]byte(repository.Read(t, path)), &contract); err != nil {
			t.Fatal(err)
		}
		requests := 0
		eachExample(contract, false, false, func(text string) {
			requests++
			if found := dayOfCalendar.FindString(text); found != "" {
				t.Errorf("%s has %s in the example of a request", path, found)
			}
		})
		if requests == 0 {
			t.Errorf("%s has no example of a request", path)
		}
	}
}

// eachExample calls what with each text in the examples of requests in a part of a contract; request and
// example are true within such parts.
func eachExample(part any, request, example bool, what func(string)) {
	switch part := part.(type) {
	case string:
		if request && example {
			what(part)
		}
	case []any:
		for _, inner := range part {
			eachExample(inner, request, example, what)
		}
	case map[string]any:
		for name, inner := range part {
			isRequest, isExample := strings.HasPrefix(name, "requestBod"), name == "example" || name == "examples"
			eachExample(inner, request || isRequest, example || isExample, what)
		}
	}
}
