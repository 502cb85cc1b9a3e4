// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation"
)

// Diff returns the steps that turn actual into desired, in an order in which each can be
// carried out: things are created before they are used, and are no longer used before
// they are deleted; steps that only add come first. It keeps what others have added, such as
// metadata of aggregates and extra specs of flavors that are not Almanac's, and adopted aggregates while their
// reservations have resources. Diff does not
// compare the size of an existing flavor, since Nova cannot change it, and creates no
// flavor without a size, whose hosts are unknown.
func Diff(actual, desired Layout) []Step {
	desired = keepAdopted(actual, desired)
	var d diff
	d.makeAggregates(actual, desired)
	d.hostwise(AddTraits, lacking(desired.Traits, actual.Traits))
	d.rooms(AddRooms, actual, desired, func(is, shall int64) bool { return is < shall })
	d.makeFlavors(actual, desired)
	d.members(AddHost, actual, desired, lacking(members(desired), members(actual)))

	d.deleteFlavors(actual, desired)
	// Placement refuses this while instances use some. So it comes before the host is opened.
	d.rooms(RemoveRooms, actual, desired, func(is, shall int64) bool { return is > shall })
	d.unmark(actual, desired)
	d.members(RemoveHost, actual, desired, lacking(members(actual), members(desired)))
	d.hostwise(RemoveTraits, lacking(actual.Traits, desired.Traits))
	d.deleteAggregates(actual, desired)
	d.deleteNames(DeleteTrait, actual.TraitNames, desired.TraitNames)
	d.deleteNames(DeleteClass, actual.ClassNames, desired.ClassNames)
	return d
}

// For returns the steps that belong to one reservation: those that create or delete its own
// aggregate, traits and flavors, and those that add its hosts to the fence or remove them.
func For(steps []Step, r *reservation.Reservation) (own []Step) {
	hosts := r.HostNames()
	for _, s := range steps {
		if s.Reservation == r.ID || s.Reservation == "" && (slices.Contains(hosts, s.Host) || s.Host == "" && s.Adds()) {
			own = append(own, s)
		}
	}
	return own
}

// Whose returns the id of the reservation to which the trait or resource class belongs.
// Ids are UUIDs in lower case.
func Whose(name string) (reservation string, ok bool) {
	id, ok := strings.CutPrefix(name, ReservationPrefix)
	if !ok {
		return "", false
	}
	return strings.ToLower(strings.ReplaceAll(id, "_", "-")), true
}

// diff collects steps.
type diff []Step

// makeAggregates adds the steps that create missing aggregates and correct their metadata.
func (d *diff) makeAggregates(actual, desired Layout) {
	for _, name := range sorted(desired.Aggregates) {
		want := desired.Aggregates[name]
		have, there := actual.Aggregates[name]
		if !there {
			reason := fmt.Sprintf("there is no aggregate %s", name)
			d.add(Step{Action: CreateAggregate, Reservation: owner(want), Aggregate: bare(want, want.Metadata), Reason: reason})
			continue
		}
		wrong := differing(want.Metadata, have.Metadata)
		if len(wrong) > 0 {
			reason := fmt.Sprintf("the metadata of aggregate %s is not %s", name, pairs(wrong))
			d.add(Step{Action: MarkAggregate, Reservation: owner(want), Aggregate: bare(have, wrong), Reason: reason})
		}
	}
}

// unmark deletes surplus metadata of Almanac from aggregates that stay.
func (d *diff) unmark(actual, desired Layout) {
	for _, name := range sorted(desired.Aggregates) {
		want, have := desired.Aggregates[name], actual.Aggregates[name]
		surplus := map[string]string{}
		for key, value := range have.Metadata {
			if _, wanted := want.Metadata[key]; !wanted && ours(key) {
				surplus[key] = value
			}
		}
		if len(surplus) > 0 {
			reason := fmt.Sprintf("aggregate %s has metadata that it should not have: %s", name, pairs(surplus))
			d.add(Step{Action: UnmarkAggregate, Reservation: owner(want), Aggregate: bare(have, surplus), Reason: reason})
		}
	}
}

