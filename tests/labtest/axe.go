// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// axeVersion is the version of axe-core that examines pages.
const axeVersion = "4.14.1"

// Finding is what axe-core finds on a page.
type Finding struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

func (f Finding) String() string {
	var places []string
	for _, n := range f.Nodes[:min(len(f.Nodes), 3)] {
		places = append(places, strings.Join(strings.Fields(n.HTML+" "+n.FailureSummary), " "))
	}
	return fmt.Sprintf("%s (%s): %s\n    %s", f.ID, f.Impact, f.Help, strings.Join(places, "\n    "))
}

// Axe returns the program of axe-core, which examines whether pages are accessible. npm fetches it once.
func Axe(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "almanac-tests")
	archive := filepath.Join(folder, "axe-core-"+axeVersion+".tgz")
	if _, err := os.Stat(archive); errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		pack := exec.CommandContext(t.Context(), "npm", "pack", "--silent", "axe-core@"+axeVersion)
		pack.Dir = t.TempDir()
		if out, err := pack.CombinedOutput(); err != nil {
			t.Fatalf("npm pack axe-core: %v\n%s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(pack.Dir, filepath.Base(archive)))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(archive, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return fromArchive(t, archive, "package/axe.min.js")
}

// fromArchive returns a file of a compressed archive.
func fromArchive(t testing.TB, archive, name string) string {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if err != nil {
			t.Fatalf("%s in %s: %v", name, archive, err)
		}
		if header.Name != name {
			continue
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// Examine returns what the program of axe-core finds on the page that is serious or critical, by the rules of WCAG 2.2 AA.
func (b *Browser) Examine(axe string) []Finding {
	b.t.Helper()
	if !Evaluate[bool](b, `typeof axe !== 'undefined'`) {
		Evaluate[bool](b, axe+"; true")
	}
	text := Evaluate[string](b, `axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})
		.then(found => JSON.stringify(found.violations.filter(one => ['serious', 'critical'].includes(one.impact))))`)
	var found []Finding
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		b.t.Fatal(err)
	}
	return found
}
