// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// simulate runs "simulate" with arguments and returns its exit code and messages.
func simulate(t *testing.T, args ...string) (code int, messages string) {
	t.Helper()
	var out, messaged bytes.Buffer
	code = run(t.Context(), append([]string{"simulate"}, args...), strings.NewReader(""), &out, &messaged, func(string) string { return "" }, time.Now)
	if out.Len() > 0 {
		t.Errorf("standard output is %q", &out)
	}
	return code, messaged.String()
}

//make:test-drawn
func TestASimulationWritesItsReportAndTheSameBytesAgain(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(trace, []byte("submit,runtime,size\n0,600,2\n100,600,2\n100,-1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var before map[string]string
	for range 2 {
		folder := filepath.Join(t.TempDir(), "out")
		code, messages := simulate(t, "replay", "--trace", trace, "--hosts", "3", "--out", folder)
		if code != exitDone || !strings.Contains(messages, filepath.Join(folder, "report.md")) {
			t.Fatalf("exit %d: %s", code, messages)
		}
		now := map[string]string{}
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			now[filepath.Base(file)] = string(content)
		}
		if !strings.Contains(now["report.md"], "skipped") || len(now["results.csv"]) == 0 || len(now) < 6 {
			t.Errorf("the folder has %d files and the report\n%s", len(now), now["report.md"])
		}
		for name, content := range before {
			if now[name] != content {
				t.Errorf("%s differs in the second run", name)
			}
		}
		before = now
	}
}

func TestSimulationsRefuseWhatTheyCannotRunAndNameTheFlag(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct{ name, args, flag string }{
		{"no folder", "deadline", "--out"},
		{"hosts", "deadline --hosts 100 --out " + folder, "--hosts"},
		{"warm-up", "preemption --warm-up 30 --out " + folder, "--warm-up"},
		{"no trace", "replay --out " + folder, "--trace"},
		{"a trace that is not there", "replay --trace no/such.swf --out " + folder, "trace"},
		{"settings that are not there", "replay --trace x --settings no/such.yaml --out " + folder, "--settings"},
		{"instances", "packing --large -1 --out " + folder, "--large"},
		{"sweeps", "energy --sweeps wind --out " + folder, "--sweeps"},
	} {
		code, messages := simulate(t, strings.Fields(c.args)...)
		if code != exitUsage || !strings.Contains(messages, c.flag) || strings.Count(messages, "\n") != 1 {
			t.Errorf("%s: exit %d, %q", c.name, code, messages)
		}
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder was created: %v", err)
	}
}

func TestAFolderThatCannotBeWrittenIsRefusedBeforeTheRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{file, filepath.Join(file, "below")} {
		if code, messages := simulate(t, "deadline", "--jobs", "10", "--runs", "1", "--out", out); code != exitUsage ||
			!strings.Contains(messages, "--out") || strings.Contains(messages, "%") {
			t.Errorf("exit %d: %s", code, messages)
		}
	}
}

func TestASimulationEndsWhenItIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var messages bytes.Buffer
	folder := filepath.Join(t.TempDir(), "out")
	code := run(ctx, []string{"simulate", "deadline", "--out", folder}, strings.NewReader(""), &bytes.Buffer{}, &messages, func(string) string { return "" }, time.Now)
	if code != exitFailed {
		t.Errorf("exit %d: %s", code, &messages)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("an interrupted simulation has written a report")
	}
}
