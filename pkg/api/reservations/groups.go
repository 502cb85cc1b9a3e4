// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Groups books and changes groups, which are leases. OfferLease and OfferLeaseChange do nothing, and return what the others
// would do.
type Groups interface {
	OfferLease(ctx context.Context, by booking.Caller, r reservation.LeaseRequest) (reservation.LeaseRecord, error)
	BookLease(ctx context.Context, by booking.Caller, r reservation.LeaseRequest) (reservation.LeaseRecord, error)
	GroupChanger
}

// GroupChanger changes and cancels groups.
type GroupChanger interface {
	OfferLeaseChange(ctx context.Context, by booking.Caller, id string, c reservation.LeaseChange) (reservation.LeaseRecord, error)
	ChangeLease(ctx context.Context, by booking.Caller, id string, c reservation.LeaseChange) (reservation.LeaseRecord, error)
	CancelLease(ctx context.Context, by booking.Caller, id string) (reservation.LeaseRecord, error)
}

// groups serves the calls about groups.
type groups struct{ API }

// create handles POST /v1/groups.
func (s groups) create(c *serving.Call) (any, error) {
	q := c.Parameters("dry_run")
	dryRun := q.Truth("dry_run")
	if q.Err != nil {
		return nil, q.Err
	}
	var body v1.GroupRequest
	if _, err := c.Body(&body, serving.ReservationBody); err != nil {
		return nil, whyUnheld(err)
	}
	if c.GetHeader(serving.KeyHeader) != "" {
		return nil, fault.Field(serving.KeyHeader, "is not known for groups; after a request without an answer, look at the list of groups")
	}
	by := c.Asker()
	request, err := s.leaseRequest(c.Request.Context(), body, by.ProjectID)
	if err != nil {
		return nil, err
	}
	if dryRun {
		l, err := s.Groups.OfferLease(c.Request.Context(), by.Caller(), request)
		if err != nil {
			return nil, refusedPart(err, request)
		}
		return s.offered(&l, by), nil
	}
	ctx, end := c.Awaited()
	defer end()
	l, err := s.Groups.BookLease(ctx, by.Caller(), request)
	if err != nil {
		return nil, serving.InDoubt(refusedPart(err, request), bookingInDoubt)
	}
	c.Header("Location", "/v1/groups/"+l.ID)
	c.Status(http.StatusCreated)
	c.SetVersion(l.VersionText())
	return grouped(&l, by), nil
}

// whyUnheld returns the error of a body, which states what to do instead if it asks for a hold.
func whyUnheld(err error) error {
	if f := fault.Of(err); f != nil && f.Field == "hold" {
		return fault.Field("hold", "is not known for groups; hold single reservations, or book the group and cancel it if you do not need it")
	}
	return err
}

// leaseRequest converts a body to the domain's types, with the ids of the images. The reservations of a lease are sorted by
// their ids: theirs have the order of the request.
func (s groups) leaseRequest(ctx context.Context, body v1.GroupRequest, project string) (reservation.LeaseRequest, error) {
	whole, err := s.request(v1.ReservationRequest{
		Name: body.Name, StartTime: body.StartTime, EndTime: body.EndTime, Duration: body.Duration, OnEnd: body.OnEnd, BeforeEnd: body.BeforeEnd,
	})
	if err != nil {
		return reservation.LeaseRequest{}, err
	}
	r, err := s.leaseTimes(whole)
	if err != nil {
		return r, err
	}
	if len(body.Parts) == 0 {
		return r, fault.Field("parts", "is required: what the group reserves, such as [{\"quantity\": 4}]")
	}
	if len(body.Parts) > planning.MostMembers {
		return r, fault.Field("parts", "has %d entries; at most %d are allowed", len(body.Parts), planning.MostMembers)
	}
	ids := make([]string, len(body.Parts))
	for i := range ids {
		ids[i] = s.NewID()
	}
	slices.Sort(ids)
	for i, part := range body.Parts {
		m, err := s.member(ctx, part, project)
		if err != nil {
			return r, ofPart(err, i)
		}
		m.ID, m.OnEnd = ids[i], whole.OnEnd
		r.Members = append(r.Members, m)
	}
	return r, nil
}