func ours(key string) bool {
	return key == inventory.ReservationMark || key == ProjectMark || strings.HasPrefix(key, required(OwnPrefix))
}

// deleteAggregates adds the steps that delete aggregates which nothing needs.
func (d *diff) deleteAggregates(actual, desired Layout) {
	for _, name := range sorted(actual.Aggregates) {
		if _, wanted := desired.Aggregates[name]; !wanted {
			have := actual.Aggregates[name]
			reason := fmt.Sprintf("nothing needs aggregate %s any more", name)
			var metadata map[string]string
			if IsAdopted(have) { // it names what else goes
				metadata = have.Metadata
			}
			d.add(Step{Action: DeleteAggregate, Reservation: owner(have), Aggregate: bare(have, metadata), Reason: reason})
		}
	}
}

// members adds the steps for the hosts, by aggregate name, that join or leave.
func (d *diff) members(action Action, actual, desired Layout, hosts map[string][]string) {
	reason := "host %s is not in aggregate %s"
	if action == RemoveHost {
		reason = "host %s should not be in aggregate %s"
	}
	for _, name := range sorted(hosts) {
		a, there := actual.Aggregates[name]
		if !there {
			a = desired.Aggregates[name]
		}
		for _, host := range hosts[name] {
			d.add(Step{Action: action, Reservation: owner(a), Aggregate: bare(a, nil), Host: host, Reason: fmt.Sprintf(reason, host, name)})
		}
	}
}

// hostwise adds one step for each host and reservation whose traits are missing or superfluous.
func (d *diff) hostwise(action Action, traits map[string][]string) {
	reason := "host %s lacks %s"
	if action == RemoveTraits {
		reason = "host %s should not have %s"
	}
	for _, host := range sorted(traits) {
		byOwner := map[string][]string{}
		for _, trait := range traits[host] {
			id, _ := Whose(trait)
			byOwner[id] = append(byOwner[id], trait)
		}
		for _, id := range sorted(byOwner) {
			d.add(Step{Action: action, Reservation: id, Host: host, Traits: byOwner[id], Reason: fmt.Sprintf(reason, host, strings.Join(byOwner[id], ", "))})
		}
	}
}

// rooms adds one step for each host and class with a wrong number of units.
func (d *diff) rooms(action Action, actual, desired Layout, wrong func(is, shall int64) bool) {
	for _, host := range sorted(union(actual.Rooms, desired.Rooms)) {
		for _, class := range sorted(union(actual.Rooms[host], desired.Rooms[host])) {
			is, shall := actual.Rooms[host][class], desired.Rooms[host][class]
			if !wrong(is, shall) {
				continue
			}
			id, _ := Whose(class)
			d.add(Step{
				Action: action, Reservation: id, Host: host, Rooms: map[string]int64{class: shall},
				Reason: fmt.Sprintf("host %s should have %d of %s, and has %d", host, shall, class, is),
			})
		}
	}
}

// makeFlavors adds the steps that create missing flavors, correct their extra specs and open them.
func (d *diff) makeFlavors(actual, desired Layout) {
	for _, id := range sorted(desired.Flavors) {
		want := desired.Flavors[id]
		have, there := actual.Flavors[id]
		wrong := differing(want.ExtraSpecs, have.ExtraSpecs)
		switch {
		case !there && want.Resources.IsZero():
		case !there:
			d.add(Step{Action: CreateFlavor, Reservation: flavorOwner(want), Flavor: want, Reason: fmt.Sprintf("there is no flavor %s", want.Name)})
		case len(wrong) > 0:
			have.ExtraSpecs = wrong
			reason := fmt.Sprintf("the extra specs of flavor %s are not %s", want.Name, pairs(wrong))
			d.add(Step{Action: MarkFlavor, Reservation: flavorOwner(want), Flavor: have, Reason: reason})
		}
	}
	for _, id := range sorted(desired.Flavors) {
		want, have := desired.Flavors[id], actual.Flavors[id]
		if _, closed := have.ExtraSpecs[required(Closed)]; closed && want.ExtraSpecs[required(Closed)] == "" {
			d.add(Step{Action: OpenFlavor, Reservation: flavorOwner(want), Flavor: have, Reason: fmt.Sprintf("flavor %s is closed", want.Name)})
		}
	}
}

