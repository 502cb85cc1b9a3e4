// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/almanac-cloud/almanac/inventory"
)

// fingerprints remembers the fingerprints of the last snapshot of the inventory. They depend on its
// content alone, so that all replicas that see the same hosts have the same ones.
type fingerprints struct {
	mu          sync.Mutex
	snapshot    *inventory.Snapshot
	sizes, full string
}

// of returns the fingerprint of everything in the snapshot, or only of the names and sizes of its
// hosts.
func (f *fingerprints) of(s *inventory.Snapshot, everything bool) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.snapshot != s {
		f.snapshot, f.sizes, f.full = s, "", ""
	}
	print := &f.sizes
	if everything {
		print = &f.full
	}
	if *print == "" {
		*print = fingerprintOf(s, everything)
	}
	return *print
}

func fingerprintOf(s *inventory.Snapshot, everything bool) string {
	h := sha256.New()
	encoder := json.NewEncoder(h)
	encode := func(value any) {
		if err := encoder.Encode(value); err != nil {
			panic(fmt.Sprintf("api: a host cannot be written: %v", err)) // inventory holds no such values
		}
	}
	for _, host := range s.Hosts() {
		if everything {
			encode(host)
			encode(host.Number)
		} else {
			encode(host.Name)
			encode(host.Capacity)
		}
	}
	if everything {
		for _, p := range s.Properties() {
			if p.Hidden {
				encode(p.Name)
			}
		}
	}
	return string(h.Sum(nil))
}

// tagsKept is the number of calendars whose tags are remembered.
const tagsKept = 4096

func newTags() *lru.Cache[string, string] {
	tags, err := lru.New[string, string](tagsKept)
	if err != nil {
		panic("api: " + err.Error()) // only for a size below one
	}
	return tags
}
