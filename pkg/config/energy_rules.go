package config

import (
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// PlanRules returns the rules of the switch plan. The error is an Invalid fault that names the
// option.
func (e Energy) PlanRules() (energy.Rules, error) {
	spare, err := spareCapacity(e.SpareCapacity)
	if err != nil {
		return energy.Rules{}, err
	}
	if e.Rules == "paper" {
		return energy.Paper(), nil
	}
	r := energy.Rules{
		Horizon: seconds(e.Horizon), IdleNeeded: e.IdleIntervals, BootMargin: seconds(e.BootMargin),
		SpareHosts: e.SpareHosts, SparePercent: e.SparePercent, SpareCapacity: spare,
		MinOn: seconds(e.MinOnTime), MinOff: seconds(e.MinOffTime),
		MostOff: e.MaxOffPerCycle, MostSwitches: e.MaxSwitchesPerDay, MostBooting: e.MaxBooting,
	}
	for _, kind := range e.KeepLast {
		r.KeepLast = append(r.KeepLast, energy.Group(kind))
	}
	return r, nil
}

// Switching returns the time limits and retries for switching one host.
func (e Energy) Switching() energy.Switching {
	return energy.Switching{
		Settle: seconds(e.SettleTime), OffPatience: seconds(e.SoftOffTimeout), Hard: e.HardOff,
		BootTimeout: seconds(e.BootTimeout), Retries: e.BootRetries, Backoff: seconds(e.BootBackoff), Probe: seconds(e.ProbeInterval),
	}
}

// spareCapacity parses items of the form CLASS:AMOUNT.
func spareCapacity(list []string) (v resource.Vector, err error) {
	for _, item := range list {
		class, text, _ := strings.Cut(item, ":")
		amount, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil || amount < 0 {
			return v, fault.Field("[energy] spare_capacity", "must be resource classes and amounts such as VCPU:64, not %q", item)
		}
		switch class = strings.TrimSpace(class); {
		case class == "VCPU":
			v.VCPUs = amount
		case class == "MEMORY_MB":
			v.MemoryMB = amount
		case class == "DISK_GB":
			v.DiskGB = amount
		case resource.IsCustomClass(class):
			if v.Custom == nil {
				v.Custom = map[string]int64{}
			}
			v.Custom[class] = amount
		default:
			return v, fault.Field("[energy] spare_capacity", "must use the classes VCPU, MEMORY_MB, DISK_GB or CUSTOM_*, not %q", class)
		}
	}
	return v, nil
}
