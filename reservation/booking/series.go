// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Recurring are offers, bookings and changes of series.
type Recurring struct {
	*decider
	used    *locks[[2]string] // those of Bookings, by project and key
	members *Leases           // locks several reservations at once
	changed locks[string]     // of series that change, by id
}

// BookSeries makes a series with its reservations and stores it, all at once. refused are the occurrences that the request skips. If
// the project has used the key with the same body before, BookSeries returns the series made then; with another body it fails
// with an Unprocessable fault. Other errors are those of NewSeriesPlan, and a Denied fault if the checks of package enforcement
// would have to allow it.
func (d *Recurring) BookSeries(ctx context.Context, by Caller, req planning.SeriesRequest, use *KeyUse) (s reservation.SeriesRecord, refused []reservation.RefusedOccurrence, err error) {
	if err := d.unchecked(); err != nil {
		return s, nil, err
	}
	if use != nil {
		unlock, err := d.used.lock(ctx, [2]string{by.ProjectID, use.Key})
		if err != nil {
			return s, nil, err
		}
		defer unlock()
	}
	if made, ok, err := d.seriesOf(ctx, by, use); ok || err != nil {
		return made, nil, err
	}
	req = planning.Expand(req)
	var again retry
	for {
		again.decide(d.decider)
		var attempts []*attempt
		s, refused, attempts, err = d.bookSeriesOnce(ctx, by, req, use)
		if err == nil {
			return s, refused, nil
		}
		if err = again.after(ctx, d.decider, err, d.concerning(attempts)); err != nil {
			break
		}
	}
	// The obstacle may be the series that the same request has made through another replica.
	if made, ok, keyErr := d.seriesOf(ctx, by, use); ok && keyErr == nil {
		return made, nil, nil
	}
	if errors.Is(err, reservation.ErrKeyUsed) {
		err = fault.New(fault.Conflict, "the Idempotency-Key %q was used at this moment; send the request again", use.Key)
	}
	return reservation.SeriesRecord{}, nil, d.explainSeries(ctx, by, req, err)
}

// unchecked fails with a Denied fault if the checks of package enforcement, which know no series, would have to allow it.
func (d *Recurring) unchecked() error {
	if d.options.Enforcement == nil {
		return nil
	}
	return fault.New(fault.Denied, "this cloud checks each booking and change with [enforcement], which knows no series; book and change the reservations one by one")
}

// OfferSeries returns what BookSeries would do now, without doing it.
func (d *Recurring) OfferSeries(ctx context.Context, by Caller, req planning.SeriesRequest) (plan planning.SeriesPlan, err error) {
	if err := d.unchecked(); err != nil {
		return plan, err
	}
	req = planning.Expand(req)
	if err := d.deciding.Enter(ctx, by.ProjectID); err != nil {
		return plan, err
	}
	v := d.view(by, by.ProjectID)
	plan, err = planning.NewSeriesPlan(v.View, req)
	d.deciding.Leave(by.ProjectID)
	return plan, d.explainSeries(ctx, by, req, err)
}

// seriesOf returns the series that was made with the key; ok is false if there is no key, or if it was not used before. It fails with
// a Conflict fault if the series was canceled since then.
func (d *Recurring) seriesOf(ctx context.Context, by Caller, use *KeyUse) (s reservation.SeriesRecord, ok bool, err error) {
	if use == nil {
		return s, false, nil
	}
	before, ok, err := d.options.Keys.Key(ctx, by.ProjectID, use.Key)
	if err != nil || !ok {
		return s, false, err
	}
	if before.BodyHash != use.BodyHash {
		return s, false, otherBody(use)
	}
	r, err := d.options.Reader.Get(ctx, before.ReservationID)
	if err == nil {
		s, err = d.options.Reader.Series(ctx, r.Occurrence.SeriesID)
	}
	lasts := slices.ContainsFunc(s.Reservations, func(r reservation.Reservation) bool { return r.Status != reservation.Canceled })
	if fault.Is(err, fault.NotFound) || err == nil && !lasts {
		err = fault.New(fault.Conflict, "this request has made series %s before, which was canceled since then; use a new Idempotency-Key for another one",
			cmp.Or(s.ID, r.Occurrence.SeriesID, before.ReservationID))
	}
	return s, err == nil, err
}

// bookSeriesOnce returns also the attempts to store the reservations.
func (d *Recurring) bookSeriesOnce(
	ctx context.Context, by Caller, req planning.SeriesRequest, use *KeyUse,
) (s reservation.SeriesRecord, refused []reservation.RefusedOccurrence, attempts []*attempt, err error) {
	attempts, err = decide(ctx, d.decider, by.ProjectID, (*turns.Gate).Enter, func() (attempts []*attempt, err error) {
		v := d.view(by, by.ProjectID)
		plan, err := planning.NewSeriesPlan(v.View, req)
		if err != nil {
			return nil, err
		}
		s, refused = d.newSeries(by, req, plan, v.View), plan.Refused
		for _, r := range s.Reservations {
			a, err := newAttempt(ctx, &v, r, by)
			if err != nil {
				return nil, err
			}
			attempts = append(attempts, a)
		}
		attempts[0].key = use.key(&s.Reservations[0])
		return attempts, d.enter(&v, attempts...)
	})
	if err != nil {
		return s, nil, nil, err
	}
	defer leave(attempts)
	if err := d.commitTogether(ctx, whole{series: &s.Series}, attempts...); err != nil {
		return s, nil, attempts, fmt.Errorf("store the series: %w", err)
	}
	return s, refused, attempts, nil
}

// newSeries returns a series by a plan.
func (d *Recurring) newSeries(by Caller, req planning.SeriesRequest, plan planning.SeriesPlan, v planning.View) reservation.SeriesRecord {
	s := reservation.SeriesRecord{Series: reservation.Series{
		ID: d.options.NewID(), ProjectID: by.ProjectID, UserID: by.UserID, Name: req.Name,
		Pattern: reservation.Pattern(req.Rule.Pattern()), Duration: req.Duration, Created: v.Now,
	}}
	for _, o := range plan.Occurrences {
		r := d.newReservation(by, o.Plan, v.Now)
		r.Occurrence = reservation.Occurrence{SeriesID: s.ID, Local: o.Local}
		s.Reservations = append(s.Reservations, r)
	}
	return s
}

// explainSeries returns the error for a series. If it is a refusal, it names the largest quantity. That takes many plans, so they are
// made when the turn of the booking is over, which all other bookings wait for.
func (d *Recurring) explainSeries(ctx context.Context, by Caller, req planning.SeriesRequest, err error) error {
	refusal, refused := errors.AsType[*reservation.Refusal](err)
	if !refused || d.deciding.Enter(ctx, by.ProjectID) != nil {
		return err
	}
	defer d.deciding.Leave(by.ProjectID)
	return planning.ExplainSeries(d.view(by, by.ProjectID).View, req, refusal)
}