// leaseTimes returns a request for a lease with the times and the warning of a request for a reservation.
func (s groups) leaseTimes(whole reservation.Request) (reservation.LeaseRequest, error) {
	now := s.Now()
	r := reservation.LeaseRequest{Name: whole.Name, Start: whole.Start, End: whole.End, Duration: whole.Duration}
	from := max(whole.Start, now)
	switch {
	case whole.End == 0 && whole.Duration == 0:
		return r, fault.Field("duration", "is required unless end_time is given")
	case whole.BeforeEnd < 0:
		return r, fault.Field("before_end", "must not be negative")
	case whole.End == 0:
		r.End, r.Duration, r.EndFollows = from.Add(whole.Duration), 0, true
	}
	warning, length := whole.BeforeEnd, whole.Duration
	if length == 0 {
		length = int64(whole.End - from)
	}
	if whole.ShortWarning {
		warning = min(warning, length/2)
	}
	if warning > 0 {
		r.BeforeEnd = r.End.Add(-warning)
	}
	return r, nil
}

// member converts a part to a reservation of a lease.
func (s groups) member(ctx context.Context, part v1.GroupPart, project string) (m reservation.MemberRequest, err error) {
	if part.Kind == string(reservation.Addresses) {
		return m, fault.Field("kind", "%s", fault.Unknown("kind", part.Kind, reservation.HostKinds))
	}
	quantity := v1.QuantityRange{Min: 1, Max: 1}
	if part.Quantity != nil {
		quantity = *part.Quantity
	}
	if quantity.Min < 1 || quantity.Max < quantity.Min {
		return m, fault.Field("quantity", "must be at least 1, and a range must not end before it begins")
	}
	one, err := s.request(v1.ReservationRequest{
		Name: "part", Kind: part.Kind, HostProperties: part.HostProperties, Resources: part.Resources, Affinity: part.Affinity, Image: part.Image,
	})
	if err == nil {
		one, err = s.resolve(ctx, one, project)
	}
	m.Terms = one.Terms
	m.Min, m.Max = quantity.Min, quantity.Max
	return m, err
}

// fieldsOfGroups maps the fields that faults about leases name to those of a group.
var fieldsOfGroups = map[string]string{"reservations": "parts", "start_date": "start_time", "end_date": "end_time", "deadline": "end_time"}

// inGroup returns an error about a lease as one about a group.
func inGroup(err error) error {
	err = planning.OfGroup(err)
	f, is := errors.AsType[*fault.Error](err)
	switch {
	case !is:
		return err
	case f.Kind == fault.Precondition:
		return fault.Changed("group")
	case fieldsOfGroups[f.Field] == "":
		return err
	}
	of := *f
	of.Field = fieldsOfGroups[f.Field]
	return &of
}

// refusedPart returns an error about a lease that was asked for as one about a group, with the part that it is about.
func refusedPart(err error, asked reservation.LeaseRequest) error {
	i, is := planning.MemberOf(err)
	if !is {
		return inGroup(err)
	}
	err = inGroup(ofPart(err, i))
	if len(asked.Members) == 1 {
		return err
	}
	m := asked.Members[i]
	quantity := fault.Counted(m.Max, string(cmp.Or(m.Kind, reservation.Hosts)))
	if m.Min < m.Max {
		quantity = fmt.Sprintf("%d to %s", m.Min, quantity)
	}
	return naming(err, fmt.Sprintf("part %d of %d (%s)", i+1, len(asked.Members), quantity))
}

// unchangedPart returns an error about a lease that was to change as one about a group, with the part that it is about.
func unchangedPart(err error, l reservation.LeaseRecord) error {
	i, is := planning.MemberOf(err)
	if !is || i >= len(l.Reservations) || len(l.Reservations) == 1 {
		return inGroup(err)
	}
	r := l.Reservations[i]
	return naming(inGroup(err), fmt.Sprintf("part %d of %d (%s, reservation %s)", i+1, len(l.Reservations), fault.Counted(r.Quantity, string(r.Kind)), r.ID))
}

