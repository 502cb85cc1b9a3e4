// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

const leaseKey = "lease"

// find loads the lease in the path. As in Blazar, a caller learns that another project's lease
// exists: it is denied, not missing.
func (s leases) find(rule string) serving.Step {
	return func(c *serving.Call) {
		id := c.PathID()
		if err := allow(c, rule, c.Asker().ProjectID); err != nil {
			c.Fail(err)
			return
		}
		l, err := s.Leases.Lease(c.Request.Context(), id)
		if fault.Is(err, fault.NotFound) {
			err = blazar.NoLease(id)
		}
		if err == nil {
			err = allow(c, rule, l.ProjectID)
		}
		if err != nil {
			c.Fail(err)
			return
		}
		c.Set(leaseKey, l)
	}
}

func found(c *serving.Call) reservation.LeaseRecord {
	return c.MustGet(leaseKey).(reservation.LeaseRecord)
}

// reader returns the reader of the asker's requests.
func (s leases) reader(c *serving.Call, by *serving.Asker) blazar.Reader {
	return blazar.Reader{
		Now: s.Now(), LatestPast: planning.LatestPast, BeforeEnd: s.BeforeEnd, Extended: extended(c),
		Hosts: s.Hosts.Snapshot(), SeesHidden: by.SeesHidden(), Neutron: s.Neutron != nil,
	}
}

// leaseAnswer is an answer with one lease.
type leaseAnswer struct {
	Lease blazar.Lease `json:"lease"`
}

func (s leases) answer(c *serving.Call, l reservation.LeaseRecord, now span.Instant) leaseAnswer {
	return leaseAnswer{leaseForm(extended(c))(&l, now)}
}

// offerAnswer is an answer with what a request would get.
type offerAnswer struct {
	Offer blazar.Offer `json:"offer"`
}

// offered returns the answer for a lease that was not booked, or not changed; exists reports whether
// the lease exists.
func offered(l reservation.LeaseRecord, exists bool, by *serving.Asker) offerAnswer {
	return offerAnswer{blazar.OfferOf(&l, exists, func(r *reservation.Reservation) bool { return by.SeesHosts(r) })}
}

// body returns the body of a lease; refusals name its fields.
func (s leases) body(c *serving.Call) (blazar.Object, error) {
	body, err := bodyOf(c, serving.ReservationBody)
	c.Set(queryFieldsKey, blazar.QueryFields(body))
	return body, err
}

// create handles POST /v1/leases.
func (s leases) create(c *serving.Call) (any, error) {
	body, err := s.body(c)
	if err != nil {
		return nil, err
	}
	by := c.Asker()
	ctx, end := c.Awaited()
	defer end()
	reader := s.reader(c, by)
	reader.Flavor = s.flavorReader(ctx, c)
	request, err := reader.Create(body)
	if err != nil {
		return nil, err
	}
	dryRun, err := reader.DryRun(body)
	if err != nil {
		return nil, err
	}
	if dryRun {
		l, err := s.Booker.OfferLease(ctx, by.Caller(), request)
		return offered(l, false, by), err
	}
	s.assignIDs(&request)
	made, err := s.makeGroups(ctx, c, &request)
	if err != nil {
		return nil, err
	}
	l, err := s.Booker.BookLease(ctx, by.Caller(), request)
	if err != nil {
		if !serving.Doubtful(err) {
			s.dropGroups(ctx, made)
		}
		return nil, serving.InDoubt(err, leaseInDoubt)
	}
	c.Status(http.StatusCreated)
	c.SetVersion(l.VersionText())
	// As it was made: clients expect a lease that has not started, also one that starts now.
	return s.answer(c, l, min(s.Now(), l.Span.Start-1)), nil
}

// assignIDs sets the ids of the requested reservations, sorted as the request is: a lease lists its
// reservations by their ids.
func (s leases) assignIDs(r *reservation.LeaseRequest) {
	ids := make([]string, len(r.Members))
	for i := range ids {
		ids[i] = s.NewID()
	}
	slices.Sort(ids)
	for i, id := range ids {
		r.Members[i].ID = id
	}
}

// Advice for clients when the result of a request is unknown.
const (
	leaseInDoubt       = "the lease may exist anyway: look at the list before you send the request again"
	leaseChangeInDoubt = "the lease may have been changed or deleted anyway: look at it before you send the request again"
)

// show handles GET /v1/leases/{id}.
func (s leases) show(c *serving.Call) (any, error) {
	l := found(c)
	c.SetVersion(l.VersionText())
	return s.answer(c, l, s.Now()), nil
}

