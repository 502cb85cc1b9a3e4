// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"context"
	"net/http"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/recurrence"
)

// Recurring books and changes series. The offers do nothing, and return what the others would do.
type Recurring interface {
	OfferSeries(ctx context.Context, by booking.Caller, r planning.SeriesRequest) (planning.SeriesPlan, error)
	BookSeries(ctx context.Context, by booking.Caller, r planning.SeriesRequest, use *booking.KeyUse) (reservation.SeriesRecord, []reservation.RefusedOccurrence, error)
	SeriesChanger
}

// SeriesChanger changes and cancels the reservations of a series from the local time of an occurrence on; "" is from the first one on.
type SeriesChanger interface {
	OfferSeriesChange(ctx context.Context, by booking.Caller, id string, from string, c planning.SeriesChange) ([]reservation.Reservation, error)
	ChangeSeries(ctx context.Context, by booking.Caller, id string, from string, c planning.SeriesChange) ([]reservation.Reservation, error)
	CancelSeries(ctx context.Context, by booking.Caller, id string, from string) ([]reservation.Reservation, error)
}

// series serves the calls about series.
type series struct{ API }

// create handles POST /v1/series.
func (s series) create(c *serving.Call) (any, error) {
	q := c.Parameters("dry_run")
	dryRun := q.Truth("dry_run")
	if q.Err != nil {
		return nil, q.Err
	}
	var body v1.SeriesRequest
	raw, err := c.Body(&body, serving.ReservationBody)
	if err != nil {
		return nil, whyNotRecurring(err)
	}
	request, err := s.seriesRequest(body)
	if err != nil {
		return nil, err
	}
	by := c.Asker()
	if dryRun {
		plan, err := s.Recurring.OfferSeries(c.Request.Context(), by.Caller(), request)
		if err != nil {
			return nil, err
		}
		return offeredSeries(plan, by), nil
	}
	use, err := c.KeyUse(raw)
	if err != nil {
		return nil, err
	}
	ctx, end := c.Awaited()
	defer end()
	made, refused, err := s.Recurring.BookSeries(ctx, by.Caller(), request, use)
	if err != nil {
		return nil, serving.InDoubt(err, adviceOn(use))
	}
	c.Header("Location", "/v1/series/"+made.ID)
	c.Status(http.StatusCreated)
	c.SetVersion(made.VersionText())
	out, err := recurring(&made)
	out.Refused = serving.RefusedOccurrences(refused)
	return out, err
}

// whyNotRecurring returns the error of a body, which states what to do instead if it has a field of a reservation that occurs once.
func whyNotRecurring(err error) error {
	f := fault.Of(err)
	if f == nil {
		return err
	}
	switch f.Field {
	case "start_time", "end_time":
		return fault.Field(f.Field, "is not known for series; send local_start, time_zone and duration")
	case "hold", "notice", "policy", "image", "maintenance":
		return fault.Field(f.Field, "is not known for series, whose reservations begin at the times of the rule")
	}
	return err
}

// seriesRequest converts a body to the domain's types.
func (s series) seriesRequest(body v1.SeriesRequest) (planning.SeriesRequest, error) {
	for _, required := range []struct {
		field   string
		missing bool
	}{{"rule", body.Rule == ""}, {"local_start", body.LocalStart == ""}, {"time_zone", body.TimeZone == ""}, {"duration", body.Duration == 0}} {
		if required.missing {
			return planning.SeriesRequest{}, fault.Field(required.field, "is required for a series")
		}
	}
	one, err := s.request(v1.ReservationRequest{
		Name: body.Name, Kind: body.Kind, HostProperties: body.HostProperties, Quantity: body.Quantity, Resources: body.Resources,
		Affinity: body.Affinity, OnEnd: body.OnEnd, BeforeEnd: body.BeforeEnd, Together: body.Together, Duration: &body.Duration,
	})
	if err != nil {
		return planning.SeriesRequest{}, err
	}
	rule, err := recurrence.Parse(recurrence.Pattern{
		Rule: body.Rule, TimeZone: body.TimeZone, Start: body.LocalStart, Except: body.Except, Also: body.Also,
	})
	if f := fault.Of(err); f != nil && f.Field == "start" {
		err = fault.Field("local_start", "%s", f.Message)
	}
	return planning.SeriesRequest{Request: one, Rule: rule, Skip: body.SkipRefused}, err
}

