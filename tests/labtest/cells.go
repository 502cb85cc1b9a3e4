package labtest

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// APIDatabase gives the SQLAlchemy URL of Nova's API database.
func (c Cloud) APIDatabase(t testing.TB) string {
	t.Helper()
	return databaseURL(port(t, "mariadb"), "nova_api")
}

// NovaManage runs nova-manage and gives what it prints.
func (c Cloud) NovaManage(t testing.TB, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(folder(t), "nova-manage"), args...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		t.Fatalf("nova-manage %s: %v\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return string(out)
}
