// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/accounting"
)

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
func (s *API) account(ctx context.Context, by *serving.Asker, q accounting.Question, project string) (accounting.Report, reservation.Kept, error) {
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

func (s *API) accountOnce(ctx context.Context, by *serving.Asker, q accounting.Question, project string) (report accounting.Report, err error) {
	account, known := q.Begin(), versions(nil)
	inTurn := func(do func() error) {
		if err == nil {
			if turnErr := s.Turns.InTurn(ctx, by.ProjectID, func() { err = do() }); turnErr != nil {
				err = turnErr
			}
		}
	}
	inTurn(func() error {
		live := s.Live.Live(q.Span)
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
