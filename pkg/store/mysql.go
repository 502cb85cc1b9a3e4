// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// The statements that begin every session. No wait in the server may outlast the caller's. A
// replica that is frozen in the middle of a transaction keeps its locks until the server
// ends the transaction, after four seconds without a statement. That is less than others
// wait for a lock, so that they get it at their first attempt. MariaDB, which alone reads
// /*M!100300 */, ends the transaction. MySQL, which alone reads /*!80000 */, has no such
// bound and must end any session that is silent for so long. The time zone makes
// UNIX_TIMESTAMP(NOW(3)) unambiguous.
const (
	sessionOf = "SET SESSION time_zone = '+00:00', innodb_lock_wait_timeout = 5, lock_wait_timeout = 60, net_write_timeout = 4, " +
		"sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' " +
		"/*M!100300 , idle_write_transaction_timeout = 4 */ /*!80000 , wait_timeout = 4 */"
	// A writer decides by the number of rows that its statements change, and READ COMMITTED
	// locks only those; a reader sees one state.
	ofWriter = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
	ofReader = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
	// While rows are copied, the server waits to send the next ones, and on MySQL a session that counts
	// is silent. MySQL alone knows the next numbers only from its statistics.
	longReadOfServer = "SET SESSION net_write_timeout = 600 /*!80000 , wait_timeout = 600, information_schema_stats_expiry = 0 */"
	// On Galera a read sees the commits of other nodes.
	ofGaleraReader = "SET SESSION wsrep_sync_wait = 1"
)

// mysqlIdle is how long an unused connection to MySQL is kept: less than the wait_timeout of its
// session.
const mysqlIdle = 2 * time.Second

// connect implements target.
func (t server) connect(ctx context.Context, s *Store) (err error) {
	if s.options.NewToken == nil {
		return errors.New("a database server needs Options.NewToken")
	}
	s.engine = engine{
		now:           "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
		insertMissing: "INSERT IGNORE INTO",
		inserted:      func(column string) string { return "VALUES(`" + column + "`)" },
		translate:     translateServer,
		passing:       passing,
		longRead:      longReadOfServer,
		nextNumber:    nextNumberOfServer,
		setNextNumber: setNextNumberOfServer,
	}
	writers, readers := 0, 0
	if o := s.options; o.PoolSize > 0 && o.Overflow >= 0 {
		size := o.PoolSize + o.Overflow
		writers = max(1, size/2)
		readers = max(1, size-writers)
	}
	if s.writer, err = s.addServer(ctx, t, writers, sessionOf, ofWriter); err != nil {
		return err
	}
	mariadb, galera, err := s.flavor(ctx)
	if err != nil {
		return err
	}
	var fresh []string // so that a session sees the commits of other nodes
	if galera {
		fresh = []string{ofGaleraReader}
	}
	s.engine.migrate = func(ctx context.Context) ([]string, error) {
		return s.migrateShared(ctx, t, slices.Concat([]string{sessionOf, ofWriter}, fresh))
	}
	s.reader, err = s.addServer(ctx, t, readers, slices.Concat([]string{sessionOf, ofReader}, fresh)...)
	if !mariadb {
		for _, pool := range s.pools {
			pool.SetConnMaxIdleTime(mysqlIdle)
		}
	}
	return err
}

// flavor sets the collation that distinguishes every letter and space. It reports whether the
// server is MariaDB (not MySQL), and whether it is a node of a Galera cluster.
func (s *Store) flavor(ctx context.Context) (mariadb, galera bool, err error) {
	db := s.writer.WithContext(ctx)
	var found struct{ Value string }
	if err := db.Raw("SHOW GLOBAL VARIABLES LIKE 'wsrep_on'").Scan(&found).Error; err != nil {
		return false, false, err
	}
	var version string
	if err := db.Raw("SELECT VERSION()").Scan(&version).Error; err != nil {
		return false, false, err
	}
	collation := "utf8mb4_0900_bin"
	if mariadb = strings.Contains(version, "MariaDB"); mariadb {
		collation = "utf8mb4_nopad_bin"
	}
	s.engine.tableOptions = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=" + collation
	return mariadb, found.Value == "ON", nil
}

// addServer opens a pool like openServer; the Store closes it.
func (s *Store) addServer(ctx context.Context, t server, size int, session ...string) (*gorm.DB, error) {
	db, pool, err := s.openServer(ctx, t, size, session...)
	if err == nil {
		s.pools = append(s.pools, pool)
	}
	return db, err
}

