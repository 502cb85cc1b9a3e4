// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// The resource types.
const (
	Hosts     = "physical:host"
	Instances = "virtual:instance"
	Flavors   = "flavor:instance" // instances of a flavor of Nova

	FloatingIPs = "virtual:floatingip"
)

// longestName is the largest length of a lease's name, in characters, as in Blazar's table.
const longestName = 80

// mostEvents is the largest number of events in a request.
const mostEvents = 64

// Reader reads the requests for leases. Its errors are faults with the texts of Blazar.
type Reader struct {
	Now span.Instant
	// LatestPast is how many seconds a start may lie in the past.
	LatestPast int64
	// BeforeEnd is how many seconds before its end the owner of a lease is warned if the request does
	// not say it; 0 means never.
	BeforeEnd int64
	// Extended is true if a request may have what microversion 1.1 adds.
	Extended bool
	// Hosts are the hosts that queries are about. SeesHidden is true if the caller may use hidden
	// properties.
	Hosts      *inventory.Snapshot
	SeesHidden bool
	// Flavor returns what a reservation for instances of a flavor of Nova asks for, by the flavor's
	// id; nil means that there is no Nova, and no snapshot either.
	Flavor func(id string) (reservation.MemberRequest, error)
	// Neutron is true if there is a Neutron, which has the floating IPs.
	Neutron bool
}

// Create reads the body of POST /v1/leases.
func (r Reader) Create(o Object) (req reservation.LeaseRequest, err error) {
	var lacking []string
	for _, key := range r.required(o) {
		if o[key] == nil {
			lacking = append(lacking, key)
		}
	}
	if len(lacking) > 0 {
		return req, missing(lacking...)
	}
	if req.Name, err = name(o); err != nil {
		return req, err
	}
	w, seconds, err := r.window(o)
	if err != nil {
		return req, err
	}
	req.Start, req.End, req.Duration, req.Minutes = w.Start, w.End, seconds, true
	req.EndFollows = r.Extended && seconds == 0 && o.has("duration")
	onEnd, err := r.onEnd(o)
	if err != nil {
		return req, err
	}
	if req.Events, err = events(o); err != nil {
		return req, err
	}
	members, err := o.objects("reservations")
	if err != nil {
		return req, err
	}
	for _, m := range members {
		member, err := r.member(m)
		if err != nil {
			return req, err
		}
		if onEnd != nil {
			member.OnEnd = *onEnd
		}
		req.Members = append(req.Members, member)
	}
	req.BeforeEnd, err = r.beforeEnd(o, last(w, seconds))
	return req, err
}

// name returns the name of a lease; an error if it is longer than Blazar allows.
func name(o Object) (string, error) {
	text, _, err := o.text("name")
	if err == nil && utf8.RuneCountInString(text) > longestName {
		err = malformed("name (must have at most 80 characters)")
	}
	return text, err
}

// instant returns the time of a key; ok is false if there is none.
func (r Reader) instant(o Object, key string) (at span.Instant, ok bool, err error) {
	text, ok, err := o.text(key)
	if err != nil || !ok {
		return 0, false, err
	}
	at, err = readTime(text, r.Now)
	return at, true, err
}

// checkTimes checks the times of a new lease.
func (r Reader) checkTimes(w span.Span) error {
	switch {
	case w.Start < r.Now.Add(-r.LatestPast):
		return fault.New(fault.Invalid, "Start date must be later than current date")
	case w.Empty():
		return fault.New(fault.Invalid, "End date must be later than start date.")
	case w.End <= r.Now:
		return fault.New(fault.Invalid, "End date must be later than current date")
	}
	return nil
}

// beforeEnd returns when the owner of a new lease is warned; 0 means never.
func (r Reader) beforeEnd(o Object, w span.Span) (span.Instant, error) {
	if !o.has("before_end_date") {
		if r.BeforeEnd == 0 {
			return 0, nil
		}
		return max(w.End.Add(-r.BeforeEnd), w.Start), nil
	}
	at, _, err := r.instant(o, "before_end_date")
	if err == nil && (at <= w.Start || at >= w.End) {
		err = fault.New(fault.Denied, "Datetime is out of lease limits")
	}
	return at, err
}