// naming returns an error whose message begins with a part if it is a refusal.
func naming(err error, part string) error {
	refusal, is := errors.AsType[*reservation.Refusal](err)
	if !is {
		return err
	}
	r := *refusal
	r.Message = part + ": " + r.Message
	return &r
}

// ofPart returns an error about a part, with its index in the field of a fault.
func ofPart(err error, index int) error {
	f, is := errors.AsType[*fault.Error](err)
	if !is || f.Field == "" || f.Field == "name" || f.Field == "on_end" || f.Field == "before_end" {
		return err
	}
	of := *f
	of.Field = fmt.Sprintf("parts[%d].%s", index, f.Field)
	return &of
}

// grouped returns a lease with those fields that by may see.
func grouped(l *reservation.LeaseRecord, by *serving.Asker) v1.Group {
	g := v1.Group{
		ID: l.ID, Name: l.Name, ProjectID: l.ProjectID, UserID: l.UserID, Start: l.Span.Start.Time(), End: l.Span.End.Time(),
		CreatedAt: l.Created.Time(), UpdatedAt: l.Updated.Time(), Reservations: []v1.Reservation{},
	}
	for _, r := range l.Reservations {
		g.Reservations = append(g.Reservations, presented(r, by))
	}
	return g
}

// offered returns the answer for a lease that was not booked, or not changed.
func (s groups) offered(l *reservation.LeaseRecord, by *serving.Asker) v1.GroupOfferAnswer {
	out := v1.GroupOffer{Start: l.Span.Start.Time(), End: l.Span.End.Time(), Parts: []v1.PartOffer{}}
	for _, r := range l.Reservations {
		part := v1.PartOffer{Kind: string(r.Kind), Quantity: r.Quantity, Hosts: []string{}}
		if by.SeesHosts(&r) {
			part.Hosts = sorted(r.HostNames())
		}
		out.Parts, out.DelayedByBoot = append(out.Parts, part), out.DelayedByBoot || r.DelayedByBoot
	}
	return v1.GroupOfferAnswer{Offer: out}
}

const groupKey = "group"

// groupLoading admits callers that may act on the group in the path, and loads it.
func (s groups) groupLoading(rule string) serving.Access {
	return serving.Loading(serving.OwnAndOthers(rule), func(c *serving.Call) {
		by, id := c.Asker(), c.PathID()
		l, err := s.Leases.Lease(c.Request.Context(), id)
		err = by.Reach(rule, serving.Found{Err: err, ProjectID: l.ProjectID, Own: l.BelongsTo(by.ProjectID), Missing: noGroup(id)})
		if fault.Is(err, fault.NotFound) {
			err = noGroup(id)
		}
		if err != nil {
			c.Fail(err)
			return
		}
		c.Set(groupKey, l)
		c.Changes(l.ID)
	})
}

func noGroup(id string) error { return fault.New(fault.NotFound, "there is no group %s", id) }

func foundGroup(c *serving.Call) reservation.LeaseRecord {
	return c.MustGet(groupKey).(reservation.LeaseRecord)
}

