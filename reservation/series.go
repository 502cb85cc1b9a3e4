// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Series is a reservation that recurs. Each of its occurrences is a reservation of its own, which names the series.
// A series is stored once and never changes: changes and cancellations are those of its reservations.
type Series struct {
	ID        string
	ProjectID string
	UserID    string
	Name      string
	Pattern
	// Duration is how many seconds each occurrence lasted when the series was booked.
	Duration int64
	Created  span.Instant
}

// Pattern is when a series occurs, in the form that package recurrence reads.
type Pattern struct {
	Rule     string   `json:"rule"`
	TimeZone string   `json:"time_zone"`
	Start    string   `json:"start"` // the local time of the first occurrence
	Except   []string `json:"except,omitempty"`
	Also     []string `json:"also,omitempty"`
}

// Occurrence is the place of a reservation in its series; the zero Occurrence is that of a reservation in none.
type Occurrence struct {
	SeriesID string
	// Local is the local time of the occurrence by the pattern, "2006-01-02T15:04:05". It identifies the occurrence in its
	// series, also when the reservation has another start.
	Local string
}

// SeriesRecord is a series with its reservations, sorted by their local times. Canceled ones are among them.
type SeriesRecord struct {
	Series
	Reservations []Reservation
}

// VersionText returns the state in which a series was read as a text, which a client names for a change that is for this state alone.
func (s *SeriesRecord) VersionText() string {
	versions := int64(0)
	for i := range s.Reservations {
		versions += s.Reservations[i].Version
	}
	return fmt.Sprintf("%d.%d", len(s.Reservations), versions)
}

// RefusedOccurrence is an occurrence that cannot be booked or changed, and why.
type RefusedOccurrence struct {
	Local      string
	Start      span.Instant
	Constraint Constraint
	Message    string
}

// SeriesQuery selects series for a list, sorted by their creation, the latest first, then by id.
type SeriesQuery struct {
	ProjectID string // empty selects every project
	Marker    string // the id of the last series of the previous page; empty means the first page
	Limit     int    // the maximum length of the list; 0 means no limit
}

// SeriesReader reads stored series.
type SeriesReader interface {
	// Series returns one series. It fails with a NotFound fault if there is none.
	Series(ctx context.Context, id string) (SeriesRecord, error)
	// SeriesList returns the series that q selects. An unknown marker is an Invalid fault with the field marker.
	SeriesList(ctx context.Context, q SeriesQuery) ([]Series, error)
	// LiveInSeries returns how many reservations of series are live, by the ids of the series; none for one without any.
	LiveInSeries(ctx context.Context, ids []string) (map[string]int, error)
}
