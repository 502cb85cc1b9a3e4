// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// troubleLines is how many lines of one log a failed test shows.
const troubleLines = 6

// showTrouble adds the warnings and errors that the cloud's services log during a test to its
// output if it fails: the lab goes away with its logs.
func showTrouble(t testing.TB, lab string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(lab, "log", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]int64{}
	for _, path := range logs {
		if info, err := os.Stat(path); err == nil {
			before[path] = info.Size()
		}
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, path := range logs {
			if lines := trouble(t, path, before[path]); len(lines) > 0 {
				t.Logf("%s has among others\n%s", filepath.Base(path), strings.Join(lines, "\n"))
			}
		}
	})
}

// trouble returns the last warnings and errors of a log after an offset, without the call stacks
// between them.
func trouble(t testing.TB, path string, offset int64) (lines []string) {
	file, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		t.Error(err)
		return nil
	}
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadString('\n')
		if isTrouble(line) {
			lines = append(lines, strings.TrimSpace(line))
			lines = lines[max(0, len(lines)-troubleLines):]
		}
		if err != nil {
			return lines
		}
	}
}

// isTrouble reports whether a line is a warning or an error in the forms of oslo.log, RabbitMQ and
// Python. It skips lines of a call stack, which oslo.log prints with a level too: after the level
// they have neither "[" nor the name of an error.
func isTrouble(line string) bool {
	for _, level := range []string{" ERROR ", " WARNING ", " CRITICAL "} {
		if _, said, found := strings.Cut(line, level); found {
			return strings.Contains(said, "[") || strings.Contains(said, "Error") || strings.Contains(said, "xception")
		}
	}
	return strings.Contains(line, "[error]") || strings.Contains(line, "[warning]") || strings.Contains(line, "Killed")
}
