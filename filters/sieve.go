// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
)

// refuseAll is the Test that refuses all hosts for one reason.
type refuseAll string

func (refuseAll) Keep(hosts hostset.Set) { clear(hosts) }
func (n refuseAll) Why(int) string       { return string(n) }

// subset is the Test that only the hosts of a set pass.
type subset struct {
	hosts hostset.Set
	why   func(i int) string
}

func (s subset) Keep(hosts hostset.Set) { hosts.Keep(s.hosts) }
func (s subset) Why(i int) string       { return s.why(i) }

// based is a Test with a Basis.
type based struct {
	Test
	basis any
}

func (b based) Basis() any { return b.basis }

// cached caches a result that was computed from the hosts, for as long as the hosts are the same:
// facts that placements do not change. It is safe for concurrent use.
type cached[T any] struct {
	mu   sync.Mutex
	of   *inventory.States
	what T
}

func (k *cached[T]) get(s *inventory.States, gather func(s *inventory.States) T) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !s.SameHosts(k.of) {
		k.of, k.what = s, gather(s)
	}
	return k.what
}
