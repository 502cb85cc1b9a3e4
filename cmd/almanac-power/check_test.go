// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/energy"
)

// execute runs a command on a machines file and returns its output and exit code.
func execute(t *testing.T, yaml string, arguments ...string) (string, int) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"power.yaml": yaml, "agent.conf": "[DEFAULT]\nhost = here\n[agent]\nmachines_file = power.yaml\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	command := newCommand(&service{})
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(append(arguments, "--config-file", filepath.Join(folder, "agent.conf")))
	if err := command.ExecuteContext(t.Context()); err != nil {
		return fmt.Sprintf("%s%v", out.String(), err), codeOf(err)
	}
	return out.String(), 0
}

// printing returns a machine h1 whose status program prints a text.
func printing(text string) string {
	return fmt.Sprintf("machines:\n  - host: h1\n    driver: command\n    on: [/bin/true]\n    off: [/bin/true]\n    status: [/bin/echo, %q]\n", text)
}

func TestCheckTellsHowAMachineIsAndWhatToDo(t *testing.T) {
	for name, tc := range map[string]struct {
		yaml, host string
		code       int
		says       []string
	}{
		"on":            {printing("on 190"), "h1", 0, []string{"state   on", "watts   190", "[on off]"}},
		"without watts": {printing("off"), "h1", 0, []string{"state   off", "watts   not known"}},
		"a bad status":  {printing("perhaps"), "h1", exitFailed, []string{"To fix this, run the status program by hand", "perhaps"}},
		"no such host":  {printing("on"), "h2", exitNotFound, []string{"no machine of host h2"}},
		"no file":       {"", "h1", exitUsage, []string{"lists no machines"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, code := execute(t, tc.yaml, "check", tc.host)
			for _, says := range tc.says {
				if code != tc.code || !strings.Contains(out, says) {
					t.Errorf("exit %d, want %d with %q\n%s", code, tc.code, says, out)
				}
			}
		})
	}
}

func TestBenchmarkPrintsARowOfTheTable(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		says  string
		watts float64
	}{
		"with a machine": {[]string{"--machine", "h1"}, "full watts      200.0", 200},
		"with a program": {[]string{"--watts-command", "/bin/echo 150"}, "full watts      150.0", 150},
		"without":        {nil, "no watts were measured", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, code := execute(t, printing("on 200"), append([]string{"benchmark", "--seconds", "2", "--idle-seconds", "0"}, tc.flags...)...)
			_, text, _ := strings.Cut(out, "\n\n")
			table, err := energy.ReadTable(strings.NewReader(text))
			if code != 0 || err != nil || !strings.Contains(out, tc.says) {
				t.Fatalf("exit %d, %v\n%s", code, err, out)
			}
			host := map[bool]string{true: "h1", false: "here"}[name == "with a machine"]
			if got := table.Of(host); got.Draw.Full != tc.watts || (got.FlopsPerWatt > 0) != (tc.watts > 0) {
				t.Errorf("host %s has the measurements %+v\n%s", host, got, text)
			}
		})
	}
}

func TestMultiplicationInBlocksIsMultiplication(t *testing.T) {
	x, y, z := square(1), square(2), make([]float64, side*side)
	multiply(x, y, z)
	for _, at := range [][2]int{{0, 0}, {side - 1, side - 1}, {63, 64}, {200, 7}} {
		want := 0.0
		for k := range side {
			want += x[at[0]*side+k] * y[k*side+at[1]]
		}
		if got := z[at[0]*side+at[1]]; got-want > 1e-9 || want-got > 1e-9 {
			t.Errorf("at %v: got %v, want %v", at, got, want)
		}
	}
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, arguments := range [][]string{
		{"benchmark", "--seconds", "0"}, {"benchmark", "--idle-seconds", "-1"}, {"check", "h1", "--what"},
	} {
		if out, code := execute(t, printing("on"), arguments...); code != exitUsage {
			t.Errorf("%v: exit %d\n%s", arguments, code, out)
		}
	}
	if out, code := execute(t, printing("on"), "benchmark", "--seconds", "1", "--idle-seconds", "0", "--watts-command", "/bin/echo much"); code != 0 || !strings.Contains(out, "no number of watts") && !strings.Contains(out, "no watts") {
		t.Errorf("exit %d\n%s", code, out)
	}
}
