// SPDX-License-Identifier: Apache-2.0

package app

import (
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// switchedHosts are the hosts that the energy controller has changed and not changed back, sorted
// by name.
type switchedHosts struct {
	closed []string // their nova-compute is disabled by Almanac
	asleep []string // they are switched off, or may be
}

// switchedBy compares the cloud's nova-compute services with the power records of the database. It
// ignores hosts that are not in the cloud.
func switchedBy(services map[string]controller.Service, records map[string]energy.Record) (s switchedHosts) {
	for _, host := range slices.Sorted(maps.Keys(services)) {
		service, phase := services[host], records[host].Phase
		closed := service.Disabled && controller.Ours(service.Reason)
		if closed {
			s.closed = append(s.closed, host)
		}
		switch phase {
		case energy.Awake, energy.Draining:
			if closed && !service.Up {
				s.asleep = append(s.asleep, host)
			}
		case energy.Waking:
			if closed || !service.Up {
				s.asleep = append(s.asleep, host)
			}
		default: // Nova reports a host as up for some time after it was switched off
			s.asleep = append(s.asleep, host)
		}
	}
	return s
}

// refusal returns a Conflict fault if hosts sleep: nothing would wake them without Almanac.
func (s switchedHosts) refusal() error {
	if len(s.asleep) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "Almanac has switched off %s, and nothing wakes them once it is removed; start almanacd, run "+
		"'almanac energy host on %s', and stop almanacd when 'almanac energy host list' shows them awake; "+
		"or use --force, and switch them on by hand", strings.Join(s.asleep, ", "), strings.Join(s.asleep, " "))
}
