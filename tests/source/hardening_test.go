// SPDX-License-Identifier: Apache-2.0

package source

import (
	"regexp"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

// rowsBelow returns the cells of the rows of the first table after a heading of the guide to operations.
func rowsBelow(t *testing.T, heading, head string) (rows [][]string) {
	t.Helper()
	_, after, found := strings.Cut(repository.Read(t, "../../docs/operations.md"), "\n"+heading+"\n")
	_, table, has := strings.Cut(after, "\n| "+head+" |")
	if !found || !has {
		t.Fatalf("the guide has no table of %s below %q", head, heading)
	}
	for _, line := range strings.Split(table, "\n")[2:] {
		if !strings.HasPrefix(line, "| ") {
			return rows
		}
		rows = append(rows, strings.Split(strings.Trim(line, "| "), " | "))
	}
	return rows
}

func TestTheRightsOfTheGuideAreThoseOfTheUnits(t *testing.T) {
	for _, unit := range []string{"almanacd.service", "almanacd@.service", "almanac-power.service"} {
		text := repository.Read(t, "../../etc/almanac/systemd/"+unit)
		for _, row := range rowsBelow(t, "### Files and rights", "directive of the unit") {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[0], -1) {
				if !strings.Contains(text, "\n"+m[1]+"\n") {
					t.Errorf("%s lacks %s", unit, m[1])
				}
			}
		}
	}
}

func TestTheOwnersAndModesOfTheGuideAreThoseOfThePackages(t *testing.T) {
	tmpfiles := repository.Read(t, "../../etc/almanac/systemd/almanac.tmpfiles")
	rows := 0
	for _, row := range rowsBelow(t, "### Files and rights", "file") {
		owner, mode, _ := strings.Cut(row[1], " ")
		user, group, _ := strings.Cut(owner, ":")
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[0], -1) {
			if want := strings.TrimSuffix(m[1], "/") + " " + mode + " " + user + " " + group + " -\n"; !strings.Contains(tmpfiles, want) {
				t.Errorf("almanac.tmpfiles lacks %q", want)
			}
			rows++
		}
	}
	if lines := strings.Count(tmpfiles, " -\n"); rows != lines {
		t.Errorf("the guide has %d files, almanac.tmpfiles %d", rows, lines)
	}
}
