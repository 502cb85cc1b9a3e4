// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"regexp"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

func TestThePageOnBlazarNamesTestsAndCommandsThatExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/blazar.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	exists := make(map[string]bool)
	for _, target := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllSubmatch(makefile, -1) {
		exists["make "+string(target[1])] = true
	}
	for name := range repository.Tests(t) {
		exists[name] = true
	}
	named := regexp.MustCompile("`((?:Test|Benchmark)\\w+|make [a-z-]+)`").FindAllSubmatch(page, -1)
	for _, name := range named {
		if !exists[string(name[1])] {
			t.Errorf("there is no %s", name[1])
		}
	}
	if len(named) < 20 {
		t.Errorf("the page names %d", len(named))
	}
}
