// Package rebalance moves instances between hosts so that the smallest yield grows (paper
// 002, section 6.2), or so that hosts become empty, and carries such a plan out one live
// migration after the other.
//
// A plan is a pure function of a Situation. Which host may take an instance is for the
// filters to say that place instances, asked anew for each move of the plan, with what the
// moves before it have changed.
package rebalance

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Situation is all that a plan depends on, at one moment.
type Situation struct {
	Now    span.Instant
	States *inventory.States
	// Hosts have the power and the efficiency of the hosts.
	Hosts *inventory.Snapshot
	// Filters say which hosts may take an instance.
	Filters []filters.Filter
	// Groups are the server groups by the id of each of their members.
	Groups map[string]placing.Group
	// Closed are hosts onto which nothing goes for another reason than those that States,
	// Hosts and Filters know, as that one will be switched off, each with a sentence.
	Closed map[string]string
	// Share of the vCPUs of its flavor is what an instance needs of which no use was measured.
	Share float64
	// Use is what instances use, in cores, as far as it was measured, by id.
	Use map[string]float64
	// Kept are instances that stay where they are for a reason of others, with that.
	Kept map[string]string
	// Told is the key of the metadata by which the owner of an instance is told that it has
	// to go; empty is none.
	Told string
}

// The words for where needs come from.
const (
	OfFlavor      = "flavor"
	OfDiagnostics = "diagnostics"
)

// Needs lists both.
var Needs = []string{OfFlavor, OfDiagnostics}

// idle are the statuses in which an instance keeps its memory and runs on no CPU.
var idle = []string{"SHUTOFF", "SUSPENDED", "PAUSED", "SHELVED", "SOFT_DELETED"}

// need is how many cores an instance could use. No instance uses more than most, those of
// the largest host.
func (s *Situation) need(i *inventory.Instance, most float64) float64 {
	if slices.Contains(idle, i.Status) {
		return 0
	}
	if use, measured := s.Use[i.ID]; measured {
		return min(use, most)
	}
	return min(float64(i.Flavor.Resources.VCPUs)*s.Share, most)
}

// unjudged are the beginnings of extra specs that need more of a host than can be seen
// here: instances of such flavors stay (nova/virt/hardware.py).
var unjudged = []string{
	"hw:numa_", "hw:cpu_dedicated_mask", "hw:cpu_thread_policy", "hw:cpu_realtime", "hw:mem_page_size", "hw:pmem", "hw:pci_",
	"hw:mem_encryption", "hw:tpm_", "hw:emulator_threads_policy", "pci_passthrough:", "accel:", "resources:PCPU", "resources:VGPU",
}

// stays says why an instance cannot be moved; empty where it can.
func (s *Situation) stays(i *inventory.Instance) string {
	group, grouped := s.Groups[i.ID]
	switch {
	case i.Status != "ACTIVE":
		return "its status is " + i.Status
	case i.Task != "":
		return "Nova is busy with it: " + i.Task
	case i.Locked:
		return "it is locked"
	case i.ReservationID() != "":
		return "it is in reservation " + i.ReservationID()
	case s.Kept[i.ID] != "":
		return s.Kept[i.ID]
	case s.Told != "" && i.Metadata[s.Told] != "":
		return "it has been told to make room"
	case len(s.States.HostsOf(i.ID)) > 1:
		return "it is on its way to another host"
	case grouped && group.Policy == "affinity" && s.living(group.Members) > 1:
		return "it has to be where the other members of its server group are"
	}
	for _, key := range slices.Sorted(maps.Keys(i.Flavor.ExtraSpecs)) {
		value := strings.ToLower(strings.TrimSpace(i.Flavor.ExtraSpecs[key]))
		pinned := key == "hw:cpu_policy" && value != "" && value != "shared"
		if pinned || slices.ContainsFunc(unjudged, func(start string) bool { return strings.HasPrefix(key, start) }) && value != "" {
			return fmt.Sprintf("where its flavor fits cannot be judged here: %s", key)
		}
	}
	return ""
}

// living is how many of these instances are on some host.
func (s *Situation) living(instances []string) (n int) {
	for _, id := range instances {
		if len(s.States.HostsOf(id)) > 0 {
			n++
		}
	}
	return n
}

// request is what Nova would ask for an instance that is on host from.
func (s *Situation) request(i *inventory.Instance, from *inventory.HostState) *placing.Request {
	f := i.Flavor
	r := &placing.Request{
		ProjectID: i.ProjectID, UserID: i.UserID, Instances: []string{i.ID}, Hints: i.Hints, Preemptible: i.Preemptible,
		Resources: takes(i), Zone: from.Zone, Cell: from.Cell, FlavorName: f.Name, ExtraSpecs: f.ExtraSpecs,
	}
	r.Required, r.Forbidden = f.Traits()
	if group, grouped := s.Groups[i.ID]; grouped && group.Policy == "anti-affinity" {
		r.Group = &group
	}
	return r
}

