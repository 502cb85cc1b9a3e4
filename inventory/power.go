// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"slices"
)

// PowerSetting is the power of a host as far as Almanac controls it. It takes precedence over the
// Source; empty and 0 leave the Source's value.
type PowerSetting struct {
	Power Power
	// Problem is the reason why the host cannot be used, if Power is PowerFailed.
	Problem     string
	BootSeconds int64 // as measured
	// BootOtherwise is the boot time if neither BootSeconds nor the Source has one.
	BootOtherwise int64
	WakeDelay     int64 // see Host.WakeDelay
	FlopsPerWatt  float64
}

// PowerSettings returns the power of hosts that Almanac switches off and on.
type PowerSettings interface {
	// PowerSettings returns the settings of the named hosts, by the name of the host.
	PowerSettings(ctx context.Context, hosts []string) (map[string]PowerSetting, error)
}

// namesOf returns the names of hosts, in their order.
func namesOf(hosts []Host) []string {
	names := make([]string, len(hosts))
	for i := range hosts {
		names[i] = hosts[i].Name
	}
	return names
}

// withPowerSettings returns the hosts with the settings applied.
func withPowerSettings(hosts []Host, settings map[string]PowerSetting) []Host {
	if len(settings) == 0 {
		return hosts
	}
	hosts = slices.Clone(hosts)
	for i := range hosts {
		if set, known := settings[hosts[i].Name]; known {
			set.apply(&hosts[i])
		}
	}
	return hosts
}

// apply sets the power of the host. It removes the problem of a host that is off on purpose, whose
// services are reported as down.
func (p PowerSetting) apply(h *Host) {
	h.BootSeconds = cmp.Or(p.BootSeconds, h.BootSeconds, p.BootOtherwise)
	h.WakeDelay = p.WakeDelay
	if p.FlopsPerWatt > 0 {
		h.FlopsPerWatt = p.FlopsPerWatt
	}
	switch h.Power = cmp.Or(p.Power, h.Power); p.Power {
	case PowerSleeping, PowerWaking:
		h.Problem = ""
	case PowerFailed:
		h.Problem = p.Problem
	}
}
