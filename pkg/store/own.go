package store

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Own takes the database of connection for this process until release is called.
// The calendar is in memory, so two services on one SQLite file would promise the
// same hosts twice. It fails with a Conflict fault where another process has the
// database. One in memory nobody else can reach.
func Own(connection string) (release func() error, err error) {
	at, err := parseConnection(connection)
	if err != nil {
		return nil, err
	}
	if at.path == "" {
		return func() error { return nil }, nil
	}
	if err := at.createFile(); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	file, err := os.OpenFile(at.path+".lock", os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return nil, fmt.Errorf("own the database: %w", err)
	}
	// The lock goes with the process, however it ends.
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fault.New(fault.Conflict, "another almanacd uses the database %s; stop it first, or give this one its own [database] connection", at.path)
		}
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}