// list handles GET /v1/groups. A reservation that belongs to no group is none.
func (s groups) list(c *serving.Call) (any, error) {
	q := c.Parameters("limit", "marker", "name", "project_id", "all_projects")
	by := c.Asker()
	selection := reservation.LeaseQuery{
		Name: q.Text("name"), Marker: q.Text("marker"), Limit: q.Number("limit", mostGroups, 1, mostGroups) + 1, Stored: true,
	}
	var err error
	if selection.ProjectID, err = q.Project(by, "reservations:list"); err != nil {
		return nil, err
	}
	states, err := s.Leases.LeaseStates(c.Request.Context(), selection)
	if fault.Is(err, fault.Invalid) {
		return nil, fault.Field("marker", "there is no group %s", selection.Marker)
	}
	if err != nil {
		return nil, err
	}
	page := v1.Groups{Groups: []v1.Group{}}
	if len(states) == selection.Limit {
		states = states[:len(states)-1]
		page.Next = v1.Marker(states[len(states)-1].ID)
	}
	at := make(map[string]int, len(states))
	ids := make([]string, len(states))
	for i, state := range states {
		ids[i], at[state.ID] = state.ID, i
	}
	found, err := s.Leases.LeasesOf(c.Request.Context(), ids)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b reservation.LeaseRecord) int { return cmp.Compare(at[a.ID], at[b.ID]) })
	return serving.Later(func() (any, error) {
		for _, l := range found {
			page.Groups = append(page.Groups, grouped(&l, by))
		}
		return page, nil
	}), nil
}

// mostGroups is the largest page of groups: each has up to planning.MostMembers reservations.
const mostGroups = 50

// show handles GET /v1/groups/{id}.
func (s groups) show(c *serving.Call) (any, error) {
	l := foundGroup(c)
	c.SetVersion(l.VersionText())
	return grouped(&l, c.Asker()), nil
}

// change handles PATCH /v1/groups/{id}.
func (s groups) change(c *serving.Call) (any, error) {
	q := c.Parameters("dry_run")
	dryRun := q.Truth("dry_run")
	if q.Err != nil {
		return nil, q.Err
	}
	var body v1.GroupChange
	if _, err := c.Body(&body, serving.ReservationBody); err != nil {
		return nil, err
	}
	if body.Name != nil {
		if err := checkName(*body.Name); err != nil {
			return nil, err
		}
	}
	change := reservation.LeaseChange{
		Name: body.Name, Start: v1.InstantOf(body.StartTime), End: v1.InstantOf(body.EndTime),
		OnEnd: (*reservation.OnEnd)(body.OnEnd), Warning: (*int64)(body.BeforeEnd),
	}
	by, before := c.Asker(), foundGroup(c)
	if err := c.Expect("group", before.VersionText()); err != nil {
		return nil, err
	}
	if dryRun {
		l, err := s.Groups.OfferLeaseChange(c.Request.Context(), serving.ChangerOf(c, &before), before.ID, change)
		if err != nil {
			return nil, unchangedPart(err, before)
		}
		return s.offered(&l, by), nil
	}
	ctx, end := c.Awaited()
	defer end()
	l, err := s.Groups.ChangeLease(ctx, serving.ChangerOf(c, &before), before.ID, change)
	if err != nil {
		return nil, serving.InDoubt(unchangedPart(err, before), changeInDoubt)
	}
	c.SetVersion(l.VersionText())
	return grouped(&l, by), nil
}

// cancel handles DELETE /v1/groups/{id}.
func (s groups) cancel(c *serving.Call) (any, error) {
	q := c.Parameters("dry_run")
	dryRun := q.Truth("dry_run")
	if q.Err != nil {
		return nil, q.Err
	}
	l := foundGroup(c)
	if err := c.Expect("group", l.VersionText()); err != nil {
		return nil, err
	}
	if dryRun {
		return s.foreseen(c.Request.Context(), l)
	}
	ctx, end := c.Awaited()
	defer end()
	_, err := s.Groups.CancelLease(ctx, serving.ChangerOf(c, &l), l.ID)
	return nil, serving.InDoubt(err, cancelInDoubt)
}

// foreseen returns the effect of deleting a group on each reservation that can be canceled.
func (s groups) foreseen(ctx context.Context, l reservation.LeaseRecord) (out v1.GroupCancellation, err error) {
	out.Reservations = []v1.Cancellation{}
	for _, r := range l.Reservations {
		if _, err := lifecycle.Next(r.Status, lifecycle.Cancel); err != nil {
			continue // it is over, or ends
		}
		one, err := s.cancellation(ctx, r)
		if err != nil {
			return out, err
		}
		out.Reservations = append(out.Reservations, one)
	}
	return out, nil
}
