// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Records stores reservations in memory, for simulations and tests. It implements booking.Records, booking.Keys and
// reservation.Reader, for any number of services in this process.
type Records struct {
	mu           sync.Mutex
	reservations map[string]reservation.Reservation
	leases       map[string]reservation.Lease
	series       map[string]reservation.Series
	keys         map[[2]string]reservation.Key
	hosts        map[string]int64
	usage        map[string]usage
	enrolled     []address.Enrolled
	log          []booking.LogEntry // with the places forgotten+1, forgotten+2, …
	forgotten    int64              // number of deleted entries
}

// usage is the sum over a project's live reservations, and the project's version.
type usage struct{ hostSeconds, version int64 }

// New returns an empty Memory.
func New() *Records {
	return &Records{
		reservations: make(map[string]reservation.Reservation), leases: make(map[string]reservation.Lease),
		series: make(map[string]reservation.Series), keys: make(map[[2]string]reservation.Key),
		hosts: make(map[string]int64), usage: make(map[string]usage),
	}
}

// Commit implements booking.Records.
func (m *Records) Commit(_ context.Context, c booking.Commit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Key != nil {
		if _, used := m.keys[[2]string{c.Key.ProjectID, c.Key.Key}]; used {
			return reservation.ErrKeyUsed
		}
	}
	if m.contradicts(c) {
		return reservation.ErrStale
	}
	if c.Key != nil {
		m.keys[[2]string{c.Key.ProjectID, c.Key.Key}] = *c.Key
	}
	for _, h := range c.Hosts {
		m.hosts[h.Host]++
	}
	if c.Lease != nil {
		m.leases[c.Lease.ID] = *c.Lease
	}
	if c.Series != nil {
		m.series[c.Series.ID] = *c.Series
	}
	for _, u := range c.Usages() {
		m.usage[u.Project] = m.usage[u.Project].after(u.Usage)
	}
	for _, revision := range c.Revisions {
		r := revision.Reservation
		m.reservations[r.ID] = r
		m.log = append(m.log, booking.LogEntry{Place: m.forgotten + int64(len(m.log)) + 1, ID: r.ID, Version: r.Version})
	}
	return nil
}

// contradicts reports whether a commit was decided on other versions than those that m has.
func (m *Records) contradicts(c booking.Commit) bool {
	return c.Lease != nil && m.leases[c.Lease.ID].Version != c.Lease.Version-1 ||
		c.Series != nil && m.series[c.Series.ID].ID != "" ||
		slices.ContainsFunc(c.Hosts, func(h booking.HostVersion) bool { return m.hosts[h.Host] != h.Version }) ||
		slices.ContainsFunc(c.Revisions, func(v booking.Revision) bool {
			r := &v.Reservation
			return m.reservations[r.ID].Version != r.Version-1
		}) ||
		slices.ContainsFunc(c.Usages(), func(u booking.ProjectUsage) bool { return !m.usage[u.Project].allows(u.Usage) })
}

// Forget deletes reservations that are over, and the log. It is for a single service that runs for
// a long time and does not have other replicas.
func (m *Records) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.log {
		if r, ok := m.reservations[e.ID]; ok && !r.Status.Live() {
			delete(m.reservations, e.ID)
		}
	}
	m.forgotten += int64(len(m.log))
	m.log = m.log[:0]
}

func (u usage) after(c booking.Usage) usage {
	u.hostSeconds += c.HostSeconds
	if c.Raises {
		u.version++
	}
	return u
}

// allows reports whether the project has the version on which the decision is based, and keeps its
// limit.
func (u usage) allows(c booking.Usage) bool {
	return (c.Known == nil || *c.Known == u.version) &&
		(c.HostSeconds <= 0 || c.MostHostSeconds == 0 || u.after(c).hostSeconds <= c.MostHostSeconds)
}

