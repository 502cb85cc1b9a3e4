// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Options are the location of the database and the settings of its connections.
type Options struct {
	// Connection is an SQLAlchemy URL ("mysql+pymysql://user:password@host/name",
	// "sqlite:///relative.db", "sqlite:////absolute.db"; "sqlite://" is in memory)
	// or a name in the form of a Go driver ("user:password@tcp(host:3306)/name",
	// "file:relative.db"). A URL may name several hosts of the same data, separated by commas:
	// connections are to the first one that answers, until it fails.
	Connection string
	// BusyTimeout is how long a write to SQLite waits for other writes of this Store, and then as
	// long again for those of other processes.
	BusyTimeout time.Duration

	// The fields from here to Random are for a database server.

	// PoolSize is the number of idle connections that are kept, for reads and for writes each; 0
	// means all. The number of connections is at most PoolSize + Overflow, half for each; a
	// PoolSize of 0 or an Overflow of -1 means no limit. Recycle is the age at which a connection
	// is replaced; 0 means never.
	PoolSize, Overflow int
	Recycle            time.Duration
	// Patience is how long a transaction lasts, with its repetitions, before it fails as Unavailable; only
	// the Recall of all reservations lasts as long as it takes. Retries is the
	// largest number of repetitions (-1 means no limit), and LongestWait the longest time between
	// two of them. Waits begin at 10 ms and double; the actual wait is a random part of that.
	Patience    time.Duration
	Retries     int
	LongestWait time.Duration
	// NewToken returns a unique text. It marks a commit, so that the commit can be found after a
	// lost connection. A server requires it; SQLite does not.
	NewToken func() string
	// Random returns a number in [0, 1); a nil function means that every wait has its full length.
	Random func() float64

	// Holder is the name of this process among all that share the database, under which it has
	// leases.
	Holder string
	// Outbox is true if changes are stored until their notifications are sent. Otherwise they are
	// stored as sent.
	Outbox bool
	// Webhooks is true if changes are stored until their deliveries to webhooks are stored.
	Webhooks bool
	// Logger receives every statement, without its values, at level debug; nil means no logging.
	Logger *slog.Logger
}

// Store implements booking.Records, booking.Keys, reservation.Reader, and the ports for the
// settings of the inventory, the leases of periodic work and the outbox, with a database. It is
// safe for concurrent use.
type Store struct {
	engine         engine
	writer, reader *gorm.DB // the same for a database in memory
	pools          []*sql.DB
	writing        chan struct{} // has an element during a write; SQLite only
	options        Options
	retries        retries
	writability    writability
}

var (
	_ booking.Records    = (*Store)(nil)
	_ booking.Keys       = (*Store)(nil)
	_ reservation.Reader = (*Store)(nil)
)

// engine contains what differs between databases.
type engine struct {
	// now is an SQL expression for the database's clock, in milliseconds since 1970.
	now string
	// insertMissing is the beginning of an INSERT that skips existing rows.
	insertMissing string
	// inserted returns an SQL expression for the value of a column of the row whose INSERT met a row
	// with the same key.
	inserted func(column string) string
	// tableOptions is the end of a CREATE TABLE.
	tableOptions string
	// translate returns a fault, gorm.ErrDuplicatedKey, or the error itself.
	translate func(error) error
	// passing reports whether a transaction that failed with the error may succeed if it is
	// repeated. A nil function means never.
	passing func(error) bool
	// migrate applies the missing migrations and returns their ids.
	migrate func(ctx context.Context) ([]string, error)
	// longRead is a statement that prepares a session for reading everything.
	longRead string
	// nextNumber returns the number of the next row of a table in numbered, which setNextNumber sets.
	nextNumber    func(tx *gorm.DB, table string) (int64, error)
	setNextNumber func(db *gorm.DB, table string, next int64) error
}

// target is the database that a connection names.
type target interface {
	// connect opens the pools of s and sets its engine.
	connect(ctx context.Context, s *Store) error
	// String returns a description without the password, for logs.
	String() string
}

// Open connects to the database. It creates an SQLite database that does not exist, as a file
// readable for owner and group, and its folder. It does not migrate. It fails with an Invalid fault
// with the field connection if it cannot parse the connection, and with an Unavailable fault if the
// database cannot be used now.
func Open(ctx context.Context, o Options) (*Store, error) {
	at, err := parseConnection(o.Connection)
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{options: o}
	if err := at.connect(ctx, s); err != nil {
		return nil, errors.Join(fmt.Errorf("open the database %s: %w", at, err), s.Close())
	}
	return s, nil
}

// Close closes all connections after their present statements.
func (s *Store) Close() error {
	var errs []error
	for _, pool := range s.pools {
		errs = append(errs, pool.Close())
	}
	return errors.Join(errs...)
}

// Ping returns an error if the database does not answer. It tries once.
func (s *Store) Ping(ctx context.Context) error {
	return s.plain(ctx, s.reader.WithContext(ctx).Exec("SELECT 1").Error)
}

// Now returns the time on the database's clock, in milliseconds.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now int64
	err := s.look(ctx, func(db *gorm.DB) error { return db.Raw("SELECT " + s.engine.now).Scan(&now).Error })
	if err != nil {
		return time.Time{}, fmt.Errorf("read the database's clock: %w", err)
	}
	return time.UnixMilli(now).UTC(), nil
}

// gorm returns the settings of gorm that apply to every database.
func (s *Store) gorm() *gorm.Config {
	return &gorm.Config{
		Logger:                 sqlLog{s.options.Logger},
		SkipDefaultTransaction: true, // read and write begin them
		TranslateError:         true,
		DisableAutomaticPing:   true,
		QueryFields:            true, // names the columns: a newer version may have added some
	}
}
