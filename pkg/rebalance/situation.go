// SPDX-License-Identifier: Apache-2.0

// Package rebalance moves instances between hosts, to raise the smallest yield (paper 002, section
// 6.2) or to empty hosts. It makes a packing plan and carries it out, one live migration after the
// other.
//
// A plan is a pure function of a Situation. The scheduler's filters decide which host may take an
// instance. They run for each move of the plan, with the state after the moves before it.
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

// Situation is everything that a plan depends on, at one moment.
type Situation struct {
	Now    span.Instant
	States *inventory.States
	// Hosts has the power and the efficiency of the hosts.
	Hosts *inventory.Snapshot
	// Filters decide which hosts may take an instance.
	Filters []filters.Filter
	// Groups contains the server group of each server that is a member of one, by the id of the
	// server.
	Groups map[string]placing.Group
	// Closed contains hosts that take no instance for a reason that States, Hosts and Filters do
	// not contain, for example because they will be switched off. The values are the reasons, as
	// sentences.
	Closed map[string]string
	// Share is the fraction of the vCPUs of its flavor that an instance needs if its use
	// was not measured.
	Share float64
	// Use is the measured use of instances, in cores, by the id of the instance.
	Use map[string]float64
	// Kept contains instances that another part of Almanac keeps where they are, by id, each with
	// the reason.
	Kept map[string]string
	// Told is the metadata key that notifies the owner of an instance of its eviction; empty means
	// that there is none.
	Told string
}

// The sources from which the need of an instance can come.
const (
	OfFlavor      = "flavor"
	OfDiagnostics = "diagnostics"
)

// Needs lists the sources of needs.
var Needs = []string{OfFlavor, OfDiagnostics}

// idle are the statuses in which an instance keeps its memory and uses no CPU.
var idle = []string{"SHUTOFF", "SUSPENDED", "PAUSED", "SHELVED", "SOFT_DELETED"}

// need returns how many cores an instance could use. most is the number of cores of the
// largest host: no instance can use more.
func (s *Situation) need(i *inventory.Instance, most float64) float64 {
	if slices.Contains(idle, i.Status) {
		return 0
	}
	if use, measured := s.Use[i.ID]; measured {
		return min(use, most)
	}
	return min(float64(i.Flavor.Resources.VCPUs)*s.Share, most)
}

// unjudged are prefixes of extra specs whose requirements the filters cannot check. Instances with
// such flavors are not moved (nova/virt/hardware.py).
var unjudged = []string{
	"hw:numa_", "hw:cpu_dedicated_mask", "hw:cpu_thread_policy", "hw:cpu_realtime", "hw:mem_page_size", "hw:pmem", "hw:pci_",
	"hw:mem_encryption", "hw:tpm_", "hw:emulator_threads_policy", "pci_passthrough:", "accel:", "resources:PCPU", "resources:VGPU",
}

// stays returns the reason why an instance cannot be moved; "" if it can.
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
		return "it was told to make room"
	case len(s.States.HostsOf(i.ID)) > 1:
		return "it is on its way to another host"
	case grouped && group.Policy == "affinity" && s.living(group.Members) > 1:
		return "it must stay on the host of its server group"
	}
	for _, key := range slices.Sorted(maps.Keys(i.Flavor.ExtraSpecs)) {
		value := strings.ToLower(strings.TrimSpace(i.Flavor.ExtraSpecs[key]))
		pinned := key == "hw:cpu_policy" && value != "" && value != "shared"
		if pinned || slices.ContainsFunc(unjudged, func(start string) bool { return strings.HasPrefix(key, start) }) && value != "" {
			return fmt.Sprintf("Almanac cannot judge which hosts its flavor fits: %s", key)
		}
	}
	return ""
}

// living returns how many of these instances are on a host.
func (s *Situation) living(instances []string) (n int) {
	for _, id := range instances {
		if len(s.States.HostsOf(id)) > 0 {
			n++
		}
	}
	return n
}

// request returns the request that Nova would make for an instance on host from.
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

// takes returns the resources that an instance occupies on its host, by resource class of
// Placement.
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

// shut returns the reason why no instance may move to host i; "" if instances may.
func (s *Situation) shut(i int) string {
	h := s.States.Host(i)
	if why := s.Closed[h.Name]; why != "" {
		return why
	}
	place, known := s.Hosts.Index(h.Name)
	if !known {
		return "it is not in the inventory"
	}
	switch power := s.Hosts.Host(place); {
	case power.Failure() != "":
		return power.Failure()
	case power.Power != "" && power.Power != inventory.PowerOn:
		return "its power is " + string(power.Power)
	}
	return ""
}

// refuses returns the reason why a host may not take a request, with the given states: that no
// instance may move there, or the first filter that refuses with its reason. It returns "" if the
// host may take the request.
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

// tests returns the filters, prepared for a request. For a preemptible instance the reservation
// filter runs a second time, as for an instance that is not preemptible: a preemptible instance may
// fill a reserved host, but a move there would lead to its eviction.
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

// open returns the hosts that may take the request, regardless of the room on them.
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

// promised returns the hosts that the reservation filter closes to instances outside the
// reservation.
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

// cores returns the number of physical cores of a host, without overcommitment.
func cores(h *inventory.HostState) float64 { return float64(h.Stocks["VCPU"].Real()) }

// memory returns the memory in MB that instances may occupy on a host: its physical memory, or the
// limit in Placement if that is less. If instances already occupy more, the result is what they
// occupy: no other instance fits, and none has to leave.
func memory(h *inventory.HostState) float64 {
	stock := h.Stocks["MEMORY_MB"]
	return float64(max(min(stock.Limit(), stock.Real()), stock.Used))
}

// moved returns the states after an instance has moved from one host to another.
func moved(s *inventory.States, one inventory.Instance, amounts map[string]int64, from, to int) *inventory.States {
	source, target := *s.Host(from), *s.Host(to)
	source.Stocks, target.Stocks = with(source.Stocks, amounts, -1), with(target.Stocks, amounts, 1)
	source.Instances = slices.DeleteFunc(slices.Clone(source.Instances), func(i inventory.Instance) bool { return i.ID == one.ID })
	one.Host = target.Name
	target.Instances = append(slices.Clone(target.Instances), one)
	slices.SortFunc(target.Instances, func(a, b inventory.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return s.WithHostRead(from, source).WithHostRead(to, target)
}

// with returns the stocks with sign times the amounts added to what is used.
func with(stocks map[string]inventory.Stock, amounts map[string]int64, sign int64) map[string]inventory.Stock {
	next := make(map[string]inventory.Stock, len(stocks))
	for class, stock := range stocks {
		stock.Used += sign * amounts[class]
		next[class] = stock
	}
	return next
}

// yieldOf returns the smallest yield if the fullest host has this load; 1 if nothing needs CPU.
func yieldOf(load float64) float64 {
	if !(load > 1) {
		return 1
	}
	return 1 / load
}

// slack is the difference below which two yields count as equal (erratum E002-10).
const slack = 1e-9
