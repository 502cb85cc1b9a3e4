// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"maps"
	"sync"
	"time"
)

// unevictable contains the instances that cannot be evicted for any request for some time: those
// that did not leave when ordered to, and those that are leaving.
type unevictable struct {
	mu   sync.Mutex
	list map[string]exclusion // by instance
}

type exclusion struct {
	host  string
	until time.Time
}

// add excludes victims, on their present hosts, from eviction until that time.
func (u *unevictable) add(victims []Victim, until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.list == nil {
		u.list = map[string]exclusion{}
	}
	for _, v := range victims {
		u.list[v.Instance.ID] = exclusion{v.On.Name, until}
	}
}

// at returns the host of each instance that is unevictable at a time, by the id of the instance.
func (u *unevictable) at(now time.Time) map[string]string {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.list, func(_ string, one exclusion) bool { return now.After(one.until) })
	hosts := make(map[string]string, len(u.list))
	for id, one := range u.list {
		hosts[id] = one.host
	}
	return hosts
}
