// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

const leaseKey = "lease"

// findLease loads the lease in the path. As in Blazar, a caller learns that another project's lease
// exists: it is denied, not missing.
func (s *server) findLease(rule string) gin.HandlerFunc {
	return func(c *gin.Context) {
		id := pathID(c)
		if err := allow(c, rule, asking(c).ProjectID); err != nil {
			s.fail(c, err)
			return
		}
		l, err := s.Blazar.Leases.Lease(c.Request.Context(), id)
		if fault.Is(err, fault.NotFound) {
			err = blazar.NoLease(id)
		}
		if err == nil {
			err = allow(c, rule, l.ProjectID)
		}
		if err != nil {
			s.fail(c, err)
			return
		}
		c.Set(leaseKey, l)
	}
}

func foundLease(c *gin.Context) reservation.LeaseRecord {
	return c.MustGet(leaseKey).(reservation.LeaseRecord)
}

// leaseReader returns the reader of the asker's requests.
func (s *server) leaseReader(c *gin.Context, by *asker) blazar.Reader {
	return blazar.Reader{
		Now: s.Now(), LatestPast: planning.LatestPast, BeforeEnd: s.Blazar.BeforeEnd, Extended: extended(c),
		Hosts: s.Inventory.Snapshot(), SeesHidden: by.seesHidden(), Neutron: s.Blazar.Neutron != nil,
	}
}

// leaseAnswer is an answer with one lease.
type leaseAnswer struct {
	Lease blazar.Lease `json:"lease"`
}

func (s *server) leaseAnswer(c *gin.Context, l reservation.LeaseRecord, now span.Instant) leaseAnswer {
	return leaseAnswer{leaseForm(extended(c))(&l, now)}
}

// leaseForm returns the function that returns a lease for an answer.
func leaseForm(extended bool) func(l *reservation.LeaseRecord, now span.Instant) blazar.Lease {
	if extended {
		return blazar.ExtendedLeaseOf
	}
	return blazar.LeaseOf
}

// offerAnswer is an answer with what a request would get.
type offerAnswer struct {
	Offer blazar.Offer `json:"offer"`
}

// offered returns the answer for a lease that was not booked, or not changed; exists reports whether
// the lease exists.
func offered(l reservation.LeaseRecord, exists bool, by *asker) offerAnswer {
	return offerAnswer{blazar.OfferOf(&l, exists, func(r *reservation.Reservation) bool { return seesHosts(r, by) })}
}

// leaseBody returns the body of a lease; refusals name its fields.
func (s *server) leaseBody(c *gin.Context) (blazar.Object, error) {
	body, err := s.blazarBody(c, reservationBody)
	c.Set(queryFieldsKey, blazar.QueryFields(body))
	return body, err
}

// createLease handles POST /v1/leases.
func (s *server) createLease(c *gin.Context) (any, error) {
	body, err := s.leaseBody(c)
	if err != nil {
		return nil, err
	}
	by := asking(c)
	ctx, end := awaited(c)
	defer end()
	reader := s.leaseReader(c, by)
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
		l, err := s.Booking.OfferLease(ctx, by.caller(), request)
		return offered(l, false, by), err
	}
	s.assignIDs(&request)
	made, err := s.makeGroups(ctx, c, &request)
	if err != nil {
		return nil, err
	}
	l, err := s.Booking.BookLease(ctx, by.caller(), request)
	if err != nil {
		if !doubtful(err) {
			s.dropGroups(ctx, made)
		}
		return nil, inDoubt(err, leaseInDoubt)
	}
	c.Status(http.StatusCreated)
	// As it was made: clients expect a lease that has not started, also one that starts now.
	return s.leaseAnswer(c, l, min(s.Now(), l.Span.Start-1)), nil
}

