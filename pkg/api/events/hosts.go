// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"reflect"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
)

// mostChangedHosts is the largest number of hosts that one event of the kind hosts names.
const mostChangedHosts = 1000

// Publish tells the streams which hosts have changed since the last call. It is a step of a job of
// the process, so that there is one comparison for all streams.
func (s *API) Publish(context.Context) error {
	s.news.mu.Lock()
	defer s.news.mu.Unlock()
	before, after := s.news.told, s.Snapshot()
	if before == after {
		return nil
	}
	s.news.told = after
	if hosts := changedHosts(before, after); len(hosts) > 0 {
		if len(hosts) > mostChangedHosts {
			hosts = nil
		}
		s.log.add(event{hosts: hosts, followed: s.Promises.FollowedUntil()}, s.Now())
	}
	return nil
}

// hostNews is the snapshot whose hosts the streams already know.
type hostNews struct {
	mu   sync.Mutex
	told *inventory.Snapshot
}

// changedHosts returns the hosts that differ between two snapshots, sorted.
func changedHosts(before, after *inventory.Snapshot) (changed []string) {
	i, j := 0, 0
	for i < before.Len() || j < after.Len() {
		switch {
		case j == after.Len() || i < before.Len() && before.Host(i).Name < after.Host(j).Name:
			changed = append(changed, before.Host(i).Name)
			i++
		case i == before.Len() || after.Host(j).Name < before.Host(i).Name:
			changed = append(changed, after.Host(j).Name)
			j++
		default:
			if !reflect.DeepEqual(before.Host(i), after.Host(j)) {
				changed = append(changed, after.Host(j).Name)
			}
			i, j = i+1, j+1
		}
	}
	return changed
}