// recurring returns a series with what became of its occurrences.
func recurring(s *reservation.SeriesRecord) (v1.Series, error) {
	out := asBooked(s.Series)
	rule, err := recurrence.Parse(recurrence.Pattern(s.Pattern))
	if err != nil {
		return out, err
	}
	list, _ := rule.Occurrences(s.Created.Add(planning.LongestSeries+1), planning.MostOccurrences)
	of := make(map[string]*reservation.Reservation, len(s.Reservations))
	for i := range s.Reservations {
		of[s.Reservations[i].Occurrence.Local] = &s.Reservations[i]
	}
	for _, o := range list {
		one := v1.Occurrence{Local: o.Local, Start: o.Start.Time(), End: o.Start.Add(s.Duration).Time()}
		if r := of[o.Local]; r != nil {
			one.ReservationID, one.Status, one.Quantity = r.ID, string(r.Status), r.Quantity
			if r.Status.Live() {
				out.Left++
			}
			one.Start, one.End = r.Span.Start.Time(), r.Span.End.Time()
		}
		out.Occurrences = append(out.Occurrences, one)
	}
	return out, nil
}

// asBooked returns a series without its occurrences.
func asBooked(s reservation.Series) v1.Series {
	return v1.Series{
		ID: s.ID, Name: s.Name, ProjectID: s.ProjectID, UserID: s.UserID, CreatedAt: s.Created.Time(),
		Rule: s.Rule, TimeZone: s.TimeZone, LocalStart: s.Start, Duration: v1.Duration(s.Duration), Except: s.Except, Also: s.Also,
	}
}

// offeredSeries returns the answer for a series that was not booked.
func offeredSeries(plan planning.SeriesPlan, by *serving.Asker) v1.SeriesOfferAnswer {
	out := v1.SeriesOffer{Occurrences: []v1.OccurrenceOffer{}, Refused: serving.RefusedOccurrences(plan.Refused)}
	for _, o := range plan.Occurrences {
		one := offer(o.Plan, by.ProjectID, false, by)
		out.Occurrences = append(out.Occurrences, v1.OccurrenceOffer{Local: o.Local, Start: one.Start, End: one.End, Quantity: one.Quantity, Hosts: one.Hosts})
	}
	return v1.SeriesOfferAnswer{Offer: out}
}

const seriesKey = "series"

// loading admits callers that may act on the series in the path, and loads it.
func (s series) loading(rule string) serving.Access {
	return serving.Loading(serving.OwnAndOthers(rule), func(c *serving.Call) {
		by, id := c.Asker(), c.PathID()
		found, err := s.SeriesReader.Series(c.Request.Context(), id)
		err = by.Reach(rule, serving.Found{Err: err, ProjectID: found.ProjectID, Own: found.BelongsTo(by.ProjectID), Missing: booking.NoSeries(id)})
		if err != nil {
			c.Fail(err)
			return
		}
		c.Set(seriesKey, found)
		c.Changes(found.ID)
	})
}

func foundSeries(c *serving.Call) reservation.SeriesRecord {
	return c.MustGet(seriesKey).(reservation.SeriesRecord)
}

// list handles GET /v1/series.
func (s series) list(c *serving.Call) (any, error) {
	q := c.Parameters("limit", "marker", "project_id", "all_projects")
	selection := reservation.SeriesQuery{Marker: q.Text("marker"), Limit: q.Number("limit", serving.DefaultPage, 1, serving.LargestPage) + 1}
	var err error
	if selection.ProjectID, err = q.Project(c.Asker(), "reservations:list"); err != nil {
		return nil, err
	}
	found, err := s.SeriesReader.SeriesList(c.Request.Context(), selection)
	if err != nil {
		return nil, err
	}
	page := v1.SeriesList{Series: []v1.Series{}}
	if len(found) == selection.Limit {
		found = found[:len(found)-1]
		page.Next = v1.Marker(found[len(found)-1].ID)
	}
	ids := make([]string, len(found))
	for i := range found {
		ids[i] = found[i].ID
	}
	live, err := s.SeriesReader.LiveInSeries(c.Request.Context(), ids)
	if err != nil {
		return nil, err
	}
	return serving.Later(func() (any, error) {
		for _, one := range found {
			out := asBooked(one)
			out.Left = live[one.ID]
			page.Series = append(page.Series, out)
		}
		return page, nil
	}), nil
}

// show handles GET /v1/series/{id}.
func (s series) show(c *serving.Call) (any, error) {
	found := foundSeries(c)
	c.SetVersion(found.VersionText())
	return serving.Later(func() (any, error) { return recurring(&found) }), nil
}