// Recall implements booking.Records.
func (m *Records) Recall(_ context.Context, q booking.Recall) (booking.Recalled, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	begin := min(max(q.Since-m.forgotten, 0), int64(len(m.log)))
	got := booking.Recalled{Log: slices.Clone(m.log[begin:])}
	ids := append(slices.Clone(q.IDs), idsOf(got.Log)...)
	if q.All {
		got.Log, ids = got.Log[max(0, len(got.Log)-1):], q.IDs
	}
	for _, id := range q.IDs {
		if _, ok := m.reservations[id]; !ok {
			got.Gone = append(got.Gone, id)
		}
	}
	hosts := make(map[string]bool)
	for _, host := range q.Hosts {
		hosts[host] = true
	}
	found := make(map[string]bool)
	for _, id := range ids {
		if r, ok := m.reservations[id]; ok && r.Version > known(q, id) {
			found[id] = true
			for _, host := range r.HostNames() {
				hosts[host] = true
			}
		}
	}
	if q.All {
		for host := range m.hosts {
			hosts[host] = true
		}
	}
	if q.All || len(hosts) > 0 || q.Project != "" {
		m.findLive(q, found, func(r *reservation.Reservation) bool {
			return q.All || q.Project != "" && r.BelongsTo(q.Project) ||
				slices.ContainsFunc(r.Claims, func(c reservation.Claim) bool { return hosts[c.Host] })
		})
	}
	raised := m.raised(q, found)
	if len(raised) > 0 {
		m.findLive(q, found, func(r *reservation.Reservation) bool { return raised[r.ProjectID] })
	}
	for id := range found {
		got.Reservations = append(got.Reservations, m.reservations[id])
	}
	slices.SortFunc(got.Reservations, byStart)
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		got.Hosts = append(got.Hosts, booking.HostVersion{Host: host, Version: m.hosts[host]})
	}
	for _, project := range slices.Sorted(maps.Keys(raised)) {
		got.Projects = append(got.Projects, booking.ProjectVersion{Project: project, Version: m.usage[project].version})
	}
	return got, nil
}

// raised returns the projects whose versions the answer must contain in addition to those in found.
func (m *Records) raised(q booking.Recall, found map[string]bool) map[string]bool {
	projects := make(map[string]bool)
	if q.Projects == nil || !q.All && q.Project == "" && len(found) == 0 {
		return projects
	}
	asked := map[string]bool{q.Project: true}
	for id := range found {
		asked[m.reservations[id].ProjectID] = true
	}
	for project, u := range m.usage {
		if (q.All || asked[project]) && u.version > q.Projects(project) {
			projects[project] = true
		}
	}
	return projects
}

// findLive adds to found the live reservations that meant selects and that the caller does not
// have.
func (m *Records) findLive(q booking.Recall, found map[string]bool, meant func(r *reservation.Reservation) bool) {
	for id, r := range m.reservations {
		if r.Status.Live() && r.Version > known(q, id) && meant(&r) {
			found[id] = true
		}
	}
}

func idsOf(log []booking.LogEntry) []string {
	ids := make([]string, len(log))
	for i, e := range log {
		ids[i] = e.ID
	}
	return ids
}

func known(q booking.Recall, id string) int64 {
	if q.Known == nil {
		return 0
	}
	return q.Known(id)
}

func byStart(a, b reservation.Reservation) int {
	return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.ID, b.ID))
}

// Key implements Keys.
func (m *Records) Key(_ context.Context, projectID, key string) (reservation.Key, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	use, ok := m.keys[[2]string{projectID, key}]
	return use, ok, nil
}

// Get implements reservation.Reader.
func (m *Records) Get(_ context.Context, id string) (reservation.Reservation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.reservations[id]
	if !ok {
		return reservation.Reservation{}, booking.NotFound(id)
	}
	return r, nil
}

// List implements reservation.Reader.
func (m *Records) List(_ context.Context, q reservation.Query) ([]reservation.Reservation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []reservation.Reservation
	for _, r := range m.reservations {
		if selects(q, &r) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, byStart)
	if q.Marker != "" {
		at := slices.IndexFunc(list, func(r reservation.Reservation) bool { return r.ID == q.Marker })
		if at < 0 {
			return nil, fault.Field("marker", "there is no reservation %s in this list", q.Marker)
		}
		list = list[at+1:]
	}
	switch {
	case q.Limit == 0 || len(list) <= q.Limit:
	case q.Last:
		list = list[len(list)-q.Limit:]
	default:
		list = list[:q.Limit]
	}
	return list, nil
}

func selects(q reservation.Query, r *reservation.Reservation) bool {
	status := r.Status != reservation.Canceled
	if len(q.Statuses) > 0 {
		status = slices.Contains(q.Statuses, r.Status)
	}
	return status &&
		(q.ProjectID == "" || r.BelongsTo(q.ProjectID)) &&
		(len(q.IDs) == 0 || slices.Contains(q.IDs, r.ID)) &&
		(q.Name == "" || q.Name == r.Name) &&
		(q.LeaseID == "" || q.LeaseID == r.Membership.LeaseID) &&
		(q.SeriesID == "" || q.SeriesID == r.Occurrence.SeriesID) &&
		(q.Kind == "" || q.Kind == r.Kind) &&
		(q.Maintenance == nil || *q.Maintenance == r.Maintenance) &&
		(q.Overlaps.Empty() || q.Overlaps.Overlaps(r.Span))
}