// change handles PUT and PATCH /v1/leases/{id}.
func (s leases) change(c *serving.Call) (any, error) {
	body, err := s.body(c)
	if err != nil {
		return nil, err
	}
	by, before := c.Asker(), found(c)
	reader := s.reader(c, by)
	change, err := reader.Change(body, before)
	if err != nil {
		return nil, err
	}
	ctx, end := c.Awaited()
	defer end()
	dryRun, err := reader.DryRun(body)
	if err != nil {
		return nil, err
	}
	if err := c.Expect("lease", before.VersionText()); err != nil {
		return nil, err
	}
	if dryRun {
		l, err := s.Changer.OfferLeaseChange(ctx, serving.ChangerOf(c, &before), before.ID, change)
		return offered(l, true, by), err
	}
	l, err := s.Changer.ChangeLease(ctx, serving.ChangerOf(c, &before), before.ID, change)
	if err != nil {
		return nil, serving.InDoubt(err, leaseChangeInDoubt)
	}
	c.SetVersion(l.VersionText())
	return s.answer(c, l, s.Now()), nil
}

// cancel handles DELETE /v1/leases/{id}.
func (s leases) cancel(c *serving.Call) (any, error) {
	l := found(c)
	if err := c.Expect("lease", l.VersionText()); err != nil {
		return nil, err
	}
	ctx, end := c.Awaited()
	defer end()
	_, err := s.Changer.CancelLease(ctx, serving.ChangerOf(c, &l), l.ID)
	return nil, serving.InDoubt(err, leaseChangeInDoubt)
}

// list handles GET /v1/leases. Blazar's clients expect the whole list, so only a request with
// a limit gets pages. Other parameters are ignored.
func (s leases) list(c *serving.Call) {
	q, err := s.query(c, c.Asker())
	if err != nil {
		c.Fail(err)
		return
	}
	list, write, err := s.texts.list(c.Request.Context(), s.Leases, q.LeaseQuery, extended(c), s.Now())
	if err == nil {
		err = c.InTurn(func() {
			write()
			s.send(c, q, list)
		})
	}
	if err != nil {
		c.Fail(err)
	}
}

// send sends those of the leases that q selects.
func (s leases) send(c *serving.Call, q leaseQuery, list []leaseText) {
	if q.status != "" {
		list = slices.DeleteFunc(list, func(l leaseText) bool { return l.status != q.status })
	}
	var links []link // on a page only
	if q.limit > 0 && len(list) > q.limit {
		list = list[:q.limit]
		next := c.Request.URL.Query()
		next.Set("marker", list[q.limit-1].state.ID)
		links = []link{{"next", c.BaseURL() + "/v1/leases?" + next.Encode()}}
	}
	c.Data(http.StatusOK, contentType, leasesAnswer(list, links))
}

// leaseQuery is a query of leases, with what the records do not know.
type leaseQuery struct {
	reservation.LeaseQuery
	status string // empty selects any
	limit  int    // 0 means all
}

// query reads the parameters of a list.
func (s leases) query(c *serving.Call, by *serving.Asker) (q leaseQuery, err error) {
	get := c.Query
	q.ID, q.Name, q.status = get("lease_id"), get("lease_name"), strings.ToUpper(get("status"))
	if q.status != "" && !slices.Contains(blazar.KnownStatuses, q.status) {
		return q, fault.New(fault.Invalid, "Malformed parameter status (%s)", fault.Unknown("status", q.status, blazar.KnownStatuses))
	}
	q.Marker, q.ProjectID = get("marker"), get("project_id")
	all, _ := strconv.ParseBool(get("all_tenants"))
	switch everybody := by.May("reservations:list_all", ""); {
	case q.ProjectID == "" && !(everybody && (all || s.ListAllForAdmin || by.ProjectID == "")):
		q.ProjectID = by.ProjectID
	case q.ProjectID != by.ProjectID && !everybody:
		return q, allow(c, "reservations:list_all", q.ProjectID)
	}
	if text := get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 || q.limit > largestLeasePage {
			return q, fault.New(fault.Invalid, "Malformed parameter limit (must be from 1 to %d)", largestLeasePage)
		}
	}
	if q.status == "" && q.limit > 0 {
		q.Limit = q.limit + 1
	}
	return q, nil
}

const largestLeasePage = 10_000

// leaseHost is a host of a lease.
type leaseHost struct {
	Hostname      string `json:"hypervisor_hostname"`
	ReservationID string `json:"reservation_id"`
}

// listHosts handles GET /v1/leases/{id}/hosts, which Chameleon's Blazar has.
func (s leases) listHosts(c *serving.Call) (any, error) {
	hosts, by := []leaseHost{}, c.Asker()
	for _, r := range found(c).Reservations {
		if !by.SeesHosts(&r) {
			continue
		}
		for _, name := range slices.Sorted(slices.Values(r.HostNames())) {
			hosts = append(hosts, leaseHost{name, r.ID})
		}
	}
	return map[string]any{"hosts": hosts}, nil
}
