// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
	"modernc.org/sqlite"
	code "modernc.org/sqlite/lib"
)

// readOnlyRetries is how often a transaction that a read-only server refused is repeated: a new connection may be to
// a server that is no replica, but a server stays one for long.
const readOnlyRetries = 3

// writability is whether the database accepts changes, as its answers to the last change tell.
type writability struct {
	refused atomic.Pointer[error] // the answer; nil if the change was accepted
	// epoch counts the changes of that. Connections of an earlier epoch are left, as they may be to a server
	// that has become a replica, and whose data is old.
	epoch atomic.Int64
}

func (w *writability) refuse(err error) {
	if w.refused.Swap(&err) == nil {
		w.epoch.Add(1)
	}
}

func (w *writability) accept() {
	if w.refused.Load() != nil && w.refused.Swap(nil) != nil {
		w.epoch.Add(1)
	}
}

// Writable returns nil if the database accepted the last change. Otherwise it returns an Unavailable fault with the words
// of the database: a server is read-only after a failover, and a file on a disk with errors.
func (s *Store) Writable() error {
	if refused := s.writability.refused.Load(); refused != nil {
		return s.engine.translate(*refused)
	}
	return nil
}

// isReadOnly reports whether err is the refusal of a change by a read-only database.
func isReadOnly(err error) bool {
	if cause, ok := errors.AsType[*sqlite.Error](err); ok {
		return cause.Code()&0xff == code.SQLITE_READONLY
	}
	return slices.Contains(readOnlys, number(err))
}

// changes reports whether a statement, if it is accepted, shows that the server is not read-only.
func changes(statement string) bool {
	verb, _, _ := strings.Cut(strings.TrimSpace(statement), " ")
	return slices.Contains([]string{"INSERT", "UPDATE", "DELETE"}, strings.ToUpper(verb))
}

// readOnly returns the fault of a server that is read-only, with its own words.
func readOnly(err error) error {
	words := err.Error()
	if cause, ok := errors.AsType[*mysql.MySQLError](err); ok {
		words = cause.Message
	}
	return unavailable(err, "the database accepts no changes: "+words+"; reading goes on; try again when the operator has made it writable")
}
