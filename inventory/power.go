package inventory

import (
	"cmp"
	"context"
	"slices"
)

// PowerSetting is what is known of a host's power, and of what it does with it, apart from
// its Source. What is empty or 0 is as the Source has it.
type PowerSetting struct {
	Power Power
	// Trouble says why the host cannot be used, where Power is PowerFailed.
	Trouble     string
	BootSeconds int64 // as measured
	// BootOtherwise is the boot time where neither that nor the Source has one.
	BootOtherwise int64
	WakeDelay     int64 // see Host.WakeDelay
	FlopsPerWatt  float64
}

// PowerSettings tell of hosts that are switched off and on.
type PowerSettings interface {
	// PowerSettings gives what is known of the named hosts, by host.
	PowerSettings(ctx context.Context, hosts []string) (map[string]PowerSetting, error)
}

func namesOf(hosts []Host) []string {
	names := make([]string, len(hosts))
	for i := range hosts {
		names[i] = hosts[i].Name
	}
	return names
}

// empower gives the hosts with the settings laid over them.
func empower(hosts []Host, settings map[string]PowerSetting) []Host {
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

// apply also takes the trouble from a host that is off on purpose: whoever watches its
// services sees them down.
func (p PowerSetting) apply(h *Host) {
	h.BootSeconds = cmp.Or(p.BootSeconds, h.BootSeconds, p.BootOtherwise)
	h.WakeDelay = p.WakeDelay
	if p.FlopsPerWatt > 0 {
		h.FlopsPerWatt = p.FlopsPerWatt
	}
	switch h.Power = cmp.Or(p.Power, h.Power); p.Power {
	case PowerSleeping, PowerWaking:
		h.Trouble = ""
	case PowerFailed:
		h.Trouble = p.Trouble
	}
}
