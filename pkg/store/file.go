// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/owner"
)

// fileMode is the mode of the files of an SQLite database; others than owner and group may not read them.
const fileMode = 0o640

// besides are the ends of the names of the files beside the database: SQLite's own, and the lock of Own.
var besides = []string{"-wal", "-shm", "-journal", ".lock"}

// createFile creates an empty file, and its folder, if they do not exist; SQLite itself would make
// the file readable for others. SQLite copies the mode and, as root, the owner of the first file to its
// further files. createFile fails with a Denied fault if this process cannot write the database.
func (p location) createFile() error {
	if mode := p.options.Get("mode"); p.path == "" || mode != "" && mode != "rwc" {
		return nil
	}
	folder := filepath.Dir(p.path)
	if err := owner.MkdirAll(folder, 0o750); err != nil {
		return p.denied(err)
	}
	if err := owner.CheckWritable(folder); err != nil {
		return p.denied(err)
	}
	file, err := owner.OpenFile(p.path, os.O_EXCL|os.O_WRONLY, fileMode)
	if err == nil {
		return file.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return p.denied(err)
	}
	for _, end := range append([]string{""}, besides...) {
		if err := owner.CheckWritable(p.path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p.denied(err)
		}
	}
	return nil
}

// denied returns the fault of a database that this process cannot write, if that is the reason of err.
func (p location) denied(err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	user, remedy := owner.User(), ""
	if of := owner.Of(filepath.Dir(p.path)); of != user && of != "" {
		remedy = "run this as user " + of + ", or "
	}
	return &fault.Error{
		Kind: fault.Denied, Err: err,
		Message: fmt.Sprintf("user %s cannot write the database %s; %sgive its files to this user: chown %s: %s*", user, p.path, remedy, user, p.path),
	}
}
