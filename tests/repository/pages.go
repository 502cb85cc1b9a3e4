// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Root is the root of the repository, as a path from each folder of tests.
const Root = "../.."

// The operator's guide, its chapter about Nova, and the files that it refers to, from the same folders.
const (
	OperationsPage = Root + "/docs/operations.md"
	NovaPage       = Root + "/docs/nova.md"
	InstallPage    = Root + "/docs/install.md"
	DeploymentPage = Root + "/docs/deployment.md"
	OpsFolder      = Root + "/docs/examples/ops"
	AlertsPath     = OpsFolder + "/almanac-alerts.yml"
)

// Read returns the text of a file.
func Read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Matches returns the first group of each match, sorted and without duplicates.
func Matches(pattern, text string) []string {
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Fenced returns the code blocks of a language in OperationsPage, NovaPage and InstallPage. There is at least one.
func Fenced(t *testing.T, language string) []string {
	t.Helper()
	var blocks []string
	// A code block inside a list is indented, with its lines.
	pattern := regexp.MustCompile("(?ms)^( *)```" + language + "\n(.*?)^ *```$")
	for _, m := range pattern.FindAllStringSubmatch(Read(t, OperationsPage)+Read(t, NovaPage)+Read(t, InstallPage), -1) {
		blocks = append(blocks, strings.ReplaceAll("\n"+m[2], "\n"+m[1], "\n"))
	}
	if len(blocks) == 0 {
		t.Fatalf("the guide has no %s", language)
	}
	return blocks
}
