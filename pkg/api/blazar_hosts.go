// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// blazarHosts returns the hosts that the calls are about, sorted by name: all, or the pool's if only
// enrolled hosts count.
func (s *server) blazarHosts(snapshot *inventory.Snapshot) (hosts []*inventory.Host) {
	for _, h := range snapshot.Hosts() {
		if h.Reservable || !s.Blazar.OnlyEnrolled {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// blazarHost returns the host in the path; it fails with Blazar's error if there is none.
func (s *server) blazarHost(c *gin.Context, snapshot *inventory.Snapshot) (*inventory.Host, error) {
	i, found := blazar.FindHost(snapshot, c.Param("id"))
	if !found || s.Blazar.OnlyEnrolled && !snapshot.Host(i).Reservable {
		return nil, blazar.NoHost(c.Param("id"))
	}
	return snapshot.Host(i), nil
}

// presentedHost returns a host as the asker sees it.
func presentedHost(c *gin.Context, snapshot *inventory.Snapshot, h *inventory.Host) map[string]any {
	seesHidden := asking(c).seesHidden()
	return blazar.Host(h, func(property string) bool { return snapshot.KindOf(property, seesHidden) != "" })
}

// listBlazarHosts handles GET /v1/os-hosts.
func (s *server) listBlazarHosts(c *gin.Context) (any, error) {
	snapshot := s.Inventory.Snapshot()
	list := []map[string]any{}
	for _, h := range s.blazarHosts(snapshot) {
		list = append(list, presentedHost(c, snapshot, h))
	}
	return gin.H{"hosts": list}, nil
}

// showBlazarHost handles GET /v1/os-hosts/{id}.
func (s *server) showBlazarHost(c *gin.Context) (any, error) {
	snapshot := s.Inventory.Snapshot()
	h, err := s.blazarHost(c, snapshot)
	if err != nil {
		return nil, err
	}
	return gin.H{"host": presentedHost(c, snapshot, h)}, nil
}

// addBlazarHost handles POST /v1/os-hosts: it adds a host of the inventory to the pool, and sets its
// capabilities.
func (s *server) addBlazarHost(c *gin.Context) (any, error) {
	body, err := s.blazarBody(c, s.MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	name, err := blazar.ReadName(body)
	if err != nil {
		return nil, err
	}
	texts, err := blazar.ReadCapabilities(body)
	if err != nil {
		return nil, err
	}
	snapshot := s.Inventory.Snapshot()
	i, found := blazar.FindHost(snapshot, name)
	if !found {
		return nil, blazar.NotInNova(name)
	}
	host := snapshot.Host(i).Name
	for name, text := range texts {
		if text == nil { // null is no capability here, and removes none
			delete(texts, name)
		}
	}
	err = s.enroll(c, host, inventory.Enrollment{Texts: texts, Reservable: new(true)}, func(before *inventory.Snapshot) error {
		if i, _ := before.Index(host); s.Blazar.OnlyEnrolled && before.Host(i).Reservable {
			return fault.New(fault.Conflict, "Conflict while adding host %s: it is in the pool already", host)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.Status(http.StatusCreated)
	return s.enrolled(c, host)
}

// changeBlazarHost handles PUT and PATCH /v1/os-hosts/{id}: it sets capabilities.
func (s *server) changeBlazarHost(c *gin.Context) (any, error) {
	body, err := s.blazarBody(c, s.MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	h, err := s.blazarHost(c, s.Inventory.Snapshot())
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return nil, fault.New(fault.Invalid, "No data to update")
	}
	texts, err := blazar.ReadCapabilities(body)
	if err != nil {
		return nil, err
	}
	if len(texts) > 0 {
		if err := s.enroll(c, h.Name, inventory.Enrollment{Texts: texts}, nil); err != nil {
			return nil, err
		}
	}
	return s.enrolled(c, h.Name)
}

// removeBlazarHost handles DELETE /v1/os-hosts/{id}: it removes a host from the pool.
func (s *server) removeBlazarHost(c *gin.Context) (any, error) {
	h, err := s.blazarHost(c, s.Inventory.Snapshot())
	if err != nil {
		return nil, err
	}
	return nil, s.enroll(c, h.Name, inventory.Enrollment{Reservable: new(false)}, func(*inventory.Snapshot) error {
		return blazar.MayLeave(h.Name, s.Booking.Live(span.Always))
	})
}

// enroll makes a change for a host unless a reservation forbids it, or allow, which receives the
// snapshot before; a nil allow allows everything. After a change of the pool it waits for the cloud.
func (s *server) enroll(c *gin.Context, host string, e inventory.Enrollment, allow func(before *inventory.Snapshot) error) error {
	e.Allow = func(before, after *inventory.Snapshot) error {
		if allow != nil {
			if err := allow(before); err != nil {
				return err
			}
		}
		return blazar.MayChange(host, before, after, s.Booking.Live(span.Always))
	}
	if err := s.Inventory.Enroll(c.Request.Context(), host, e); err != nil {
		return err
	}
	if e.Reservable != nil && s.Blazar.PoolChanged != nil {
		s.Blazar.PoolChanged(c.Request.Context())
	}
	return nil
}

// enrolled returns a host after a change.
func (s *server) enrolled(c *gin.Context, host string) (any, error) {
	snapshot := s.Inventory.Snapshot()
	i, there := snapshot.Index(host)
	if !there { // it has left the cloud meanwhile
		return nil, blazar.NotInNova(host)
	}
	return gin.H{"host": presentedHost(c, snapshot, snapshot.Host(i))}, nil
}

// listBlazarProperties handles GET /v1/os-hosts/properties.
func (s *server) listBlazarProperties(c *gin.Context) (any, error) {
	snapshot := s.Inventory.Snapshot()
	private := blazar.Asked(c.Query("all")) && asking(c).seesHidden()
	list := blazar.Properties(snapshot, s.blazarHosts(snapshot), private, blazar.Asked(c.Query("detail")))
	return gin.H{"resource_properties": list}, nil
}

// changeBlazarProperty handles PATCH /v1/os-hosts/properties/{name}.
func (s *server) changeBlazarProperty(c *gin.Context) (any, error) {
	body, err := s.blazarBody(c, s.MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	private, err := blazar.ReadPrivate(body)
	if err != nil {
		return nil, err
	}
	name := c.Param("name")
	if blazar.IsColumn(name) {
		return nil, fault.New(fault.NotFound, "%s is a column of hosts, which all see, and no property", name)
	}
	if err := s.Inventory.SetHidden(c.Request.Context(), name, private); err != nil {
		return nil, err
	}
	return gin.H{"resource_property": blazar.ChangedProperty(s.Inventory.Snapshot(), name, private, s.Now())}, nil
}

// listAllocations handles GET /v1/os-hosts/allocations.
func (s *server) listAllocations(c *gin.Context) {
	s.sendAllocations(c, s.blazarHosts(s.Inventory.Snapshot()), func(list []blazar.HostAllocations) any {
		return gin.H{"allocations": list}
	})
}

// showAllocation handles GET /v1/os-hosts/{id}/allocation.
func (s *server) showAllocation(c *gin.Context) {
	h, err := s.blazarHost(c, s.Inventory.Snapshot())
	if err != nil {
		s.fail(c, err)
		return
	}
	s.sendAllocations(c, []*inventory.Host{h}, func(list []blazar.HostAllocations) any { return gin.H{"allocation": list[0]} })
}

// sendAllocations sends the allocations of hosts, in the form that wrap returns. They are computed
// and written in the project's turn, as the calendar is.
func (s *server) sendAllocations(c *gin.Context, hosts []*inventory.Host, wrap func([]blazar.HostAllocations) any) {
	by := asking(c)
	find, after, err := s.allocated(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	var page bytes.Buffer
	turnErr := s.Booking.InTurn(c.Request.Context(), by.ProjectID, func() {
		list := blazar.Allocations(hosts, find(), after, func(r *reservation.Reservation) bool { return knows(by, r) })
		err = json.NewEncoder(&page).Encode(wrap(list))
	})
	if err := cmp.Or(turnErr, err); err != nil {
		s.fail(c, fmt.Errorf("write the allocations: %w", err))
		return
	}
	c.Data(http.StatusOK, blazarContentType, page.Bytes())
}

// allocated returns a function that returns the reservations that the request asks for, and the
// instant after which their allocations count: the live ones from now on, or those of one lease or
// one reservation, past ones too. Those whose hosts the asker must not learn are not among the latter.
func (s *server) allocated(c *gin.Context) (find func() []reservation.Reservation, after span.Instant, err error) {
	lease, id := placing.LowerUUID(c.Query("lease_id")), placing.LowerUUID(c.Query("reservation_id"))
	if lease == "" && id == "" {
		return func() []reservation.Reservation { return s.Booking.Live(span.Always) }, s.Now(), nil
	}
	var found []reservation.Reservation
	if lease != "" {
		var l reservation.LeaseRecord
		l, err = s.Blazar.Leases.Lease(c.Request.Context(), lease)
		found = l.Reservations
	} else {
		var r reservation.Reservation
		r, err = s.Reader.Get(c.Request.Context(), id)
		found = []reservation.Reservation{r}
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, 0, err
	}
	by := asking(c)
	found = slices.DeleteFunc(found, func(r reservation.Reservation) bool {
		return r.ID == "" || r.Maintenance || id != "" && r.ID != id || !knows(by, &r)
	})
	return func() []reservation.Reservation { return found }, -span.Forever, nil
}
