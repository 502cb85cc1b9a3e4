// SPDX-License-Identifier: Apache-2.0

//go:build unix

package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

func stat(path string) (uid, gid int, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	of := info.Sys().(*syscall.Stat_t) // what every Unix returns
	return int(of.Uid), int(of.Gid), nil
}

func effective() int { return os.Geteuid() }

// OpenFile is os.OpenFile with O_CREATE. A file that root creates gets the owner and the group of its folder.
func OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	file, err := os.OpenFile(path, flag|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) && flag&os.O_EXCL == 0 {
		return os.OpenFile(path, flag|os.O_CREATE, mode)
	}
	if err != nil {
		return nil, err
	}
	if err := As(file, filepath.Dir(path)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// MkdirAll is os.MkdirAll. A folder that root creates gets the owner and the group of the one above it.
func MkdirAll(path string, mode fs.FileMode) error {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if above := filepath.Dir(path); above != path {
		if err := MkdirAll(above, mode); err != nil {
			return err
		}
	}
	err := os.Mkdir(path, mode)
	if errors.Is(err, fs.ErrExist) { // another process was faster
		return nil
	}
	if err != nil {
		return err
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(As(folder, filepath.Dir(path)), folder.Close())
}

// As sets the owner and the group of a file or folder to those of the one at path, if this process is root's.
func As(file *os.File, path string) error {
	if effective() != 0 {
		return nil
	}
	uid, gid, err := stat(path)
	if err != nil {
		return err
	}
	return file.Chown(uid, gid)
}

// CheckWritable returns nil if this process may write the file, or create files in the folder, at path. The error
// names path, its owner and mode, and the user of this process.
func CheckWritable(path string) error {
	const write, search = 0x2, 0x1
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("user %s cannot reach it: %w", User(), err)
	}
	need := uint32(write)
	if info.IsDir() {
		need |= search
	}
	if err = syscall.Access(path, need); err == nil {
		return nil
	}
	of := info.Sys().(*syscall.Stat_t)
	return fmt.Errorf("user %s cannot write %s, which belongs to %s:%s and has mode %04o: %w",
		User(), path, userName(int(of.Uid)), groupName(int(of.Gid)), info.Mode().Perm(), err)
}
