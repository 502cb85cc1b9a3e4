// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/built"
)

// step is a command of a page and its output.
type step struct {
	command, output string
}

// consoleSteps returns the steps of all console sessions of a page.
func consoleSteps(t *testing.T, page string) (steps []step) {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for rest := string(raw); ; {
		_, session, found := strings.Cut(rest, "```console\n")
		if !found {
			break
		}
		session, after, closed := strings.Cut(session, "```\n")
		if !closed {
			t.Fatalf("a console session of %s does not end", page)
		}
		for line := range strings.Lines(session) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				steps = append(steps, step{command: strings.TrimSpace(command)})
			} else {
				steps[len(steps)-1].output += line
			}
		}
		rest = after
	}
	if len(steps) == 0 {
		t.Fatalf("%s has no console session", page)
	}
	return steps
}

// These patterns match what differs from run to run.
var (
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	anyID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

func anyDay(text string) string {
	return anyID.ReplaceAllString(anyTime.ReplaceAllString(text, "TIME"), "ID")
}

// readmeURL is the address of Almanac in the pages.
const readmeURL = "http://127.0.0.1:1234"

// runSteps runs the steps of a page in a shell, in a folder with the commands in bin, against the
// Almanac at url, and compares their outputs with the page.
func runSteps(t *testing.T, page, folder, url string, most time.Duration) {
	t.Helper()
	if err := os.Symlink(built.Commands(), filepath.Join(folder, "bin")); err != nil {
		t.Fatal(err)
	}
	for _, step := range consoleSteps(t, page) {
		ctx, cancel := context.WithTimeout(t.Context(), most)
		c := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(step.command, readmeURL, url))
		c.Dir, c.Env = folder, append(os.Environ(), "ALMANAC_URL="+url)
		out, _ := c.CombinedOutput() // a refusal is an answer, with its exit code
		cancel()
		if diff := cmp.Diff(anyDay(step.output), anyDay(string(out))); diff != "" {
			t.Errorf("%s (-%s +real):\n%s", step.command, page, diff)
		}
	}
}

// The test runs the session in a shell, on the sample hosts.
func TestTheREADMEWorksAsPrinted(t *testing.T) {
	hosts, err := os.ReadFile("../../etc/almanac/hosts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	folder := built.NewFolder(t, string(hosts))
	s := built.Start(t, folder)
	runSteps(t, "../../README.md", folder, s.URL, built.Patience)
}
