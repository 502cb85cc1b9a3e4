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
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/recurrence"
)

// ChangeSeries changes the reservations of a series that have not begun, from the local time of an occurrence on, and stores them, all
// or none. It returns those that it was about, sorted by their local times; an empty from selects all. Errors are those of
// PlanSeriesChange, a Conflict fault if there is no such reservation, and a NotFound fault if there is no such series.
func (d *Recurring) ChangeSeries(ctx context.Context, by Caller, id, from string, c planning.SeriesChange) ([]reservation.Reservation, error) {
	return d.changeSeries(ctx, by, id, c, seriesAmendment{store: true, from: from, of: notBegun(from), amend: changing(c)})
}

// OfferSeriesChange returns the reservations as ChangeSeries would make them now, without doing it.
func (d *Recurring) OfferSeriesChange(ctx context.Context, by Caller, id, from string, c planning.SeriesChange) ([]reservation.Reservation, error) {
	return d.changeSeries(ctx, by, id, c, seriesAmendment{from: from, of: notBegun(from), amend: changing(c)})
}

// changeSeries is ChangeSeries or OfferSeriesChange.
func (d *Recurring) changeSeries(ctx context.Context, by Caller, id string, c planning.SeriesChange, a seriesAmendment) ([]reservation.Reservation, error) {
	if err := d.unchecked(); err != nil {
		return nil, err
	}
	list, err := d.modifySeries(ctx, by, id, a)
	return list, d.explainSeriesChange(ctx, by, id, a, c, err)
}

// CancelSeries cancels the reservations of a series that are neither over nor ending, from the local time of an occurrence on, all or
// none, and returns them. Errors are as for ChangeSeries.
func (d *Recurring) CancelSeries(ctx context.Context, by Caller, id, from string) ([]reservation.Reservation, error) {
	return d.modifySeries(ctx, by, id, seriesAmendment{store: true, from: from, of: CanceledBySeries(from), amend: canceling})
}

// seriesAmendment is a change of some reservations of a series.
type seriesAmendment struct {
	store bool
	from  string // the local time of the first occurrence that it is about; empty if it is about all
	// of reports whether it is about a reservation.
	of func(r *reservation.Reservation) bool
	// amend returns the reservations after the change; the view contains them.
	amend func(v planning.View, rule recurrence.Rule, list []reservation.Reservation) ([]reservation.Reservation, error)
}

func notBegun(from string) func(r *reservation.Reservation) bool {
	return func(r *reservation.Reservation) bool {
		return r.Status == reservation.Pending && r.Occurrence.Local >= from
	}
}

// CanceledBySeries returns which reservations CancelSeries cancels.
func CanceledBySeries(from string) func(r *reservation.Reservation) bool {
	return func(r *reservation.Reservation) bool {
		_, err := lifecycle.Next(r.Status, lifecycle.Cancel)
		return err == nil && r.Occurrence.Local >= from
	}
}

func changing(c planning.SeriesChange) func(planning.View, recurrence.Rule, []reservation.Reservation) ([]reservation.Reservation, error) {
	return func(v planning.View, rule recurrence.Rule, list []reservation.Reservation) ([]reservation.Reservation, error) {
		return planning.PlanSeriesChange(v, list, rule, c)
	}
}

func canceling(v planning.View, _ recurrence.Rule, list []reservation.Reservation) (canceled []reservation.Reservation, err error) {
	canceled = slices.Clone(list)
	for i, r := range list {
		if canceled[i], err = planning.Canceled(r, v.Now); err != nil {
			return nil, err
		}
	}
	return canceled, nil
}

// modifySeries decides on a change and stores it. It decides again if the records have changed.
func (d *Recurring) modifySeries(ctx context.Context, by Caller, id string, c seriesAmendment) ([]reservation.Reservation, error) {
	unlock, err := d.changed.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var again retry
	for {
		again.decide(d.decider)
		list, err := d.modifySeriesOnce(ctx, by, id, c)
		if err == nil {
			return list, nil
		}
		q := Recall{Project: by.ProjectID}
		for _, r := range list {
			q.Project = r.ProjectID // an admin changes that of another one
			q.IDs, q.Hosts = append(q.IDs, r.ID), append(q.Hosts, d.versioned(&r)...)
		}
		if err := again.after(ctx, d.decider, err, q); err != nil {
			return nil, err
		}
	}
}

