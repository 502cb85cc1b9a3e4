package labtest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// pythonOfDebian is that for which Debian's packages of Nova are.
const pythonOfDebian = "/usr/bin/python3"

// Python runs Debian's Python in a folder and gives what it prints.
func Python(t testing.TB, in string, arguments ...string) string {
	t.Helper()
	folder(t) // whose lab has installed what Nova is made of
	c := exec.CommandContext(t.Context(), pythonOfDebian, arguments...)
	c.Dir = in
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PIP_DISABLE_PIP_VERSION_CHECK=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("python3 %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// AskPython has a Python script that uses Nova's own code answer a question: as JSON on
// its standard input and output. It is skipped with -short.
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
