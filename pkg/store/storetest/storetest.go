// Package storetest says what a store must do, as tests that every database has
// to pass.
package storetest

import (
	"context"
	"io"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Subject is a store under test.
type Subject interface {
	booking.Records
	booking.Keys
	reservation.Reader
	PurgeKeys(ctx context.Context, before span.Instant) (int, error)

	Overrides(ctx context.Context) (map[string]inventory.Override, error)
	SaveOverride(ctx context.Context, host string, o inventory.Override) error
	Hidden(ctx context.Context) (map[string]bool, error)
	SaveHidden(ctx context.Context, property string, hidden bool) error

	io.Closer
}

// Run tests a store by itself. Each call of open gives one on a new database,
// migrated and empty, and closes it when the test ends.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("reservations", func(t *testing.T) { testReservations(t, open) })
	t.Run("keys", func(t *testing.T) { testKeys(t, open) })
	t.Run("listing", func(t *testing.T) { testListing(t, open) })
	t.Run("settings", func(t *testing.T) { testSettings(t, open) })
	t.Run("concurrency", func(t *testing.T) { testConcurrency(t, open) })
}

// RunShared tests several stores on one database that outlives them. Each call of
// create makes a new database and gives what opens a store on it.
func RunShared(t *testing.T, create func(t *testing.T) (open func(t *testing.T) Subject)) {
	t.Run("what is stored outlives the store", func(t *testing.T) { testReopening(t, create(t)) })
	t.Run("stores count together", func(t *testing.T) {
		open := create(t)
		testCounting(t, open(t), open(t))
	})
	t.Run("of updates by several stores one wins", func(t *testing.T) {
		open := create(t)
		testOneWins(t, open(t), open(t))
	})
}
