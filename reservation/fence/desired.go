// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Desired returns the layout that keeps the promises of the live reservations at now.
//
// A host is in the fence from Rules.Ahead before the first claim on it until its last
// claim is over, and with Rules.Pool also as long as it is in the pool. A reservation has its aggregate, its trait or resource class and its
// flavors from Rules.Prepare before its start for as long as it is live. A host serves one
// reservation of hosts at a time: while an earlier claim lasts, the host does not join the
// next reservation's aggregate, whose trait would keep the earlier owner off. A claim lasts
// beyond its end while the end of its reservation is carried out.
//
// Hosts that are not in the snapshot are left out. Failed hosts are included, since
// instances may still be on them.
func Desired(live []reservation.Reservation, hosts *inventory.Snapshot, now span.Instant, rules Rules) Layout {
	p := plan{hosts: hosts, now: now, rules: rules, layout: Layout{
		Aggregates: map[string]inventory.Aggregate{},
		Traits:     map[string][]string{},
		Rooms:      map[string]map[string]int64{},
		Flavors:    map[string]inventory.Flavor{},
		Live:       map[string]bool{},
	}, traits: map[string]map[string]bool{}}
	p.readClaims(live)
	p.fence()
	for i := range live {
		r := &live[i]
		p.layout.Live[r.ID] = r.Status.Live()
		if r.Kind != reservation.Addresses && r.Status.Promised() && p.begun(r, rules.Prepare) {
			p.prepare(r)
		}
	}
	if rules.Mirror != "" {
		p.mirror(live)
	}
	for host, traits := range p.traits {
		p.layout.Traits[host] = sorted(traits)
	}
	p.layout.TraitNames, p.layout.ClassNames = p.layout.named()
	return p.layout
}

// plan builds a layout.
type plan struct {
	hosts  *inventory.Snapshot
	now    span.Instant
	rules  Rules
	layout Layout
	traits map[string]map[string]bool // by host
	claims map[string][]openClaim     // by host, in order of their start
	fenced map[string]bool            // by host
}

// openClaim is a claim that is not over.
type openClaim struct {
	r     *reservation.Reservation
	claim reservation.Claim
}

// readClaims gathers the claims of live reservations that are not over, by host and start.
func (p *plan) readClaims(live []reservation.Reservation) {
	p.claims = map[string][]openClaim{}
	for i := range live {
		r := &live[i]
		for _, c := range r.Claims {
			if _, there := p.hosts.Index(c.Host); there && r.Status.Promised() && !r.Over(c, p.now) {
				p.claims[c.Host] = append(p.claims[c.Host], openClaim{r, c})
			}
		}
	}
	for _, claims := range p.claims {
		slices.SortStableFunc(claims, func(a, b openClaim) int {
			return cmp.Or(cmp.Compare(a.claim.Span.Start, b.claim.Span.Start), cmp.Compare(a.r.ID, b.r.ID))
		})
	}
}

// begun reports whether the reservation has started or starts within that many seconds.
func (p *plan) begun(r *reservation.Reservation, seconds int64) bool {
	return r.Status != reservation.Pending || p.within(r.Span.Start, seconds)
}

func (p *plan) within(start span.Instant, seconds int64) bool { return p.now.Add(seconds) >= start }

// fence adds the aggregate and the trait that keep others off reserved hosts, or off all hosts of the
// pool.
func (p *plan) fence() {
	p.fenced = map[string]bool{}
	for host, claims := range p.claims {
		if slices.ContainsFunc(claims, func(t openClaim) bool {
			return t.r.Status != reservation.Pending || p.within(t.claim.Span.Start, p.rules.Ahead)
		}) {
			p.fenced[host] = true
			p.trait(host, Reserved)
		}
	}
	for _, h := range p.hosts.Hosts() {
		if p.rules.Pool && h.Reservable {
			p.fenced[h.Name] = true
			p.trait(h.Name, Reserved)
		}
	}
	p.layout.Aggregates[Aggregate] = inventory.Aggregate{
		Name: Aggregate, Metadata: map[string]string{required(Reserved): "required"}, Hosts: sorted(p.fenced),
	}
}