// openServer opens a pool of at most size connections; 0 means no limit. Each connection begins
// with the statements of session.
func (s *Store) openServer(ctx context.Context, t server, size int, session ...string) (*gorm.DB, *sql.DB, error) {
	t.config = t.config.Clone()
	t.config.InterpolateParams = true // one round trip for each statement
	t.config.ClientFoundRows = true   // counts rows that an UPDATE matches, changed or not
	t.config.MultiStatements, t.config.AllowAllFiles, t.config.ParseTime = false, false, false
	connector, err := t.connector(s.options.Logger, &s.writability, session...)
	if err != nil {
		return nil, nil, err
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(cmp.Or(s.options.PoolSize, math.MaxInt))
	pool.SetConnMaxLifetime(s.options.Recycle)
	if err := pool.PingContext(ctx); err != nil {
		return nil, nil, errors.Join(s.plain(ctx, err), pool.Close())
	}
	db, err := gorm.Open(serverDialector{&gormmysql.Dialector{Config: &gormmysql.Config{
		Conn: pool, SkipInitializeWithVersion: true, DisableWithReturning: true,
	}}}, s.gorm())
	return db, pool, err
}

// serverDialector is gorm's dialector for MySQL with our translation of errors.
type serverDialector struct{ *gormmysql.Dialector }

// Translate implements gorm.ErrorTranslator.
func (serverDialector) Translate(err error) error { return translateServer(err) }

const noMajority = 1047 // Galera: the node is not part of a majority

// The numbers of https://mariadb.com/kb/en/mariadb-error-code-reference/.
var (
	duplicates = []uint16{1062, 1586}
	conflicts  = []uint16{1205, 1213, 1020} // lock wait, deadlock, changed since it was read
	absences   = []uint16{
		noMajority,
		1040, 1203, 1226, // too many connections
		1053, 1077, 1079, // shutting down
		1180, 1317, 1927, 2006, 2013, // interrupted, killed, gone
	}
	readOnlys = []uint16{1290, 1792, 1836}             // like a replica
	refusals  = []uint16{1045, 1698, 1130, 1142, 1227} // of the user
	fulls     = []uint16{1021, 1114, 3}
	misfits   = []uint16{1264, 1366, 1406}
)

func number(err error) uint16 {
	if cause, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return cause.Number
	}
	return 0
}

// rolledBack reports whether a failed COMMIT has certainly changed nothing.
func rolledBack(err error) bool { return slices.Contains(conflicts, number(err)) }

// passing reports whether the same transaction may succeed if it is repeated.
func passing(err error) bool {
	n := number(err)
	return slices.Contains(conflicts, n) || slices.Contains(absences, n) || slices.Contains(readOnlys, n) || lost(err)
}

// lost reports whether the connection to the server failed or broke.
func lost(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ENOENT)
}

// translateServer is translate for MariaDB and MySQL.
func translateServer(err error) error {
	if _, translated := errors.AsType[*fault.Error](err); translated || errors.Is(err, gorm.ErrDuplicatedKey) {
		return err
	}
	n := number(err)
	switch {
	case slices.Contains(duplicates, n):
		return fmt.Errorf("%w: %w", gorm.ErrDuplicatedKey, err)
	case slices.Contains(conflicts, n):
		return busy(err)
	case slices.Contains(absences, n) || lost(err):
		return away(err)
	case slices.Contains(readOnlys, n):
		return readOnly(err)
	case n == 1044:
		return unavailable(err, "Almanac's user has no privileges on this database, or no database has that name; try again when the operator has corrected it")
	case slices.Contains(refusals, n):
		return unavailable(err, "the database refuses Almanac's user or password; try again when the operator has corrected it")
	case n == 1049:
		return unavailable(err, "the server has no such database; try again when the operator has created it")
	case n == 1146 || n == 1054:
		return unavailable(err, "the database is older than this almanacd; try again when the operator has run almanacd db sync")
	case slices.Contains(fulls, n):
		return unavailable(err, "the disk of the database is full; try again when the operator has made room")
	case n == 1153 || errors.Is(err, mysql.ErrPktTooLarge):
		return &fault.Error{
			Kind: fault.Invalid, Err: err,
			Message: "the reservation is larger than the database accepts in one statement; request fewer hosts with a shorter filter, or ask the operator to raise max_allowed_packet",
		}
	case slices.Contains(misfits, n):
		return &fault.Error{Kind: fault.Invalid, Message: "a text is too long or is not UTF-8, or a number is too large", Err: err}
	}
	return err
}
