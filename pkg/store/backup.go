// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"gorm.io/gorm"
	"modernc.org/sqlite"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/owner"
)

// File returns the path of the SQLite database that a connection names. It fails with an Invalid fault for a server,
// whose own tools make backups, and for a database in memory.
func File(connection string) (string, error) {
	at, err := parseConnection(connection)
	if err != nil {
		return "", err
	}
	file, ok := at.(location)
	switch {
	case !ok:
		return "", fault.New(fault.Invalid, "the database is on a server, whose own tools make and restore backups, such as mariadb-dump; docs/operations.md has the commands")
	case file.path == "":
		return "", fault.New(fault.Invalid, "the database is in memory and ends with its process; name a file in [database] connection")
	}
	return file.path, nil
}

// Contents is what an SQLite database of Almanac has.
type Contents struct {
	Reservations int64
	Changed      time.Time // the last change of a reservation; zero if there was none
}

// Look returns the contents of the file at path after a check of all its pages. It does not change the file. It
// fails with an Invalid fault if the file is no whole SQLite database of Almanac, and with a Conflict fault if a newer
// almanacd made it.
func Look(ctx context.Context, path string) (c Contents, err error) {
	if _, err := os.Stat(path); err != nil {
		return c, fault.Field(path, "cannot be read: %v", err)
	}
	s, err := Open(ctx, Options{Connection: atRest(path)})
	if err != nil {
		return c, &fault.Error{Kind: fault.Invalid, Message: path + " is no SQLite database", Err: err}
	}
	defer s.Close()
	err = s.read(ctx, func(tx *gorm.DB) error {
		var verdict string
		if err := tx.Raw("PRAGMA quick_check(1)").Scan(&verdict).Error; err != nil || verdict != "ok" {
			return &fault.Error{Kind: fault.Invalid, Message: path + " is no whole SQLite database: " + verdict, Err: err}
		}
		if err := known(tx); err != nil && !fault.Is(err, fault.Unavailable) { // almanacd migrates an older one
			return err
		}
		if err := tx.Table("reservations").Count(&c.Reservations).Error; err != nil {
			return &fault.Error{Kind: fault.Invalid, Message: path + " is no database of Almanac", Err: err}
		}
		var last sql.NullInt64
		if err := tx.Raw("SELECT MAX(changed_at) FROM changes").Scan(&last).Error; err != nil {
			return &fault.Error{Kind: fault.Invalid, Message: path + " is no database of Almanac", Err: err}
		}
		if last.Valid {
			c.Changed = time.Unix(last.Int64, 0).UTC()
		}
		return nil
	})
	return c, err
}

// atRest returns the connection that reads the file at path. Without a log beside it nobody writes it, and SQLite shall
// create no files there.
func atRest(path string) string {
	if _, err := os.Stat(path + besides[0]); errors.Is(err, fs.ErrNotExist) {
		return fileURL(path) + "?mode=ro&immutable=1"
	}
	return fileURL(path) + "?mode=ro"
}

// inUse returns the connection that reads the file at path although almanacd may write it, or begin to.
func inUse(path string) string { return fileURL(path) + "?mode=rw&_query_only=on&_busy_timeout=10000" }

func fileURL(path string) string { return "file:" + (&url.URL{Path: path}).EscapedPath() }

// Backup copies the SQLite database at path, as it is at one moment and while almanacd uses it, to a new file. It calls
// progress with the number of pages. The file appears when it is complete and checked.
func Backup(ctx context.Context, path, to string, progress func(done, pages int)) (Contents, error) {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return Contents{}, fault.New(fault.Conflict, "%s exists; name a new file", to)
	}
	if _, err := os.Stat(path); err != nil {
		return Contents{}, fmt.Errorf("there is no database: %w", err)
	}
	c, err := copyFile(ctx, inUse(path), to, filepath.Dir(to), progress)
	if err != nil {
		return c, fmt.Errorf("back up the database %s: %w", path, err)
	}
	return c, os.Rename(to+partial, to)
}

// Restore replaces the SQLite database at path by a backup. The caller has locked it with Own. The old
// database is removed when the copy is complete and checked; if Restore is interrupted, it can be repeated.
func Restore(ctx context.Context, path, from string, progress func(done, pages int)) (Contents, error) {
	c, err := Look(ctx, from)
	if err != nil {
		return c, err
	}
	if _, err := copyFile(ctx, atRest(from), path, path, progress); err != nil {
		return c, fmt.Errorf("restore the database %s: %w", path, err)
	}
	for _, end := range besides[:3] { // the log of the old file does not belong to the new one
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return c, fmt.Errorf("remove what the old database has left: %w", errors.Join(err, os.Remove(path+partial)))
		}
	}
	return c, os.Rename(path+partial, path)
}

// partial is the end of the name of a copy that is not complete.
const partial = ".partial"

// pagesAtOnce is how many pages are copied between two calls of progress.
const pagesAtOnce = 1000

// copyFile copies the database of the connection from to the file to+partial, with the owner of the file or folder like,
// and checks it.
func copyFile(ctx context.Context, from, to, like string, progress func(done, pages int)) (c Contents, err error) {
	to += partial
	file, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return c, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(to))
		}
	}()
	if err := errors.Join(owner.As(file, like), file.Chmod(fileMode), file.Close()); err != nil {
		return c, err
	}
	pool, err := sql.Open("sqlite", from)
	if err != nil {
		return c, err
	}
	defer pool.Close()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return c, translate(err)
	}
	defer conn.Close()
	// In one transaction the copy is of one moment, and writes of almanacd do not begin it again.
	for _, statement := range []string{"BEGIN", "SELECT COUNT(*) FROM sqlite_master"} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return c, translate(err)
		}
	}
	if err := conn.Raw(func(driver any) error { return copyPages(ctx, driver, to, progress) }); err != nil {
		return c, translate(err)
	}
	return Look(ctx, to)
}

// copyPages copies all pages of the database of an SQLite connection to the file at path.
func copyPages(ctx context.Context, driver any, path string, progress func(done, pages int)) (err error) {
	from, ok := driver.(interface {
		NewBackup(to string) (*sqlite.Backup, error)
	})
	if !ok {
		return errors.New("the driver of SQLite makes no copies")
	}
	copying, err := from.NewBackup(fileURL(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copying.Finish()) }()
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if more, err = copying.Step(pagesAtOnce); err != nil {
			return err
		}
		progress(copying.PageCount()-copying.Remaining(), copying.PageCount())
	}
	return nil
}