// scope returns whether the call is a dry run, and the local time from which occurrences are meant; "" if all are.
func (s series) scope(c *serving.Call) (dryRun bool, from string, err error) {
	q := c.Parameters("dry_run", "from")
	dryRun, text := q.Truth("dry_run"), q.Text("from")
	if q.Err != nil || !q.Has("from") {
		return dryRun, "", q.Err
	}
	rule, err := recurrence.Parse(recurrence.Pattern(foundSeries(c).Pattern))
	if err != nil {
		return false, "", err
	}
	if from, err = rule.From(text); err != nil {
		return false, "", fault.Field("from", "%s", fault.Of(err).Message)
	}
	return dryRun, from, nil
}

// change handles PATCH /v1/series/{id}.
func (s series) change(c *serving.Call) (any, error) {
	dryRun, from, err := s.scope(c)
	if err != nil {
		return nil, err
	}
	var body v1.SeriesChange
	if _, err := c.Body(&body, serving.ReservationBody); err != nil {
		return nil, err
	}
	if body.Name != nil {
		if err := checkName(*body.Name); err != nil {
			return nil, err
		}
	}
	change := planning.SeriesChange{Duration: (*int64)(body.Duration), At: body.TimeOfDay, Change: changeOf(v1.ReservationChange{
		Name: body.Name, Quantity: body.Quantity, HostProperties: body.HostProperties, OnEnd: body.OnEnd, BeforeEnd: body.BeforeEnd,
		Resources: body.Resources, Affinity: body.Affinity,
	})}
	by, before := c.Asker(), foundSeries(c)
	if err := c.Expect("series", before.VersionText()); err != nil {
		return nil, err
	}
	caller := serving.ChangerOf(c, &before)
	if dryRun {
		changed, err := s.Recurring.OfferSeriesChange(c.Request.Context(), caller, before.ID, from, change)
		if err != nil {
			return nil, err
		}
		return offeredChange(changed, by), nil
	}
	ctx, end := c.Awaited()
	defer end()
	if _, err := s.Recurring.ChangeSeries(ctx, caller, before.ID, from, change); err != nil {
		return nil, serving.InDoubt(err, changeInDoubt)
	}
	after, err := s.SeriesReader.Series(ctx, before.ID)
	if err != nil {
		return nil, err
	}
	c.SetVersion(after.VersionText())
	return recurring(&after)
}

// offeredChange returns the answer for reservations that were not changed.
func offeredChange(changed []reservation.Reservation, by *serving.Asker) v1.SeriesOfferAnswer {
	out := v1.SeriesOffer{Occurrences: []v1.OccurrenceOffer{}, Refused: []v1.RefusedOccurrence{}}
	for _, r := range changed {
		one := v1.OccurrenceOffer{Local: r.Occurrence.Local, Start: r.Span.Start.Time(), End: r.Span.End.Time(), Quantity: r.Quantity, Hosts: []string{}}
		if by.SeesHosts(&r) {
			one.Hosts = sorted(r.HostNames())
		}
		out.Occurrences = append(out.Occurrences, one)
	}
	return v1.SeriesOfferAnswer{Offer: out}
}

// cancel handles DELETE /v1/series/{id}.
func (s series) cancel(c *serving.Call) (any, error) {
	dryRun, from, err := s.scope(c)
	if err != nil {
		return nil, err
	}
	found := foundSeries(c)
	if err := c.Expect("series", found.VersionText()); err != nil {
		return nil, err
	}
	if dryRun {
		return s.foreseen(c.Request.Context(), found, from)
	}
	ctx, end := c.Awaited()
	defer end()
	_, err = s.Recurring.CancelSeries(ctx, serving.ChangerOf(c, &found), found.ID, from)
	return nil, serving.InDoubt(err, cancelInDoubt)
}

// foreseen returns the effect of deleting a series on each reservation that would be canceled.
func (s series) foreseen(ctx context.Context, found reservation.SeriesRecord, from string) (out v1.SeriesCancellation, err error) {
	out.Reservations = []v1.Cancellation{}
	canceled := booking.CanceledBySeries(from)
	for _, r := range found.Reservations {
		if !canceled(&r) {
			continue
		}
		one, err := s.cancellation(ctx, r)
		if err != nil {
			return out, err
		}
		out.Reservations = append(out.Reservations, one)
	}
	if len(out.Reservations) == 0 {
		return out, booking.NothingLeft(from)
	}
	return out, nil
}
