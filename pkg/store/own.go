package store

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Own takes the SQLite file of connection for this process until release is called:
// its pools, its migrations and its queue of writes are made for one. It fails with
// a Conflict fault where another process has the file. A database in memory nobody
// else can reach, and a server is shared.
func Own(connection string) (release func() error, err error) {
	named, err := parseConnection(connection)
	if err != nil {
		return nil, err
	}
	at, isPlace := named.(place)
	if !isPlace || at.path == "" {
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