// modifySeriesOnce returns the reservations that it decided on, also with an error of the records.
func (d *Recurring) modifySeriesOnce(ctx context.Context, by Caller, id string, c seriesAmendment) ([]reservation.Reservation, error) {
	l, rule, err := d.subject(ctx, by, id, c)
	if err != nil {
		return nil, err
	}
	entries, unlock, err := d.members.lockMembers(ctx, l)
	if err != nil {
		return l.Reservations, err
	}
	defer unlock()
	var next []reservation.Reservation
	var booked []*attempt
	attempts, err := decide(ctx, d.decider, by.ProjectID, (*turns.Gate).EnterAhead, func() (attempts []*attempt, err error) {
		v, err := d.members.viewOfLease(by, &l, entries)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(l.Reservations, func(r reservation.Reservation) bool { return !c.of(&r) }) {
			return nil, reservation.ErrStale // one has begun since it was read
		}
		slices.SortFunc(l.Reservations, byLocalTime)
		if next, err = c.amend(v.View, rule, l.Reservations); err != nil || !c.store {
			return nil, err
		}
		for i, r := range next {
			if before := l.Reservations[i]; r.Version != before.Version {
				attempts = append(attempts, &attempt{entry: entries[r.ID], before: before, next: r, cause: causeOf(by, before, r)})
			}
		}
		attempts, booked, err = d.enterAndBook(&v, by.RequestID, attempts)
		return attempts, err
	})
	defer func() { leave(booked) }()
	if err != nil {
		return l.Reservations, err
	}
	if len(attempts) == 0 {
		return next, nil
	}
	if err := d.commitTogether(ctx, whole{}, attempts...); err != nil {
		return next, fmt.Errorf("store the changed series: %w", err)
	}
	return next, nil
}

// explainSeriesChange is explainSeries for a change.
func (d *Recurring) explainSeriesChange(ctx context.Context, by Caller, id string, a seriesAmendment, c planning.SeriesChange, err error) error {
	refusal, refused := errors.AsType[*reservation.Refusal](err)
	if !refused {
		return err
	}
	l, rule, readErr := d.subject(ctx, by, id, a)
	if readErr != nil {
		return err
	}
	entries := make(map[string]*entry)
	for _, r := range l.Reservations {
		if e, known := d.entry(r.ID); known {
			entries[r.ID] = e
		}
	}
	if d.deciding.Enter(ctx, by.ProjectID) != nil {
		return err
	}
	defer d.deciding.Leave(by.ProjectID)
	v, viewErr := d.members.viewOfLease(by, &l, entries)
	if viewErr != nil || slices.ContainsFunc(l.Reservations, func(r reservation.Reservation) bool { return !a.of(&r) }) {
		return err
	}
	slices.SortFunc(l.Reservations, byLocalTime)
	return planning.ExplainSeriesChange(v.View, l.Reservations, rule, c, refusal)
}

// subject returns the reservations of a series that a change is about, as a group sorted by their ids.
func (d *Recurring) subject(ctx context.Context, by Caller, id string, c seriesAmendment) (l reservation.LeaseRecord, rule recurrence.Rule, err error) {
	s, err := d.options.Reader.Series(ctx, id)
	if err == nil && !by.Admin && !s.BelongsTo(by.ProjectID) {
		err = NoSeries(id)
	}
	if err == nil {
		err = by.expects("series", s.VersionText())
	}
	if err != nil {
		return l, rule, err
	}
	if rule, err = recurrence.Parse(recurrence.Pattern(s.Pattern)); err != nil {
		return l, rule, fmt.Errorf("read the pattern of series %s: %w", id, err)
	}
	l = reservation.LeaseRecord{Lease: reservation.Lease{ID: s.ID, ProjectID: s.ProjectID}}
	for _, r := range s.Reservations {
		if c.of(&r) {
			l.Reservations = append(l.Reservations, r)
		}
	}
	if len(l.Reservations) == 0 {
		return l, rule, NothingLeft(c.from)
	}
	slices.SortFunc(l.Reservations, func(a, b reservation.Reservation) int { return cmp.Compare(a.ID, b.ID) })
	return l, rule, nil
}

func byLocalTime(a, b reservation.Reservation) int {
	return cmp.Compare(a.Occurrence.Local, b.Occurrence.Local)
}

// NothingLeft returns the error for a change of a series, from a local time on, that is about none of its reservations.
func NothingLeft(from string) *fault.Error {
	if from != "" {
		from = " from " + from + " on"
	}
	return fault.New(fault.Conflict, "nothing of the series is left for this: its reservations%s have begun, are over or are canceled", from)
}

// NoSeries returns the error for a series that does not exist.
func NoSeries(id string) *fault.Error { return fault.New(fault.NotFound, "there is no series %s", id) }