func (p *plan) trait(host, name string) {
	if p.traits[host] == nil {
		p.traits[host] = map[string]bool{}
	}
	p.traits[host][name] = true
}

// prepare adds the reservation's own aggregate, traits, rooms and flavors.
func (p *plan) prepare(r *reservation.Reservation) {
	own, aggregate := OwnName(r.ID), AggregatePrefix+r.ID
	metadata := map[string]string{
		inventory.ReservationMark: r.ID, ProjectMark: r.ProjectID, required(Reserved): "required",
	}
	joined := map[string]bool{}
	mine := func(t openClaim) bool { return t.r.ID == r.ID }
	for _, host := range r.HostNames() {
		claims := p.claims[host]
		if !slices.ContainsFunc(claims, mine) {
			continue
		}
		if p.fenced[host] && p.mayJoin(r, claims) {
			joined[host] = true
		}
		if r.Kind == reservation.Hosts {
			p.trait(host, own)
			continue
		}
		p.trait(host, Shared)
		if p.layout.Rooms[host] == nil {
			p.layout.Rooms[host] = map[string]int64{}
		}
		p.layout.Rooms[host][own] = rooms(claims, mine)
	}
	if r.Kind == reservation.Hosts {
		metadata[required(own)] = "required"
		p.hostFlavors(r)
	} else {
		metadata[required(Shared)], metadata[PoolKey] = "required", r.ID
		p.instanceFlavor(r)
	}
	p.layout.Aggregates[aggregate] = inventory.Aggregate{Name: aggregate, Metadata: metadata, Hosts: sorted(joined)}
}

// mirror adds the mirrors. A reservation has one from when it is active, since its owner cannot use
// its hosts before.
func (p *plan) mirror(live []reservation.Reservation) {
	taken := map[string]bool{}
	for i := range live {
		r := &live[i]
		if r.Kind != reservation.Hosts || r.Status != reservation.Active && r.Status != reservation.Ending {
			continue
		}
		hosts := p.layout.Aggregates[AggregatePrefix+r.ID].Hosts
		for _, host := range hosts {
			taken[host] = true
		}
		p.layout.Aggregates[r.ID] = inventory.Aggregate{
			Name: r.ID, Metadata: map[string]string{MirrorMark: r.ID, OwnerKey: r.ProjectID}, Hosts: hosts,
		}
	}
	free := map[string]bool{}
	for _, h := range p.hosts.Hosts() {
		if h.Reservable && !taken[h.Name] {
			free[h.Name] = true
		}
	}
	p.layout.Aggregates[p.rules.Mirror] = inventory.Aggregate{
		Name: p.rules.Mirror, Metadata: map[string]string{MirrorMark: FreeHosts}, Hosts: sorted(free),
	}
}

// mayJoin reports whether no earlier claim excludes the reservation from the host. Reservations of
// kind instance share a host; a reservation of kind host has it alone.
func (p *plan) mayJoin(r *reservation.Reservation, claims []openClaim) bool {
	for _, t := range claims {
		if t.r.ID == r.ID {
			return true
		}
		if t.r.Kind == reservation.Hosts || r.Kind == reservation.Hosts {
			return false
		}
	}
	return false
}

// rooms returns the largest number of slices that the reservation's claims on the host hold at one
// instant.
func rooms(claims []openClaim, mine func(openClaim) bool) (most int64) {
	for _, at := range claims {
		sum := int64(0)
		for _, t := range claims {
			if mine(t) && t.claim.Span.Contains(at.claim.Span.Start) {
				sum += int64(t.claim.Slices)
			}
		}
		most = max(most, sum)
	}
	return most
}

// required returns the key, in extra specs or aggregate metadata, of a required trait.
func required(trait string) string { return "trait:" + trait }