// takes is what an instance takes of its host, by resource class of Placement.
func takes(i *inventory.Instance) map[string]int64 {
	all := map[string]int64{}
	add := func(class string, amount int64) {
		if amount > 0 {
			all[class] = amount
		}
	}
	add("VCPU", i.Flavor.Resources.VCPUs)
	add("MEMORY_MB", i.Flavor.Resources.MemoryMB)
	add("DISK_GB", i.Flavor.Resources.DiskGB)
	for class, amount := range i.Flavor.Resources.Custom {
		add(class, amount)
	}
	return all
}

// shut says why nothing may go onto host i, whatever it is; empty where something may.
func (s *Situation) shut(i int) string {
	h := s.States.Host(i)
	if why := s.Closed[h.Name]; why != "" {
		return why
	}
	place, known := s.Hosts.Index(h.Name)
	if !known {
		return "the inventory does not know it"
	}
	switch power := s.Hosts.Host(place); {
	case power.Failure() != "":
		return power.Failure()
	case power.Power != "" && power.Power != inventory.PowerOn:
		return "its power is " + string(power.Power)
	}
	return ""
}

// refuses asks the filters whether a host may take what is requested; states are those at
// that moment. It gives the first that refuses it, and why.
func (s *Situation) refuses(states *inventory.States, r *placing.Request, host int) string {
	if why := s.shut(host); why != "" {
		return why
	}
	only := hostset.New(states.Len())
	only.Add(host)
	for f, test := range s.tests(states, r) {
		if test.Keep(only); only.Empty() {
			return f.Name() + ": " + test.Why(host)
		}
	}
	return ""
}

// tests are the filters, made ready for a request. That for reservations is asked as for one
// who makes no room too: a preemptible instance may fill hosts that are reserved, but to move
// it there is to have it evicted.
func (s *Situation) tests(states *inventory.States, r *placing.Request) iter.Seq2[filters.Filter, filters.Test] {
	lasting := *r
	lasting.Preemptible = false
	return func(yield func(filters.Filter, filters.Test) bool) {
		for _, f := range s.Filters {
			asked := []*placing.Request{r}
			if r.Preemptible && f.Name() == (filters.Reservation{}).Name() {
				asked = append(asked, &lasting)
			}
			for _, r := range asked {
				if test := f.For(states, r, s.Now); test != nil && !yield(f, test) {
					return
				}
			}
		}
	}
}

// open gives the hosts that may take what is requested if only there is room on them.
func (s *Situation) open(r *placing.Request) hostset.Set {
	hosts := s.States.All().Clone()
	for f, test := range s.tests(s.States, r) {
		switch f.(type) {
		case filters.Capacity, *filters.Yield:
		default:
			test.Keep(hosts)
		}
	}
	return hosts
}

// promised gives the hosts that the filter for reservations closes to strangers.
func (s *Situation) promised() hostset.Set {
	left := s.States.All().Clone()
	for _, f := range s.Filters {
		if f.Name() != (filters.Reservation{}).Name() {
			continue
		}
		if test := f.For(s.States, &placing.Request{Instances: []string{""}}, s.Now); test != nil {
			test.Keep(left)
		}
	}
	closed := s.States.All().Clone()
	closed.Subtract(left)
	return closed
}

// cores gives what of a class is on host i in truth, without what Nova sells more than
// once.
func cores(h *inventory.HostState) float64 { return float64(h.Stocks["VCPU"].Real()) }

// memory gives how much memory instances may have on a host: what is there, or less where
// Placement gives less away. Where instances have more already, nothing more goes there,
// and nobody is driven away because of it.
func memory(h *inventory.HostState) float64 {
	stock := h.Stocks["MEMORY_MB"]
	return float64(max(min(stock.Limit(), stock.Real()), stock.Used))
}

// moved gives the states after an instance has gone from one host to another.
func moved(s *inventory.States, one inventory.Instance, amounts map[string]int64, from, to int) *inventory.States {
	source, target := *s.Host(from), *s.Host(to)
	source.Stocks, target.Stocks = with(source.Stocks, amounts, -1), with(target.Stocks, amounts, 1)
	source.Instances = slices.DeleteFunc(slices.Clone(source.Instances), func(i inventory.Instance) bool { return i.ID == one.ID })
	one.Host = target.Name
	target.Instances = append(slices.Clone(target.Instances), one)
	slices.SortFunc(target.Instances, func(a, b inventory.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return s.WithHostRead(from, source).WithHostRead(to, target)
}

func with(stocks map[string]inventory.Stock, amounts map[string]int64, sign int64) map[string]inventory.Stock {
	next := make(map[string]inventory.Stock, len(stocks))
	for class, stock := range stocks {
		stock.Used += sign * amounts[class]
		next[class] = stock
	}
	return next
}

// yieldOf is the yield where the fullest host has a load; 1 where nobody needs anything.
func yieldOf(load float64) float64 {
	if !(load > 1) {
		return 1
	}
	return 1 / load
}

// slack is how much two yields differ at least that are not the same (E002-10).
const slack = 1e-9
