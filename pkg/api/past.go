// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/accounting"
)

// History reads what is over.
type History interface {
	// LastChange returns the place of the last stored change in the change log; 0 if there is none.
	LastChange(ctx context.Context) (int64, error)
	// Past returns a page of what reservations held, sorted by start, then id: those that are over, and
	// live ones that have released claims. Each holds something in q.Overlaps. more is false on the last
	// page.
	Past(ctx context.Context, q reservation.PastQuery) (page []reservation.Past, more bool, err error)
	// PastOnHosts returns what reservations that are over, or have released claims, held on some hosts,
	// each with its claims there that overlap the time. unread is the first host with claims that the
	// answer lacks because there are more than q.Limit; empty if it lacks none.
	PastOnHosts(ctx context.Context, q reservation.PastHosts) (list []reservation.Past, unread string, err error)
	// PastUsage returns sums of what purged reservations held on days that overlap w, at most limit. They
	// are sorted, and after is the last sum of the page before, or empty. An empty project is all.
	PastUsage(ctx context.Context, w span.Span, project string, after accounting.DaySum, limit int) ([]accounting.DaySum, error)
	// Kept returns which part of the past is kept in full.
	Kept(ctx context.Context) (reservation.Kept, error)
	// Phases returns the entries of the audit of kind energy.EntryPhase from an instant on, the
	// oldest first, at most limit.
	Phases(ctx context.Context, from span.Instant, limit int) ([]energy.Entry, error)
	// PhasesBefore returns the last such entry before an instant of each host that has a later one, the
	// oldest first.
	PhasesBefore(ctx context.Context, from span.Instant) ([]energy.Entry, error)
	// PowerRecords returns the records of the hosts that Almanac switches, by name.
	PowerRecords(ctx context.Context) (map[string]energy.Record, error)
}

// versions are the versions of live reservations, by id.
type versions map[string]int64

func versionsOf(live []reservation.Reservation) versions {
	known := make(versions, len(live))
	for i := range live {
		known[live[i].ID] = live[i].Version
	}
	return known
}

// besides returns the claims of p that the known state of its reservation does not contain. That state
// is older than p: a reservation that has ended since, or has released claims, still contains them.
func (known versions) besides(p *reservation.Past) []reservation.Claim {
	version, live := known[p.Reservation.ID]
	if !live {
		return accounting.AllClaims(p)
	}
	var claims []reservation.Claim
	for _, c := range p.Released {
		if c.Version <= version {
			claims = append(claims, c.Claim)
		}
	}
	return claims
}

const (
	// pastPage and sumsPage are the largest numbers of reservations, and of sums of days, that a report
	// reads in one turn of its project.
	pastPage, sumsPage = 200, 10_000
	// purgeTries is how often a report is begun while reservations are purged.
	purgeTries = 3
)

// account returns what q adds up, for a project or, if it is empty, for all, and which part of the past
// is kept in full. It reads page after page, each in a turn of the caller's project.
func (s *server) account(ctx context.Context, by *asker, q accounting.Question, project string) (accounting.Report, reservation.Kept, error) {
	for range purgeTries {
		before, err := s.History.Kept(ctx)
		if err != nil {
			return accounting.Report{}, before, err
		}
		report, err := s.accountOnce(ctx, by, q, project)
		if err != nil {
			return report, before, err
		}
		after, err := s.History.Kept(ctx)
		if err != nil || before == after {
			return report, after, err
		}
	}
	return accounting.Report{}, reservation.Kept{}, fault.New(fault.Unavailable, "old reservations are being purged; try again when that is done")
}

func (s *server) accountOnce(ctx context.Context, by *asker, q accounting.Question, project string) (report accounting.Report, err error) {
	account, known := q.Begin(), versions(nil)
	inTurn := func(do func() error) {
		if err == nil {
			if turnErr := s.Booking.InTurn(ctx, by.ProjectID, func() { err = do() }); turnErr != nil {
				err = turnErr
			}
		}
	}
	inTurn(func() error {
		live := s.Booking.Live(q.Span)
		known = versionsOf(live)
		for i := range live {
			if project == "" || live[i].BelongsTo(project) {
				account.Add(&live[i], live[i].Claims)
			}
		}
		return nil
	})
	past := reservation.PastQuery{Overlaps: q.Span, ProjectID: project, Limit: pastPage}
	for more := true; more && err == nil; {
		inTurn(func() error {
			page, rest, err := s.History.Past(ctx, past)
			for i := range page {
				p := &page[i]
				account.Add(&p.Reservation, known.besides(p))
				past.After = reservation.PastMark{Start: p.Reservation.Span.Start, ID: p.Reservation.ID}
			}
			more = rest
			return err
		})
	}
	var last accounting.DaySum
	for more := true; more && err == nil; {
		inTurn(func() error {
			page, err := s.History.PastUsage(ctx, q.Span, project, last, sumsPage)
			for _, d := range page {
				account.AddDay(d)
				last = d
			}
			more = len(page) == sumsPage
			return err
		})
	}
	inTurn(func() error {
		report = account.Report()
		return nil
	})
	return report, err
}
