package tests

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// step is a command of the README and its output.
type step struct {
	command, output string
}

// readmeSession returns the console session of the README.
func readmeSession(t *testing.T) []step {
	t.Helper()
	raw, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, session, found := strings.Cut(string(raw), "```console\n")
	session, _, closed := strings.Cut(session, "```\n")
	if !found || !closed {
		t.Fatal("the README has no console session")
	}
	var steps []step
	for line := range strings.Lines(session) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{command: strings.TrimSpace(command)})
		} else {
			steps[len(steps)-1].output += line
		}
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

// readmeURL is the address of Almanac in the README.
const readmeURL = "http://127.0.0.1:1234"

// The test runs the session in a shell, on the sample hosts.
func TestTheREADMEWorksAsPrinted(t *testing.T) {
	hosts, err := os.ReadFile("../etc/almanac/hosts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	folder := newFolder(t, string(hosts))
	s := start(t, folder)
	if err := os.Symlink(commands, filepath.Join(folder, "bin")); err != nil {
		t.Fatal(err)
	}
	for _, step := range readmeSession(t) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		c := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(step.command, readmeURL, s.url))
		c.Dir, c.Env = folder, append(os.Environ(), "ALMANAC_URL="+s.url)
		out, _ := c.CombinedOutput() // a refusal is an answer, with its exit code
		cancel()
		if diff := cmp.Diff(anyDay(step.output), anyDay(string(out))); diff != "" {
			t.Errorf("%s (-README +real):\n%s", step.command, diff)
		}
	}
}
