// SPDX-License-Identifier: Apache-2.0

package topic

import (
	"context"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// news counts the casts about aggregates whose effect is not in the states yet. An unmodified
// nova-scheduler reacts to them at once.
type news struct {
	mu   sync.Mutex
	told int64 // the casts that have come
	read int64 // the casts that had come when the last reading began

	reading sync.Mutex // held while the hosts are read
}

// readTime limits a reading for which a request waits.
const readTime = 10 * time.Second

// add counts a cast about an aggregate.
func (n *news) add() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told++
}

// unread returns the number of casts that have come, and whether the states show them.
func (n *news) unread() (told int64, shown bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.told, n.read >= n.told
}

// catchUp returns when the states contain the changes that the casts announced; concurrent calls
// share a reading. It does not repeat a failed reading for the same casts, since otherwise requests
// would wait one after the other while the cloud does not answer.
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
		s.Log.WarnContext(ctx, "could not read the hosts after a cast; the next periodic reading shows the change", "error", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.read = told
}

// hasMigrated reports whether an update_instance_info is about an instance that has left its
// host by a live migration. The host sends no other cast for that (nova/compute/manager.py
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
