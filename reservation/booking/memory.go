package booking

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// Memory keeps reservations in memory only, for whoever needs no disk: it is Records,
// Keys and reservation.Reader at once.
type Memory struct {
	mu           sync.Mutex
	reservations map[string]reservation.Reservation
	keys         map[[2]string]reservation.Key
}

// NewMemory gives an empty Memory.
func NewMemory() *Memory {
	return &Memory{reservations: make(map[string]reservation.Reservation), keys: make(map[[2]string]reservation.Key)}
}

// Create implements Records.
func (m *Memory) Create(_ context.Context, r reservation.Reservation, key *reservation.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if key != nil {
		at := [2]string{key.ProjectID, key.Key}
		if _, used := m.keys[at]; used {
			return reservation.ErrKeyUsed
		}
		m.keys[at] = *key
	}
	m.reservations[r.ID] = r
	return nil
}

// Update implements Records.
func (m *Memory) Update(_ context.Context, r reservation.Reservation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reservations[r.ID].Version != r.Version-1 {
		return fault.New(fault.Conflict, "the reservation was changed meanwhile; look at it and try again")
	}
	m.reservations[r.ID] = r
	return nil
}

// Live implements Records.
func (m *Memory) Live(ctx context.Context) ([]reservation.Reservation, error) {
	return m.List(ctx, reservation.Query{Statuses: []reservation.Status{
		reservation.Pending, reservation.Starting, reservation.Active, reservation.Ending,
	}})
}

// Key implements Keys.
func (m *Memory) Key(_ context.Context, projectID, key string) (reservation.Key, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	use, ok := m.keys[[2]string{projectID, key}]
	return use, ok, nil
}

// Get implements reservation.Reader.
func (m *Memory) Get(_ context.Context, id string) (reservation.Reservation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.reservations[id]
	if !ok || r.Status == reservation.Cancelled {
		return reservation.Reservation{}, NotFound(id)
	}
	return r, nil
}

// List implements reservation.Reader.
func (m *Memory) List(_ context.Context, q reservation.Query) ([]reservation.Reservation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []reservation.Reservation
	for _, r := range m.reservations {
		if selects(q, &r) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b reservation.Reservation) int {
		return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.ID, b.ID))
	})
	if q.Marker != "" {
		at := slices.IndexFunc(list, func(r reservation.Reservation) bool { return r.ID == q.Marker })
		if at < 0 {
			return nil, fault.Field("marker", "there is no reservation %s in this list", q.Marker)
		}
		list = list[at+1:]
	}
	if q.Limit > 0 && len(list) > q.Limit {
		list = list[:q.Limit]
	}
	return list, nil
}

func selects(q reservation.Query, r *reservation.Reservation) bool {
	status := r.Status != reservation.Cancelled
	if len(q.Statuses) > 0 {
		status = slices.Contains(q.Statuses, r.Status)
	}
	return status &&
		(q.ProjectID == "" || q.ProjectID == r.ProjectID) &&
		(q.Name == "" || q.Name == r.Name) &&
		(q.Kind == "" || q.Kind == r.Kind) &&
		(q.Overlaps.Empty() || q.Overlaps.Overlaps(r.Span))
}