// events returns the events of a request as a JSON list; empty if there are none.
func events(o Object) (string, error) {
	list, err := o.objects("events")
	switch {
	case err != nil:
		return "", err
	case len(list) == 0:
		return "", nil
	case len(list) > mostEvents:
		return "", malformed("events (must be at most 64)")
	}
	for _, e := range list {
		if _, _, err := e.text("event_type"); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// member reads one reservation of a request.
func (r Reader) member(o Object) (m reservation.MemberRequest, err error) {
	kind, ok, err := o.text("resource_type")
	if err != nil {
		return m, err
	}
	if !ok {
		return m, missing("resource_type")
	}
	switch {
	case kind == Hosts:
		m.Kind = reservation.Hosts
		err = r.hosts(o, &m)
	case kind == Instances:
		m.Kind = reservation.Instances
		err = r.instances(o, &m)
	case kind == FloatingIPs:
		m.Kind = reservation.Addresses
		err = r.floatingIPs(o, &m)
	case kind == Flavors && r.Flavor != nil:
		m, err = r.flavor(o)
	case kind == Flavors:
		return m, fault.New(fault.Invalid, "The %s resource type is not supported without Nova, which has the flavors", kind)
	default:
		return m, fault.New(fault.Invalid, "The %s resource type is not supported", shorten(kind))
	}
	if err != nil {
		return m, err
	}
	m.OnEnd = reservation.OnEndDelete
	return m, promised(o)
}

// flavor reads a reservation of instances of a flavor of Nova.
func (r Reader) flavor(o Object) (m reservation.MemberRequest, err error) {
	var lacking []string
	for _, key := range []string{"amount", "flavor_id"} {
		if !o.has(key) {
			lacking = append(lacking, key)
		}
	}
	if len(lacking) > 0 {
		return m, missing(lacking...)
	}
	amount, _, err := o.number("amount")
	if err != nil || amount < 1 {
		return m, malformed("amount")
	}
	if chosen, err := affinity(o); err != nil || chosen != calendar.AffinityNone {
		return m, fault.New(fault.Conflict, "affinity is not supported for %s", Flavors)
	}
	id := fmt.Sprint(o["flavor_id"]) // the openstack client sends an id such as 7 as a number
	switch o["flavor_id"].(type) {
	case string, json.Number:
	default:
		return m, malformed("flavor_id")
	}
	if m, err = r.Flavor(id); err != nil {
		return m, err
	}
	m.Min, m.Max, m.Affinity = amount, amount, calendar.AffinityNone
	return m, nil
}

// promised refuses keys of other services' forks of Blazar that would change what is promised.
func promised(o Object) error {
	for _, key := range []string{"extra_specs", "ephemeral_gb"} {
		switch value := o[key].(type) {
		case map[string]any:
			if len(value) == 0 {
				continue
			}
		case json.Number:
			if value.String() == "0" {
				continue
			}
		default:
			if nothing(value) {
				continue
			}
		}
		return malformed(key + " (Almanac cannot promise it; leave it out)")
	}
	return nil
}

// hosts reads a reservation of whole hosts. Min and max must be there, though the dashboard leaves
// them blank, which means 1.
func (r Reader) hosts(o Object, m *reservation.MemberRequest) (err error) {
	for _, key := range []string{"min", "max"} {
		if _, sent := o[key]; !sent {
			return missing(key)
		}
	}
	least, err := o.numberOr("min", 1)
	if err != nil {
		return err
	}
	if m.Min, m.Max, err = bounds(o, least, max(least, 1)); err != nil {
		return err
	}
	if m.EndAction, err = r.endAction(o); err != nil {
		return err
	}
	if m.HypervisorProperties, err = o.written("hypervisor_properties"); err != nil {
		return err
	}
	return r.filtered(o, m, m.HypervisorProperties)
}

// filtered reads resource_properties, and sets the filter of it and of what else the hosts must
// match.
func (r Reader) filtered(o Object, m *reservation.MemberRequest, also ...string) (err error) {
	if m.ResourceProperties, err = o.written("resource_properties"); err != nil {
		return err
	}
	m.HostProperties, err = queries{r.Hosts, r.SeesHidden}.filter(append(also, m.ResourceProperties)...)
	return err
}

// bounds returns min and max of a request, with defaults for those that it does not have.
func bounds(o Object, least, most int) (lower, upper int, err error) {
	if lower, err = o.numberOr("min", least); err != nil {
		return 0, 0, err
	}
	if upper, err = o.numberOr("max", most); err != nil {
		return 0, 0, err
	}
	if lower < 1 || upper < 1 {
		return 0, 0, malformed("min and max (must be greater than or equal to 1)")
	}
	if upper < lower {
		return 0, 0, fault.New(fault.Invalid, "Invalid values for min/max of hosts. Max must be equal to or larger than min.")
	}
	return lower, upper, nil
}

// endAction returns what happens to the servers of a reservation before its end.
func (r Reader) endAction(o Object) (string, error) {
	if on, has, err := o.text("on_start"); err != nil || has && on != "" && on != "default" {
		return "", malformed("on_start (must be empty or default)")
	}
	if o["before_end"] == nil {
		return "default", nil
	}
	text, _, err := o.text("before_end")
	switch {
	case err == nil && slices.Contains([]string{"", "default"}, text), text == reservation.EndSnapshot && r.Flavor != nil:
		return text, nil
	case text == reservation.EndSnapshot:
		return "", malformed("before_end (there is no Nova to make snapshots; use default, or leave it out)")
	}
	return "", malformed("before_end")
}

// instances reads a reservation of instances of one size.
func (r Reader) instances(o Object, m *reservation.MemberRequest) error {
	var size [4]int
	var lacking []string
	for i, key := range []string{"vcpus", "memory_mb", "disk_gb", "amount"} {
		n, ok, err := o.number(key)
		switch {
		case err != nil:
			return err
		case !ok:
			lacking = append(lacking, key)
		case n < 0 || n == 0 && key == "amount":
			return malformed(key)
		}
		size[i] = n
	}
	if len(lacking) > 0 {
		return missing(lacking...)
	}
	m.Resources = resource.Vector{VCPUs: int64(size[0]), MemoryMB: int64(size[1]), DiskGB: int64(size[2])}
	if m.Resources.IsZero() {
		return malformed("vcpus (an instance must have some resources)")
	}
	if err := withoutHostKeys(o); err != nil {
		return err
	}
	m.Min, m.Max = size[3], size[3]
	affinity, err := affinity(o)
	if err != nil {
		return err
	}
	m.Affinity = affinity
	return r.filtered(o, m)
}

// withoutHostKeys refuses values of a reservation of instances that only hosts have.
func withoutHostKeys(o Object) error {
	for _, key := range []string{"hypervisor_properties", "before_end", "on_start"} {
		if text, _ := o[key].(string); o.has(key) && text != "[]" && text != "default" {
			return malformed(key + " (only " + Hosts + " has it)")
		}
	}
	return nil
}

// affinity returns whether instances share a host.
func affinity(o Object) (calendar.Affinity, error) {
	same, ok, err := o.truth("affinity")
	switch {
	case err != nil:
		return "", err
	case !ok:
		return calendar.AffinityNone, nil
	case same:
		return calendar.AffinitySame, nil
	}
	return calendar.AffinityDifferent, nil
}
