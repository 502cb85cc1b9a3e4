// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// pythonOfDebian is the Python that Debian's packages of Nova are for.
const pythonOfDebian = "/usr/bin/python3"

// Python runs Debian's Python in a folder and returns its output.
func Python(t testing.TB, in string, arguments ...string) string {
	t.Helper()
	folder(t) // its lab has installed the packages that Nova needs
	c := exec.CommandContext(t.Context(), pythonOfDebian, arguments...)
	c.Dir = in
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PIP_DISABLE_PIP_VERSION_CHECK=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("python3 %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// AskPython runs a Python script that uses Nova's own code, with a question as JSON on its standard
// input, and decodes the answer on its standard output. It is skipped with -short.
func AskPython(t testing.TB, script string, question, answer any) {
	t.Helper()
	folder(t)
	input, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), pythonOfDebian, script)
	c.Stdin = bytes.NewReader(input)
	var complaint strings.Builder
	c.Stderr = &complaint
	output, err := c.Output()
	if err != nil {
		t.Fatalf("python3 %s: %v\n%s", script, err, complaint.String())
	}
	if err := json.Unmarshal(output, answer); err != nil {
		t.Fatalf("read what %s says: %v\n%s", script, err, output)
	}
}
