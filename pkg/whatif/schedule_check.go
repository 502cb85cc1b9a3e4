// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// check validates the question and sets the defaults.
func (q *ScheduleQuestion) check() error {
	if q.PeriodMinutes == nil {
		q.PeriodMinutes = new(int64(60))
	}
	if q.Weighers == nil {
		q.Weighers = map[string]float64{"overcommit": 1, "preemption_cost": 1}
	}
	if q.Request.Count == nil {
		q.Request.Count = new(1)
	}
	if err := q.checkHosts(); err != nil {
		return err
	}
	switch r := q.Request; {
	case r.Resources == nil:
		return fault.Field("request.resources", "is required: the resources of each instance")
	case *r.Count < 1 || *r.Count > mostInstances:
		return fault.Field("request.count", "must be from 1 to %d", mostInstances)
	case *q.PeriodMinutes < 1 || *q.PeriodMinutes > mostOfAny:
		return fault.Field("period_minutes", "must be from 1 to %d", mostOfAny)
	}
	if err := checkResources("request.resources", *q.Request.Resources); err != nil {
		return err
	}
	if len(amounts(*q.Request.Resources)) == 0 {
		return fault.Field("request.resources", "is empty: there is nothing to place")
	}
	return q.checkWeighers()
}

// checkWeighers returns an Invalid fault for an unknown weigher or a multiplier out of range.
func (q *ScheduleQuestion) checkWeighers() error {
	for _, name := range slices.Sorted(maps.Keys(q.Weighers)) {
		if !slices.Contains(names(), name) {
			return fault.Field("weighers."+name, "%s", fault.Unknown("weigher", name, names()))
		}
		if math.Abs(q.Weighers[name]) > mostTime {
			return fault.Field("weighers."+name, "must lie between -2^53 and 2^53")
		}
	}
	return nil
}

// checkHosts returns an Invalid fault for the first host, or instance on it, that is wrong.
func (q *ScheduleQuestion) checkHosts() error {
	if n := len(q.Hosts); n < 1 || n > mostHosts {
		return fault.Field("hosts", "must be from 1 to %d of them", mostHosts)
	}
	hosts, instances := map[string]bool{}, map[string]bool{}
	for i, h := range q.Hosts {
		path := fmt.Sprintf("hosts[%d]", i)
		name := strings.ToLower(h.Name) // Nova ignores case
		switch {
		case name == "":
			return fault.Field(path+".name", "is required")
		case hosts[name]:
			return fault.Field(path+".name", "%q is the name of two hosts", h.Name)
		case h.Capacity == nil:
			return fault.Field(path+".capacity", "is required: what there is of each resource")
		}
		hosts[name] = true
		if err := checkResources(path+".capacity", *h.Capacity); err != nil {
			return err
		}
		for n, one := range h.Instances {
			if err := checkInstance(fmt.Sprintf("%s.instances[%d]", path, n), one, instances); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkInstance validates an instance, and adds its id to known.
func checkInstance(path string, one ScheduleInstance, known map[string]bool) error {
	switch {
	case one.ID == "":
		return fault.Field(path+".id", "is required")
	case known[one.ID]:
		return fault.Field(path+".id", "%q is the id of two instances", one.ID)
	case one.RunningMinutes < 0 || one.RunningMinutes > mostOfAny:
		return fault.Field(path+".running_minutes", "must be from 0 to %d", mostOfAny)
	}
	known[one.ID] = true
	return checkResources(path+".resources", one.Resources)
}

// checkResources returns an Invalid fault if an amount is out of range or a class is not a custom one.
func checkResources(path string, r v1.Resources) error {
	for _, amount := range []struct {
		name string
		of   int64
	}{{"vcpus", r.VCPUs}, {"memory_mb", r.MemoryMB}, {"disk_gb", r.DiskGB}} {
		if amount.of < 0 || amount.of > mostOfAny {
			return fault.Field(path+"."+amount.name, "must be from 0 to %d", mostOfAny)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(r.Custom)) {
		switch amount := r.Custom[class]; {
		case !resource.IsCustomClass(class):
			return fault.Field(path+".custom", "%q is not a custom resource class: CUSTOM_ and then capitals, digits or _", class)
		case amount < 0 || amount > mostOfAny:
			return fault.Field(path+".custom."+class, "must be from 0 to %d", mostOfAny)
		}
	}
	return nil
}
