// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/tests/repository"
)

func TestThePageOnReleasesHasTheTablesOfTheCode(t *testing.T) {
	page := repository.Read(t, "../../docs/releases.md")
	var want strings.Builder
	for _, r := range release.Known() {
		fmt.Fprintf(&want, "| %s | %d | 2.%d | 1.%d |\n", r.Name(), r.Nova(), r.Microversion(), r.ImageProperties())
	}
	if !strings.Contains(page, "|---|---|---|---|\n"+want.String()+"\n") {
		t.Errorf("docs/releases.md needs this table of releases:\n%s", &want)
	}
	want.Reset()
	for _, p := range release.Parts() {
		name, until := "`"+p.String()+"`", p.Until().Name()
		if p.Kind() == release.Rule {
			name = p.String()
		}
		if p.Until() == release.Unknown {
			until = ""
		}
		fmt.Fprintln(&want, strings.ReplaceAll(fmt.Sprintf("| %s | %s | %s | %s |", name, p.Kind(), p.Since().Name(), until), "  ", " "))
	}
	if !strings.Contains(page, "|---|---|---|---|\n"+want.String()+"\n") {
		t.Errorf("docs/releases.md needs this table of parts:\n%s", &want)
	}
}
