package fence

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Desired gives the layout that keeps the promises of the live reservations at now.
//
// A host is in the fence from Rules.Ahead before the first claim on it until its last
// claim is over. From Rules.Prepare before its start a reservation has its aggregate,
// its trait or resource class and its flavors, until it is no longer live. One host
// serves one reservation of hosts at a time: while an earlier claim lasts it does not
// join the next one's aggregate, whose trait would keep the owner of the earlier claim
// off it. A claim lasts beyond its end while its reservation's end is being carried out.
//
// Hosts that are not in the snapshot are in nothing; those in trouble are, since
// their instances still are.
func Desired(live []reservation.Reservation, hosts *inventory.Snapshot, now span.Instant, rules Rules) Layout {
	p := plan{hosts: hosts, now: now, rules: rules, layout: Layout{
		Aggregates: map[string]inventory.Aggregate{},
		Traits:     map[string][]string{},
		Rooms:      map[string]map[string]int64{},
		Flavors:    map[string]inventory.Flavor{},
	}, traits: map[string]map[string]bool{}}
	p.readClaims(live)
	p.fence()
	for i := range live {
		if r := &live[i]; r.Status.Live() && p.begun(r, rules.Prepare) {
			p.prepare(r)
		}
	}
	for host, traits := range p.traits {
		p.layout.Traits[host] = sorted(traits)
	}
	p.layout.TraitNames, p.layout.ClassNames = p.layout.named()
	return p.layout
}

// plan is a layout while it is made.
type plan struct {
	hosts  *inventory.Snapshot
	now    span.Instant
	rules  Rules
	layout Layout
	traits map[string]map[string]bool // by host
	turns  map[string][]turn          // by host, in their order
	fenced map[string]bool            // hosts
}

// turn is a claim that is not over yet.
type turn struct {
	r     *reservation.Reservation
	claim reservation.Claim
}

func (p *plan) readClaims(live []reservation.Reservation) {
	p.turns = map[string][]turn{}
	for i := range live {
		r := &live[i]
		for _, c := range r.Claims {
			if _, there := p.hosts.Index(c.Host); there && r.Status.Live() && !p.over(r, c) {
				p.turns[c.Host] = append(p.turns[c.Host], turn{r, c})
			}
		}
	}
	for _, turns := range p.turns {
		slices.SortStableFunc(turns, func(a, b turn) int {
			return cmp.Or(cmp.Compare(a.claim.Span.Start, b.claim.Span.Start), cmp.Compare(a.r.ID, b.r.ID))
		})
	}
}

// over says that the claim's time has passed. The claims that last until the end of
// their reservation are not over before the reservation is.
func (p *plan) over(r *reservation.Reservation, c reservation.Claim) bool {
	return c.Span.End <= p.now && c.Span.End < r.Span.End
}

// begun says that the reservation has started, or that its start is no more than
// seconds away.
func (p *plan) begun(r *reservation.Reservation, seconds int64) bool {
	return r.Status != reservation.Pending || p.within(r.Span.Start, seconds)
}

func (p *plan) within(start span.Instant, seconds int64) bool { return p.now.Add(seconds) >= start }

func (p *plan) fence() {
	p.fenced = map[string]bool{}
	for host, turns := range p.turns {
		if slices.ContainsFunc(turns, func(t turn) bool {
			return t.r.Status != reservation.Pending || p.within(t.claim.Span.Start, p.rules.Ahead)
		}) {
			p.fenced[host] = true
			p.trait(host, Reserved)
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

// prepare enters what is the reservation's own.
func (p *plan) prepare(r *reservation.Reservation) {
	own, aggregate := OwnName(r.ID), AggregatePrefix+r.ID
	metadata := map[string]string{
		inventory.ReservationMark: r.ID, ProjectMark: r.ProjectID, required(Reserved): "required",
	}
	joined := map[string]bool{}
	mine := func(t turn) bool { return t.r.ID == r.ID }
	for _, host := range r.HostNames() {
		turns := p.turns[host]
		if !slices.ContainsFunc(turns, mine) {
			continue
		}
		if p.fenced[host] && p.itsTurn(r, turns) {
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
		p.layout.Rooms[host][own] = rooms(turns, mine)
	}
	if r.Kind == reservation.Hosts {
		metadata[required(own)] = "required"
		p.hostFlavors(r)
	} else {
		metadata[required(Shared)] = "required"
		p.instanceFlavor(r)
	}
	p.layout.Aggregates[aggregate] = inventory.Aggregate{Name: aggregate, Metadata: metadata, Hosts: sorted(joined)}
}

// itsTurn says that no claim before the reservation's own excludes it from the host:
// reservations of instances share one, a reservation of hosts has it alone.
func (p *plan) itsTurn(r *reservation.Reservation, turns []turn) bool {
	for _, t := range turns {
		if t.r.ID == r.ID {
			return true
		}
		if t.r.Kind == reservation.Hosts || r.Kind == reservation.Hosts {
			return false
		}
	}
	return false
}

// rooms is the most that the reservation's claims on the host hold at one instant.
func rooms(turns []turn, mine func(turn) bool) (most int64) {
	for _, at := range turns {
		sum := int64(0)
		for _, t := range turns {
			if mine(t) && t.claim.Span.Contains(at.claim.Span.Start) {
				sum += int64(t.claim.Slices)
			}
		}
		most = max(most, sum)
	}
	return most
}

// required is the key of an extra spec or of an aggregate's metadata that stands for
// a required trait.
func required(trait string) string { return "trait:" + trait }
