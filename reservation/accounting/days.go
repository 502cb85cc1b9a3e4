// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"fmt"
	"iter"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Day is the number of seconds of a day. Days begin at midnight UTC.
const Day = 24 * 3600

// DaySum is what a project held on a host on one day, as it is kept of reservations that are purged.
type DaySum struct {
	Day       span.Instant // its beginning
	ProjectID string
	Host      string
	Of        Shape
	// Held and Used are how many seconds claims of the shape held together, and were used.
	Held, Used int64
}

// Shape is what a claim holds: the whole host, or Slices slices of a size.
type Shape struct {
	Maintenance bool
	Slices      int
	Size        resource.Vector // of one slice
}

// ShapeOf returns the shape of a claim of r.
func ShapeOf(r *reservation.Reservation, c *reservation.Claim) Shape {
	if c.Slices == 0 {
		return Shape{Maintenance: r.Maintenance}
	}
	return Shape{Slices: c.Slices, Size: r.Resources}
}

// Key returns a text that tells a shape from all others.
func (s Shape) Key() string {
	return fmt.Sprintf("%+v", s) // fmt sorts the keys of maps
}

// Days yields what r, which is over, held in claims, by day.
func Days(r *reservation.Reservation, claims []reservation.Claim) iter.Seq[DaySum] {
	usable := usableSpan(r, span.Forever)
	return func(yield func(DaySum) bool) {
		for i := range claims {
			c := &claims[i]
			for day := c.Span.Start - c.Span.Start%Day; day < c.Span.End; day = day.Add(Day) {
				part := intersection(c.Span, span.New(day, Day))
				sum := DaySum{Day: day, ProjectID: r.ProjectID, Host: c.Host, Of: ShapeOf(r, c)}
				sum.Held, sum.Used = seconds(part), seconds(intersection(part, usable))
				if sum.Held > 0 && !yield(sum) {
					return
				}
			}
		}
	}
}

// AllClaims returns the claims of a past, released ones included.
func AllClaims(p *reservation.Past) []reservation.Claim {
	claims := slices.Clone(p.Reservation.Claims)
	for _, c := range p.Released {
		claims = append(claims, c.Claim)
	}
	return claims
}