func (d *diff) deleteFlavors(actual, desired Layout) {
	for _, id := range sorted(actual.Flavors) {
		if _, wanted := desired.Flavors[id]; !wanted {
			have := actual.Flavors[id]
			d.add(Step{Action: DeleteFlavor, Reservation: flavorOwner(have), Flavor: have, Reason: fmt.Sprintf("nothing needs flavor %s any more", have.Name)})
		}
	}
}

func (d *diff) deleteNames(action Action, actual, desired []string) {
	for _, name := range without(actual, desired) {
		id, _ := Whose(name)
		d.add(Step{Action: action, Reservation: id, Name: name, Reason: fmt.Sprintf("nothing needs %s any more", name)})
	}
}

func (d *diff) add(s Step) { *d = append(*d, s) }

// owner returns the reservation of an aggregate. It reads the name first: an admin may
// change metadata by mistake.
func owner(a inventory.Aggregate) string {
	if id, ok := strings.CutPrefix(a.Name, AggregatePrefix); ok {
		return id
	}
	if id := a.Metadata[MirrorMark]; id != FreeHosts && id == a.Name {
		return id
	}
	return a.Metadata[inventory.ReservationMark]
}

// flavorOwner returns the id of the reservation that the flavor belongs to.
func flavorOwner(f inventory.Flavor) string {
	if id, ok := strings.CutPrefix(f.Name, FlavorPrefix); ok {
		id, _, _ = strings.Cut(id, ":")
		return id
	}
	return f.ExtraSpecs[inventory.ReservationMark]
}

// bare returns the aggregate with only what a step needs.
func bare(a inventory.Aggregate, metadata map[string]string) inventory.Aggregate {
	return inventory.Aggregate{ID: a.ID, UUID: a.UUID, Name: a.Name, Metadata: metadata}
}

// Summary returns what the step does in a few words.
func (s *Step) Summary() string {
	switch s.Action {
	case CreateAggregate, DeleteAggregate:
		return fmt.Sprintf("%s %s", s.Action, s.Aggregate.Name)
	case MarkAggregate, UnmarkAggregate:
		return fmt.Sprintf("%s of aggregate %s: %s", s.Action, s.Aggregate.Name, pairs(s.Aggregate.Metadata))
	case CreateFlavor, OpenFlavor, DeleteFlavor:
		return fmt.Sprintf("%s %s", s.Action, s.Flavor.Name)
	case MarkFlavor, UnmarkFlavor:
		return fmt.Sprintf("%s of flavor %s: %s", s.Action, s.Flavor.Name, pairs(s.Flavor.ExtraSpecs))
	case AddHost:
		return fmt.Sprintf("add host %s to aggregate %s", s.Host, s.Aggregate.Name)
	case RemoveHost:
		return fmt.Sprintf("remove host %s from aggregate %s", s.Host, s.Aggregate.Name)
	case AddTraits:
		return fmt.Sprintf("add %s to host %s", strings.Join(s.Traits, ", "), s.Host)
	case RemoveTraits:
		return fmt.Sprintf("remove %s from host %s", strings.Join(s.Traits, ", "), s.Host)
	case AddRooms, RemoveRooms:
		var classes []string
		for _, class := range sorted(s.Rooms) {
			classes = append(classes, fmt.Sprintf("%d of %s", s.Rooms[class], class))
		}
		return fmt.Sprintf("leave %s on host %s", strings.Join(classes, ", "), s.Host)
	default:
		return fmt.Sprintf("%s %s", s.Action, s.Name)
	}
}
