// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// about returns the hosts that the calls are about, sorted by name: all, or the pool's if only
// enrolled hosts count.
func (s hosts) about(snapshot *inventory.Snapshot) (hosts []*inventory.Host) {
	for _, h := range snapshot.Hosts() {
		if h.Reservable || !s.OnlyEnrolled {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// named returns the host in the path; it fails with Blazar's error if there is none.
func (s hosts) named(c *serving.Call, snapshot *inventory.Snapshot) (*inventory.Host, error) {
	i, found := blazar.FindHost(snapshot, c.Param("id"))
	if !found || s.OnlyEnrolled && !snapshot.Host(i).Reservable {
		return nil, blazar.NoHost(c.Param("id"))
	}
	return snapshot.Host(i), nil
}

// presentedHost returns a host as the asker sees it.
func presentedHost(c *serving.Call, snapshot *inventory.Snapshot, h *inventory.Host) map[string]any {
	seesHidden := c.Asker().SeesHidden()
	return blazar.Host(h, func(property string) bool { return snapshot.KindOf(property, seesHidden) != "" })
}

// list handles GET /v1/os-hosts.
func (s hosts) list(c *serving.Call) (any, error) {
	snapshot := s.Hosts.Snapshot()
	list := []map[string]any{}
	for _, h := range s.about(snapshot) {
		list = append(list, presentedHost(c, snapshot, h))
	}
	return map[string]any{"hosts": list}, nil
}

// show handles GET /v1/os-hosts/{id}.
func (s hosts) show(c *serving.Call) (any, error) {
	snapshot := s.Hosts.Snapshot()
	h, err := s.named(c, snapshot)
	if err != nil {
		return nil, err
	}
	c.SetVersion(c.Asker().SightOf(snapshot).HostVersion(h))
	return map[string]any{"host": presentedHost(c, snapshot, h)}, nil
}

// add handles POST /v1/os-hosts: it adds a host of the inventory to the pool, and sets its
// capabilities.
func (s hosts) add(c *serving.Call) (any, error) {
	body, err := bodyOf(c, serving.AnyBody)
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
	snapshot := s.Hosts.Snapshot()
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
		if i, _ := before.Index(host); s.OnlyEnrolled && before.Host(i).Reservable {
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

// change handles PUT and PATCH /v1/os-hosts/{id}: it sets capabilities.
func (s hosts) change(c *serving.Call) (any, error) {
	body, err := bodyOf(c, serving.AnyBody)
	if err != nil {
		return nil, err
	}
	snapshot := s.Hosts.Snapshot()
	h, err := s.named(c, snapshot)
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
	if err := c.Expect("host", c.Asker().SightOf(snapshot).HostVersion(h)); err != nil {
		return nil, err
	}
	if len(texts) > 0 {
		if err := s.enroll(c, h.Name, inventory.Enrollment{Texts: texts}, nil); err != nil {
			return nil, err
		}
	}
	return s.enrolled(c, h.Name)
}

// remove handles DELETE /v1/os-hosts/{id}: it removes a host from the pool.
func (s hosts) remove(c *serving.Call) (any, error) {
	h, err := s.named(c, s.Hosts.Snapshot())
	if err != nil {
		return nil, err
	}
	return nil, s.enroll(c, h.Name, inventory.Enrollment{Reservable: new(false)}, func(*inventory.Snapshot) error {
		return blazar.MayLeave(h.Name, s.Live.Live(span.Always))
	})
}

// enroll makes a change for a host unless a reservation forbids it, or allow, which receives the
// snapshot before; a nil allow allows everything. After a change of the pool it waits for the cloud.
func (s hosts) enroll(c *serving.Call, host string, e inventory.Enrollment, allow func(before *inventory.Snapshot) error) error {
	expected := serving.ExpectedHost(c, host)
	e.Allow = func(before, after *inventory.Snapshot) error {
		if expected != nil {
			if err := expected(before, after); err != nil {
				return err
			}
		}
		if allow != nil {
			if err := allow(before); err != nil {
				return err
			}
		}
		return blazar.MayChange(host, before, after, s.Live.Live(span.Always))
	}
	if err := s.Hosts.Enroll(c.Request.Context(), host, e); err != nil {
		return err
	}
	if e.Reservable != nil && s.PoolChanged != nil {
		s.PoolChanged(c.Request.Context())
	}
	return nil
}

// enrolled returns a host after a change.
func (s hosts) enrolled(c *serving.Call, host string) (any, error) {
	snapshot := s.Hosts.Snapshot()
	i, there := snapshot.Index(host)
	if !there { // it has left the cloud meanwhile
		return nil, blazar.NotInNova(host)
	}
	c.SetVersion(c.Asker().SightOf(snapshot).HostVersion(snapshot.Host(i)))
	return map[string]any{"host": presentedHost(c, snapshot, snapshot.Host(i))}, nil
}

// listProperties handles GET /v1/os-hosts/properties.
func (s hosts) listProperties(c *serving.Call) (any, error) {
	snapshot := s.Hosts.Snapshot()
	private := blazar.Asked(c.Query("all")) && c.Asker().SeesHidden()
	list := blazar.Properties(snapshot, s.about(snapshot), private, blazar.Asked(c.Query("detail")))
	return map[string]any{"resource_properties": list}, nil
}

// changeProperty handles PATCH /v1/os-hosts/properties/{name}.
func (s hosts) changeProperty(c *serving.Call) (any, error) {
	body, err := bodyOf(c, serving.AnyBody)
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
	if err := s.Hosts.SetHidden(c.Request.Context(), name, private); err != nil {
		return nil, err
	}
	return map[string]any{"resource_property": blazar.ChangedProperty(s.Hosts.Snapshot(), name, private, s.Now())}, nil
}

// listAllocations handles GET /v1/os-hosts/allocations.
func (s hosts) listAllocations(c *serving.Call) {
	s.sendAllocations(c, s.about(s.Hosts.Snapshot()), func(list []blazar.HostAllocations) any {
		return map[string]any{"allocations": list}
	})
}

// showAllocation handles GET /v1/os-hosts/{id}/allocation.
func (s hosts) showAllocation(c *serving.Call) {
	h, err := s.named(c, s.Hosts.Snapshot())
	if err != nil {
		c.Fail(err)
		return
	}
	s.sendAllocations(c, []*inventory.Host{h}, func(list []blazar.HostAllocations) any { return map[string]any{"allocation": list[0]} })
}

// sendAllocations sends the allocations of hosts, in the form that wrap returns. They are computed
// and written in the project's turn, as the calendar is.
func (s hosts) sendAllocations(c *serving.Call, hosts []*inventory.Host, wrap func([]blazar.HostAllocations) any) {
	by := c.Asker()
	find, after, err := s.allocated(c)
	if err != nil {
		c.Fail(err)
		return
	}
	var page bytes.Buffer
	turnErr := s.Live.InTurn(c.Request.Context(), by.ProjectID, func() {
		list := blazar.Allocations(hosts, find(), after, func(r *reservation.Reservation) bool { return by.Knows(r) })
		err = json.NewEncoder(&page).Encode(wrap(list))
	})
	if err := cmp.Or(turnErr, err); err != nil {
		c.Fail(fmt.Errorf("write the allocations: %w", err))
		return
	}
	c.Data(http.StatusOK, contentType, page.Bytes())
}

// allocated returns a function that returns the reservations that the request asks for, and the
// instant after which their allocations count: the live ones from now on, or those of one lease or
// one reservation, past ones too. Those whose hosts the asker must not learn are not among the latter.
func (s hosts) allocated(c *serving.Call) (find func() []reservation.Reservation, after span.Instant, err error) {
	lease, id := placing.LowerUUID(c.Query("lease_id")), placing.LowerUUID(c.Query("reservation_id"))
	if lease == "" && id == "" {
		return func() []reservation.Reservation { return s.Live.Live(span.Always) }, s.Now(), nil
	}
	var found []reservation.Reservation
	if lease != "" {
		var l reservation.LeaseRecord
		l, err = s.Leases.Lease(c.Request.Context(), lease)
		found = l.Reservations
	} else {
		var r reservation.Reservation
		r, err = s.Reader.Get(c.Request.Context(), id)
		found = []reservation.Reservation{r}
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, 0, err
	}
	by := c.Asker()
	found = slices.DeleteFunc(found, func(r reservation.Reservation) bool {
		return r.ID == "" || r.Maintenance || id != "" && r.ID != id || !by.Knows(&r)
	})
	return func() []reservation.Reservation { return found }, -span.Forever, nil
}
