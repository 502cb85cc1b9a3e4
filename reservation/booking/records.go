package booking

import (
	"context"

	"github.com/almanac-cloud/almanac/reservation"
)

// Records keeps reservations where a crash does not reach them.
type Records interface {
	// Create stores a new reservation and, where key is not nil, the key that it
	// came with, both or neither. It fails with reservation.ErrKeyUsed where the
	// project has used the key before.
	Create(ctx context.Context, r reservation.Reservation, key *reservation.Key) error
	// Update replaces a stored reservation whose version is one less than r's, and
	// fails with a Conflict fault where it is not.
	Update(ctx context.Context, r reservation.Reservation) error
	// Live gives every reservation that holds claims.
	Live(ctx context.Context) ([]reservation.Reservation, error)
}

// Keys remembers idempotency keys.
type Keys interface {
	// Key gives the use of a key by a project; ok is false where there is none.
	Key(ctx context.Context, projectID, key string) (use reservation.Key, ok bool, err error)
}
