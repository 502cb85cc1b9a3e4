package store

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Own locks the SQLite file of connection for this process until release is called: its
// pools, its migrations and its queue of writes are made for one process. It fails with a
// Conflict fault where another process has the lock. It does nothing for a database in
// memory, which no other process can reach, and for a server, which is shared.
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
		return nil, fmt.Errorf("lock the database: %w", err)
	}
	// The lock ends with the process, however that ends.
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fault.New(fault.Conflict, "another almanacd uses the database %s; stop it first, or set another [database] connection for this one", at.path)
		}
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}
