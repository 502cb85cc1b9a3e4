package filters

import (
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
)

// never refuses all hosts, with one reason.
type never string

func (never) Keep(hosts hostset.Set) { clear(hosts) }
func (n never) Why(int) string       { return string(n) }

// sieve lets the hosts of a set pass.
type sieve struct {
	hosts hostset.Set
	why   func(i int) string
}

func (s sieve) Keep(hosts hostset.Set) { hosts.Keep(s.hosts) }
func (s sieve) Why(i int) string       { return s.why(i) }

// kept caches what was computed from the hosts as long as they are the same: facts that
// placements do not change. It is safe for concurrent use.
type kept[T any] struct {
	mu   sync.Mutex
	of   *inventory.States
	what T
}

func (k *kept[T]) get(s *inventory.States, gather func(s *inventory.States) T) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !s.SameHosts(k.of) {
		k.of, k.what = s, gather(s)
	}
	return k.what
}