// assignIDs sets the ids of the requested reservations, sorted as the request is: a lease lists its
// reservations by their ids.
func (s *server) assignIDs(r *reservation.LeaseRequest) {
	ids := make([]string, len(r.Members))
	for i := range ids {
		ids[i] = s.Blazar.NewID()
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

// showLease handles GET /v1/leases/{id}.
func (s *server) showLease(c *gin.Context) (any, error) {
	return s.leaseAnswer(c, foundLease(c), s.Now()), nil
}

// changeLease handles PUT and PATCH /v1/leases/{id}.
func (s *server) changeLease(c *gin.Context) (any, error) {
	body, err := s.leaseBody(c)
	if err != nil {
		return nil, err
	}
	by, before := asking(c), foundLease(c)
	reader := s.leaseReader(c, by)
	change, err := reader.Change(body, before)
	if err != nil {
		return nil, err
	}
	ctx, end := awaited(c)
	defer end()
	dryRun, err := reader.DryRun(body)
	if err != nil {
		return nil, err
	}
	if dryRun {
		l, err := s.Booking.OfferLeaseChange(ctx, by.callerFor(&before), before.ID, change)
		return offered(l, true, by), err
	}
	l, err := s.Booking.ChangeLease(ctx, by.callerFor(&before), before.ID, change)
	if err != nil {
		return nil, inDoubt(err, leaseChangeInDoubt)
	}
	return s.leaseAnswer(c, l, s.Now()), nil
}

// deleteLease handles DELETE /v1/leases/{id}.
func (s *server) deleteLease(c *gin.Context) (any, error) {
	l := foundLease(c)
	ctx, end := awaited(c)
	defer end()
	_, err := s.Booking.CancelLease(ctx, asking(c).callerFor(&l), l.ID)
	return nil, inDoubt(err, leaseChangeInDoubt)
}

// listLeases handles GET /v1/leases. Blazar's clients expect the whole list, so only a request with
// a limit gets pages. Other parameters are ignored.
func (s *server) listLeases(c *gin.Context) {
	q, err := s.leaseQuery(c, asking(c))
	if err != nil {
		s.fail(c, err)
		return
	}
	found, write, err := s.leaseTexts.list(c.Request.Context(), s.Blazar.Leases, q.LeaseQuery, extended(c), s.Now())
	if err == nil {
		err = s.inItsTurn(c, func() {
			write()
			s.sendLeases(c, q, found)
		})
	}
	if err != nil {
		s.fail(c, err)
	}
}

// sendLeases sends those of the leases that q selects.
func (s *server) sendLeases(c *gin.Context, q leaseQuery, found []leaseText) {
	if q.status != "" {
		found = slices.DeleteFunc(found, func(l leaseText) bool { return l.status != q.status })
	}
	var links []link // on a page only
	if q.limit > 0 && len(found) > q.limit {
		found = found[:q.limit]
		next := c.Request.URL.Query()
		next.Set("marker", found[q.limit-1].state.ID)
		links = []link{{"next", s.base(c) + "/v1/leases?" + next.Encode()}}
	}
	c.Data(http.StatusOK, blazarContentType, leasesAnswer(found, links))
}

// leaseQuery is a query of leases, with what the records do not know.
type leaseQuery struct {
	reservation.LeaseQuery
	status string // empty selects any
	limit  int    // 0 means all
}

// leaseQuery reads the parameters of a list.
func (s *server) leaseQuery(c *gin.Context, by *asker) (q leaseQuery, err error) {
	get := c.Query
	q.ID, q.Name, q.status = get("lease_id"), get("lease_name"), strings.ToUpper(get("status"))
	if q.status != "" && !slices.Contains(blazar.KnownStatuses, q.status) {
		return q, fault.New(fault.Invalid, "Malformed parameter status (%s)", fault.Unknown("status", q.status, blazar.KnownStatuses))
	}
	q.Marker, q.ProjectID = get("marker"), get("project_id")
	all, _ := strconv.ParseBool(get("all_tenants"))
	switch everybody := by.may("reservations:list_all", ""); {
	case q.ProjectID == "" && !(everybody && (all || s.Blazar.ListAllForAdmin || by.ProjectID == "")):
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

// listLeaseHosts handles GET /v1/leases/{id}/hosts, which Chameleon's Blazar has.
func (s *server) listLeaseHosts(c *gin.Context) (any, error) {
	hosts, by := []leaseHost{}, asking(c)
	for _, r := range foundLease(c).Reservations {
		if !seesHosts(&r, by) {
			continue
		}
		for _, name := range slices.Sorted(slices.Values(r.HostNames())) {
			hosts = append(hosts, leaseHost{name, r.ID})
		}
	}
	return gin.H{"hosts": hosts}, nil
}
