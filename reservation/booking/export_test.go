// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/turns"
)

// NextClaim returns the first span of host's claims that ends after t. Claims that touch or
// overlap count as one.
func (m *memory) NextClaim(host string, t span.Instant) (span.Span, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	number, known := m.hosts.Number(host)
	if !known {
		return span.Span{}, false
	}
	return m.calendar.NextBusy(number, t)
}

// Lock is a lock of a service. The test of their order takes it, and looks whether a call has it.
type Lock struct {
	Name string
	// Place is that in the list of locks of Service.
	Place int
	Take  func(ctx context.Context) (leave func())
	Taken func() bool
}

// LocksOf returns the locks that calls about these things take, except those of new reservations. Nobody has any.
func (s *Service) LocksOf(project, key, lease string, reservations, hosts []string) []Lock {
	d := s.Bookings.decider
	list := []Lock{
		named("key", 1, &s.keys, [2]string{project, key}), named("lease without reservations", 1, &s.empty, project), named("lease", 1, &s.locked, lease),
	}
	for _, id := range reservations {
		list = append(list, gate("reservation "+id, 1, s.live[id].changing, byRequest))
	}
	list = append(list, gate("gate of claims", 2, d.changes, "other"), gate("gate of decisions", 2, d.deciding, "other", "another"))
	for _, host := range hosts {
		list = append(list, named("host "+host, 3, &d.claiming, host))
	}
	reading := Lock{Name: "reading", Place: 4, Taken: func() bool { return len(s.reading) > 0 }}
	reading.Take = func(ctx context.Context) func() { must(s.reading.lock(ctx)); return s.reading.unlock }
	mu := Lock{Name: "mu", Place: 5, Take: func(context.Context) func() { return nil }, Taken: func() bool {
		free := s.mu.TryLock()
		if free {
			s.mu.Unlock()
		}
		return !free
	}}
	return append(list, named("limit of the project", 3, &d.claiming, "project "+project), reading, mu)
}

// named is one of the locks by key.
func named[K comparable](name string, place int, l *locks[K], key K) Lock {
	return Lock{
		Name: name, Place: place,
		Take: func(ctx context.Context) func() {
			leave, err := l.lock(ctx, key)
			must(err)
			return leave
		},
		Taken: func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			used, is := l.inUse[key]
			return is && len(used.contextMutex) > 0
		},
	}
}

// gate is a gate that is full when these parties are inside.
func gate(name string, place int, g *turns.Gate, parties ...string) Lock {
	return Lock{
		Name: name, Place: place, Taken: func() bool { return !g.Empty() },
		Take: func(ctx context.Context) func() {
			for _, party := range parties {
				must(g.Enter(ctx, party))
			}
			return func() {
				for _, party := range parties {
					g.Leave(party)
				}
			}
		},
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
