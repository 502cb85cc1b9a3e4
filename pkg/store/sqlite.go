// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/owner"
)

// readers is the number of reads that can run at the same time, in addition to the writer.
const readers = 4

// connect implements target. It opens the writer, which enables WAL mode, then the readers.
func (p location) connect(ctx context.Context, s *Store) (err error) {
	if err := p.createFile(); err != nil {
		return err
	}
	s.engine = engine{
		now:           "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
		insertMissing: "INSERT OR IGNORE INTO",
		inserted:      func(column string) string { return "excluded.`" + column + "`" },
		translate:     translate,
		migrate:       s.migrateWhole,
		longRead:      "SELECT 1",
		nextNumber:    nextNumber,
		setNextNumber: setNextNumber,
	}
	s.writing = make(chan struct{}, 1)
	timeout := strconv.FormatInt(s.options.BusyTimeout.Milliseconds(), 10)
	s.writer, err = s.openSQLite(ctx, 1, p.dsn(map[string]string{
		"_busy_timeout": timeout,
		"_journal_mode": "WAL",
		"_synchronous":  "FULL",
		"_foreign_keys": "on",
		"_txlock":       "immediate",
	}))
	if err != nil || p.path == "" {
		s.reader = s.writer
		return err
	}
	s.reader, err = s.openSQLite(ctx, readers, p.dsn(map[string]string{
		"_busy_timeout": timeout,
		"_query_only":   "on",
	}))
	return err
}

// openSQLite opens a pool of size connections, which it keeps open.
func (s *Store) openSQLite(ctx context.Context, size int, dsn string) (*gorm.DB, error) {
	pool, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	s.pools = append([]*sql.DB{pool}, s.pools...) // the writer closes last and cleans up the file
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	if err := pool.PingContext(ctx); err != nil {
		return nil, translate(err)
	}
	return gorm.Open(dialector{&gormsqlite.Dialector{Conn: pool}}, s.gorm())
}

// dialector is gorm's dialector for SQLite, with a translation of the errors of this driver; gorm
// itself only knows those of another one.
type dialector struct{ *gormsqlite.Dialector }

// Translate implements gorm.ErrorTranslator.
func (dialector) Translate(err error) error { return translate(err) }

// translate returns gorm.ErrDuplicatedKey for a key that exists already, and an Unavailable fault
// for a problem that passes or that the operator can solve. It returns a translated error
// unchanged. The codes are those of https://www.sqlite.org/rescode.html.
func translate(err error) error {
	cause, ok := errors.AsType[*sqlite.Error](err)
	if _, translated := errors.AsType[*fault.Error](err); !ok || translated || errors.Is(err, gorm.ErrDuplicatedKey) {
		return err
	}
	switch cause.Code() {
	case code.SQLITE_CONSTRAINT_PRIMARYKEY, code.SQLITE_CONSTRAINT_UNIQUE:
		return fmt.Errorf("%w: %w", gorm.ErrDuplicatedKey, err)
	}
	switch cause.Code() & 0xff { // the primary code
	case code.SQLITE_BUSY, code.SQLITE_LOCKED:
		return busy(err)
	case code.SQLITE_FULL:
		return unavailable(err, "the disk of the database is full; try again when the operator has made room")
	case code.SQLITE_IOERR:
		return unavailable(err, "the disk of the database does not answer; try again when the operator has repaired it")
	case code.SQLITE_READONLY:
		return unavailable(err, "the database is read-only; try again when the operator has made it writable")
	case code.SQLITE_CANTOPEN:
		return unavailable(err, "the file of the database cannot be opened; try again when the operator has repaired it")
	}
	return err
}

// Own locks the SQLite file of connection for this process until release is called, because the
// Store's connections, migrations and queue of writes assume a single process. It fails with a
// Conflict fault if another process has the lock. It does nothing for a database in memory, which
// no other process can use, and for a server, which may be shared.
func Own(connection string) (release func() error, err error) {
	named, err := parseConnection(connection)
	if err != nil {
		return nil, err
	}
	at, isPlace := named.(location)
	if !isPlace || at.path == "" {
		return func() error { return nil }, nil
	}
	if err := at.createFile(); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	file, err := owner.OpenFile(at.path+".lock", os.O_RDWR, fileMode)
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
