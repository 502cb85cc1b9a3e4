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
	// Connection is an SQLAlchemy URL ("sqlite:///relative.db",
	// "sqlite:////absolute.db"; "sqlite://" is in memory) or a name in Go's form
	// ("file:relative.db"), whose options are handed on to the driver.
	Connection string
	// BusyTimeout is how long a write waits for the writes of others: first for
	// those of this Store, then as long again for those of other processes.
	BusyTimeout time.Duration
	// Logger gets every statement, without its values, at level debug. Nil is silence.
	Logger *slog.Logger
}

// Store is booking.Records, booking.Keys, reservation.Reader and the settings of
// the inventory, in a database. It is safe for concurrent use.
type Store struct {
	writer, reader *gorm.DB // the same for a database in memory
	pools          []*sql.DB
	writing        chan struct{} // has an element while somebody writes
	busyTimeout    time.Duration
}

var (
	_ booking.Records    = (*Store)(nil)
	_ booking.Keys       = (*Store)(nil)
	_ reservation.Reader = (*Store)(nil)
)

// Open connects to the database and creates its file, readable for owner and
// group, and the folder around it where they are missing. It does not migrate. It
// fails with an Invalid fault on field connection for a connection that it cannot
// read, and with an Unavailable fault where the database cannot be used now.
func Open(ctx context.Context, o Options) (*Store, error) {
	at, err := parseConnection(o.Connection)
	if err != nil {
		return nil, err
	}
	if err := at.createFile(); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	s := &Store{writing: make(chan struct{}, 1), busyTimeout: o.BusyTimeout}
	if err := s.connect(ctx, at, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open the database: %w", err), s.Close())
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

// Ping says whether the database can be read.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.Status(ctx)
	return err
}

// read runs act in a transaction that sees one state of the database.
func (s *Store) read(ctx context.Context, act func(tx *gorm.DB) error) error {
	err := s.reader.WithContext(ctx).Transaction(act, &sql.TxOptions{ReadOnly: true})
	return plain(ctx, err)
}

// write runs act in a transaction of its own.
func (s *Store) write(ctx context.Context, act func(tx *gorm.DB) error) error {
	if err := s.queue(ctx); err != nil {
		return err
	}
	defer func() { <-s.writing }()
	return plain(ctx, s.writer.WithContext(ctx).Transaction(act))
}

// queue waits until nobody writes. The wait for a connection of the pool would
// have no bound.
func (s *Store) queue(ctx context.Context) error {
	select {
	case s.writing <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.busyTimeout):
		return busy(errors.New("waited for other writes of this process"))
	}
}

// plain gives the context's error where it ended the transaction between two
// statements; database/sql then says only that the transaction is over.
func plain(ctx context.Context, err error) error {
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
