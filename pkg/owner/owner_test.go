// SPDX-License-Identifier: Apache-2.0

package owner_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/owner"
)

// of returns the owner and the group of path.
func of(t *testing.T, path string) (uid, gid int) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	all := info.Sys().(*syscall.Stat_t)
	return int(all.Uid), int(all.Gid)
}

// Only root can give files away; what others create is theirs.
func TestWhatIsCreatedBelongsToTheOwnerOfTheFolder(t *testing.T) {
	folder := t.TempDir()
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		uid, gid = 4321, 4322
		if err := os.Chown(folder, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	below := filepath.Join(folder, "a", "b")
	if err := owner.MkdirAll(below, 0o750); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(below, "file")
	for range 2 {
		file, err := owner.OpenFile(path, os.O_RDWR, 0o640)
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
	}
	for _, created := range []string{filepath.Dir(below), below, path} {
		if u, g := of(t, created); u != uid || g != gid {
			t.Errorf("%s belongs to %d:%d, want %d:%d", created, u, g, uid, gid)
		}
	}
	if _, err := owner.OpenFile(path, os.O_EXCL|os.O_RDWR, 0o640); !os.IsExist(err) {
		t.Errorf("an exclusive creation of a file that exists: %v", err)
	}
}

func TestAFileThatExistsKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		return // its owner cannot change
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	if err := os.WriteFile(path, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(folder, 4321, 4322); err != nil {
		t.Fatal(err)
	}
	file, err := owner.OpenFile(path, os.O_RDWR, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	if u, _ := of(t, path); u != 0 {
		t.Errorf("it belongs to %d", u)
	}
}

func TestTheGroupIsThatOfTheNearestKnownFolder(t *testing.T) {
	folder := t.TempDir()
	if got, want := owner.Group(filepath.Join(folder, "no", "such", "file")), owner.Group(folder); got != want || want == "" {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatCannotBeWrittenIsNamedWithItsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o440); err != nil {
		t.Fatal(err)
	}
	if err := owner.CheckWritable(filepath.Dir(path)); err != nil {
		t.Errorf("a folder of our own: %v", err)
	}
	err := owner.CheckWritable(path)
	if os.Geteuid() == 0 {
		if err != nil {
			t.Errorf("root: %v", err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), "user "+owner.User()+" cannot write "+path) || !strings.Contains(err.Error(), "mode 0440") {
		t.Errorf("got %v", err)
	}
}
