package topic

import (
	"context"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// news is what casts have told of aggregates and the states do not show yet. A stock
// scheduler follows them at once.
type news struct {
	mu   sync.Mutex
	told int64 // how many casts about aggregates have come
	read int64 // and how many had when the last reading began

	reading sync.Mutex // held while the hosts are read
}

// readTime bounds a reading that a request waits for.
const readTime = 10 * time.Second

// take counts a cast about an aggregate.
func (n *news) take() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told++
}

// unread gives the number of casts that have come, and whether the states show them.
func (n *news) unread() (told int64, shown bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.told, n.read >= n.told
}

// catchUp returns when the states show what casts have told: who comes while another
// reads, waits for that. A reading that fails is not tried again for the same casts, or
// requests would wait in a row while the cloud does not answer.
func (s *Service) catchUp(ctx context.Context) {
	n := &s.news
	if _, shown := n.unread(); shown || s.Reread == nil {
		return
	}
	n.reading.Lock()
	defer n.reading.Unlock()
	told, shown := n.unread()
	if shown {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if err := s.Reread(ctx); err != nil {
		s.Log.WarnContext(ctx, "the hosts were not read after a cast; the next reading shows what it has told", "error", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.read = told
}

// hasMigrated says that an update_instance_info is about an instance that has left its host
// alive. The host sends no other cast for that (nova/compute/manager.py
// _post_live_migration).
func hasMigrated(r *oslo.Request) bool {
	type object[T any] struct {
		Data T `json:"nova_object.data"`
	}
	var args struct {
		Instances object[struct {
			Objects []object[struct {
				Task string `json:"task_state"`
			}]
		}] `json:"instance_info"`
	}
	if r.Decode(&args) != nil {
		return false
	}
	for _, instance := range args.Instances.Data.Objects {
		if instance.Data.Task == "migrating" {
			return true
		}
	}
	return false
}
