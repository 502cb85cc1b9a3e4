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

// Options say where the database is and how to treat it.
type Options struct {
	// Connection is an SQLAlchemy URL ("mysql+pymysql://user:password@host/name",
	// "sqlite:///relative.db", "sqlite:////absolute.db"; "sqlite://" is in memory)
	// or a name in the form of a Go driver ("user:password@tcp(host:3306)/name",
	// "file:relative.db").
	Connection string
	// BusyTimeout is how long a write to SQLite waits for the writes of others:
	// first for those of this Store, then as long again for those of other processes.
	BusyTimeout time.Duration

	// The fields from here to Random are for a database server.

	// PoolSize is how many idle connections are kept for each of reading and
	// writing; 0 keeps all. Together there are at most PoolSize and Overflow, half
	// for each; a PoolSize of 0 or an Overflow of -1 is no bound. Recycle is the age
	// at which a connection is replaced; 0 is never.
	PoolSize, Overflow int
	Recycle            time.Duration
	// Patience is how long a transaction is tried before it fails as Unavailable,
	// Retries how often it is run again (-1 is as often as time allows), and
	// LongestWait the most that lies between two tries. Waits begin at 10 ms and
	// double; each is a random part of that.
	Patience    time.Duration
	Retries     int
	LongestWait time.Duration
	// NewToken gives a text that nobody else gives: it marks a commit, so that it is
	// found again after a connection was lost. A server needs it; SQLite does not.
	NewToken func() string
	// Random gives a number in [0, 1); nil waits in full.
	Random func() float64

	// Holder names this process among all that share the database. Leases are its.
	Holder string
	// Outbox keeps changes to be sent as notifications; without it all are stored
	// as sent.
	Outbox bool
	// Logger gets every statement, without its values, at level debug. Nil is silence.
	Logger *slog.Logger
}

// Store is booking.Records, booking.Keys, reservation.Reader, the settings of the
// inventory, the leases of periodic work and the outbox, in a database. It is safe
// for concurrent use.
type Store struct {
	engine         engine
	writer, reader *gorm.DB // the same for a database in memory
	pools          []*sql.DB
	writing        chan struct{} // has an element while somebody writes; SQLite only
	options        Options
	retries        retries
}

var (
	_ booking.Records    = (*Store)(nil)
	_ booking.Keys       = (*Store)(nil)
	_ reservation.Reader = (*Store)(nil)
)

// engine is what one database does differently from another.
type engine struct {
	// now is an expression for its clock, in milliseconds since 1970.
	now string
	// insertMissing begins an INSERT that leaves out what is there already.
	insertMissing string
	// tableOptions end a CREATE TABLE.
	tableOptions string
	// translate gives faults, gorm.ErrDuplicatedKey, or the error as it is.
	translate func(error) error
	// passing says that a transaction which failed so may succeed when it is run
	// again. Nil is never.
	passing func(error) bool
	// migrate applies the migrations that are missing and gives their ids.
	migrate func(ctx context.Context) ([]string, error)
}

// target is a database that a connection names.
type target interface {
	// connect opens the pools of s and sets its engine.
	connect(ctx context.Context, s *Store) error
	// String is fit for a log: it has no password.
	String() string
}

// Open connects to the database, and creates that of SQLite, a file readable for
// owner and group, with the folder around it, where they are missing. It does not
// migrate. It fails with an Invalid fault on field connection for a connection that
// it cannot read, and with an Unavailable fault where the database cannot be used now.
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

// Close ends all connections, when the statements under way are done.
func (s *Store) Close() error {
	var errs []error
	for _, pool := range s.pools {
		errs = append(errs, pool.Close())
	}
	return errors.Join(errs...)
}

// Ping says whether the database answers. It tries once.
func (s *Store) Ping(ctx context.Context) error {
	return s.plain(ctx, s.reader.WithContext(ctx).Exec("SELECT 1").Error)
}

// Now gives the time on the database's clock, in milliseconds.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now int64
	err := s.look(ctx, func(db *gorm.DB) error { return db.Raw("SELECT " + s.engine.now).Scan(&now).Error })
	if err != nil {
		return time.Time{}, fmt.Errorf("read the database's clock: %w", err)
	}
	return time.UnixMilli(now).UTC(), nil
}

// gorm gives the settings that every database has.
func (s *Store) gorm() *gorm.Config {
	return &gorm.Config{
		Logger:                 sqlLog{s.options.Logger},
		SkipDefaultTransaction: true, // read and write begin them
		TranslateError:         true,
		DisableAutomaticPing:   true,
		QueryFields:            true, // names columns: a newer version may have added some
	}
}
