// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// changePlan plans a change of time or quantity.
type changePlan struct {
	view   View // as it was asked
	search *search
	from   reservation.Reservation
	to     Plan
	kept   []keptClaim
	// all is the search on all hosts, if search is on those with one value.
	all *search
	// refiltered is true if the filter is another one, which the hosts that the reservation has must pass too.
	refiltered bool
}

// keptClaim is the part of a claim on one host that the reservation may keep.
type keptClaim struct {
	host  int
	since span.Instant // the start of the claim
	count int          // slices; 1 for a whole host
}

func newChangePlan(v View, r reservation.Reservation, to Plan) (*changePlan, error) {
	// The past stays as it is; the change concerns now until the end.
	window, asked := span.Span{Start: max(to.Span.Start, v.Now), End: to.Span.End}, v
	v = v.forTerms(to.Terms).changing(&r, window).of(&r)
	parse, refiltered := inventory.ParseStoredFilter, to.Terms.HostProperties != r.HostProperties
	if refiltered {
		parse = inventory.ParseFilter
	}
	filter, err := parse([]byte(to.Terms.HostProperties), v.Hosts.snapshot, v.SeesHidden)
	if err != nil {
		return nil, err
	}
	s := searchBy(v, request{Terms: to.Terms, named: setOf(r.HostNames()), window: window, duration: window.Seconds()}, unshared(filter))
	s.bound.own = AddClaims(span.Count{}, r.Claims, 1)
	_ = s.imaging().stage() // an unknown image does not affect what is already promised
	p := &changePlan{view: asked, search: s, from: r, to: to, refiltered: refiltered}
	p.expectAwake()
	p.findKept()
	p.ruled().hold()
	return p, nil
}

// expectAwake makes the plan assume that sleeping hosts are woken for the claims that they have.
func (p *changePlan) expectAwake() {
	from := p.search.query.AvailableFrom
	for _, claim := range p.from.Claims {
		if host, known := p.search.view.Hosts.numbers[claim.Host]; known && from != nil && from[host] != span.Forever {
			from[host] = min(from[host], claim.Span.Start)
		}
	}
}

// findKept fills in kept: hosts with the owner's instances come first, then hosts in the order
// of their claims. Hosts that a degraded reservation cannot use come last.
func (p *changePlan) findKept() {
	byHost := make(map[int]int)
	for _, claim := range p.from.Claims {
		host, known := p.search.view.Hosts.numbers[claim.Host]
		if !known {
			continue
		}
		since := p.since(claim)
		if n := p.keepable(claim, host, byHost[host]); n > 0 && since < p.to.Span.End {
			p.kept = append(p.kept, keptClaim{host: host, since: since, count: n})
			byHost[host] += n
		}
	}
	slices.SortStableFunc(p.kept, func(a, b keptClaim) int {
		return cmp.Or(compareBool(p.misses(a), p.misses(b)), cmp.Compare(p.instances(b), p.instances(a)))
	})
}

// misses reports whether the host is one that the degraded reservation cannot use now.
func (p *changePlan) misses(k keptClaim) bool {
	h := p.search.view.Hosts.Host(k.host)
	return p.from.Degraded != "" && (h == nil || h.Failure() != "")
}

// since returns the start of a claim that stays. Time in the past that the reservation did not hold
// cannot be claimed now.
func (p *changePlan) since(claim reservation.Claim) span.Instant {
	start := p.to.Span.Start
	if start < p.search.view.Now {
		start = max(start, claim.Span.Start)
	}
	return start
}

// keepable returns how many slices of a claim on host can stay if others slices of the reservation
// stay there too: all for the time that the reservation holds already, and for the rest as many as
// there is room for.
func (p *changePlan) keepable(claim reservation.Claim, host, others int) int {
	if !p.passes(host) || p.reshaped() {
		return 0
	}
	all, w := max(claim.Slices, 1), p.search.request.window
	stays := all
	for _, rest := range []span.Span{
		{Start: w.Start, End: min(claim.Span.Start, w.End)},
		{Start: max(claim.Span.End, w.Start), End: w.End},
	} {
		if !rest.Empty() {
			stays = min(stays, p.room(host, rest, others+all)-others)
		}
	}
	return stays
}

// room returns how many slices fit on the host throughout w, at most limit; for kind host, 1 if the
// host is free. A host in use need not pass the filter again, but must be in the pool.
func (p *changePlan) room(host int, w span.Span, limit int) int {
	v, q := p.search.view, p.search.query
	if h := v.Hosts.Host(host); h == nil || !p.search.request.admits(h) || !p.pinned() && !q.Hosts.Has(host) {
		return 0
	}
	q.Ready, q.Deadline, q.Duration, q.Quantity = w.Start, w.End, w.Seconds(), limit
	q.Hosts = hostset.New(v.Calendar.Hosts())
	q.Hosts.Add(host)
	if p.from.Kind == reservation.Hosts {
		return v.Calendar.FreeAt(q, w.Start).Count()
	}
	rooms := v.Calendar.RoomAt(calendar.SliceQuery{Query: q, Shape: p.from.Resources, Affinity: calendar.AffinityNone}, w.Start)
	if len(rooms) == 0 {
		return 0
	}
	return rooms[0].Slices
}

// instances returns the number of the owner's instances; before the start there are none.
func (p *changePlan) instances(k keptClaim) int {
	if h := p.search.view.Hosts.Host(k.host); h != nil && p.pinned() {
		return h.InstanceCount
	}
	return 0
}

// keepableTotal returns how many hosts or instances can stay on their hosts.
func (p *changePlan) keepableTotal() int {
	sum := 0
	for _, k := range p.kept {
		sum += k.count
	}
	return sum
}

// pinned reports whether claims must stay on their hosts, because the reservation is active.
func (p *changePlan) pinned() bool { return p.from.Status == reservation.Active }

// stuck reports whether, with this quantity, claims that must stay on their hosts cannot.
func (p *changePlan) stuck(quantity int) bool {
	return p.pinned() && p.keepableTotal() < min(quantity, p.from.Quantity)
}

// limits returns the refusal if the change exceeds a limit; otherwise nil.
func (p *changePlan) limits() *reservation.Refusal {
	v, to := p.search.view, p.to
	if text := v.Limits.tooEarly(&p.from, to.Span, v.Now); text != "" {
		return p.search.refusing().refuseLimit(reservation.ExtensionTooEarly, text, 0)
	}
	b, window, quantity := p.search.bound, p.search.request.window, to.Terms.Quantity
	constraint, text := v.Limits.outside(v.Now, to.Span.Start, to.Span.Seconds())
	if constraint == "" {
		constraint, text = v.Limits.tooMuch(v.Held, quantity, window.Seconds())
	}
	if constraint != "" {
		return p.search.refusing().refuseLimit(constraint, text, p.largest())
	}
	if b.keepsAll(quantity, window) {
		return nil
	}
	refusal := p.search.refusing().refuseLimit(reservation.MaxHosts, b.sentence(quantity, window, window.Seconds(), false), p.largest())
	if !p.pinned() {
		refusal.EarliestStart = p.earliest()
	}
	return refusal
}

// promisedEnd returns the PromisedEnd of a reservation whose span becomes changed. Without it, its owner
// could shorten it and then extend it earlier than Limits.ExtensionWindow allows.
func promisedEnd(r *reservation.Reservation, changed span.Span) span.Instant {
	promised := max(r.Span.End, r.PromisedEnd)
	if changed.Start != r.Span.Start || changed.End >= promised {
		return 0
	}
	return promised
}

// claims returns the claims of the changed reservation; false if there is no room for them.
func (p *changePlan) claims() ([]reservation.Claim, bool) {
	quantity := p.to.Terms.Quantity
	if p.stuck(quantity) {
		return nil, false
	}
	if p.from.Kind == reservation.Instances && !p.pinned() && p.keepableTotal() < quantity {
		first := make(map[int]bool)
		for _, k := range p.kept {
			first[k.host] = true
		}
		claims := p.search.placeSlices(p.search.query.Ready, quantity, first)
		return claims, countClaimed(claims) == quantity
	}
	claims := p.keptClaims(quantity)
	claims = append(claims, p.add(quantity-countClaimed(claims))...)
	return claims, countClaimed(claims) == quantity
}

// keptClaims returns the claims that stay, up to quantity, in the order of kept.
func (p *changePlan) keptClaims(quantity int) []reservation.Claim {
	var claims []reservation.Claim
	for i, n := range p.keepShares(quantity) {
		if n == 0 {
			continue
		}
		k := p.kept[i]
		claim := reservation.Claim{Host: p.search.view.Hosts.names[k.host], Span: span.Span{Start: k.since, End: p.to.Span.End}}
		if p.from.Kind == reservation.Instances {
			claim.Slices = n
		}
		claims = append(claims, claim)
	}
	return claims
}

// add returns claims on hosts that the reservation does not hold yet, up to quantity.
func (p *changePlan) add(quantity int) []reservation.Claim {
	if quantity == 0 {
		return nil
	}
	start := p.search.query.Ready
	if p.from.Kind == reservation.Instances {
		return p.addSlices(quantity, start)
	}
	kept := make(map[int]bool)
	for _, k := range p.kept {
		kept[k.host] = true
	}
	if p.search.lying != nil {
		return p.search.ruled().claimsLying(start, quantity, kept)
	}
	return p.search.claimWhole(p.search.choose(quantity, start, kept), p.search.query.Window(start))
}

// addSlices returns claims in addition to the kept ones, as the affinity allows.
func (p *changePlan) addSlices(quantity int, start span.Instant) []reservation.Claim {
	held := make(map[int]int)
	for _, k := range p.kept {
		held[k.host] += k.count
	}
	var rooms []calendar.Room
	for _, room := range p.search.rooms(start, quantity+p.keepableTotal(), nil) {
		if room.Slices -= held[room.Host]; room.Slices > 0 && (p.from.Affinity != calendar.AffinitySame || held[room.Host] > 0) {
			rooms = append(rooms, room)
		}
	}
	if p.search.lying != nil && p.from.Affinity != calendar.AffinitySame {
		return p.search.ruled().fillLying(rooms, quantity, start)
	}
	var claims []reservation.Claim
	for _, room := range rooms {
		if n := min(room.Slices, quantity); n > 0 {
			quantity -= n
			claims = append(claims, p.search.claimSlices(room.Host, n, start))
		}
	}
	return claims
}

// largest returns the largest quantity with which the change would be accepted.
func (p *changePlan) largest() int {
	if p.view.terse {
		return 0
	}
	p = p.lasting(p.search.query.Ready)
	return p.search.ruled().valid(p.ruled().mostOfOptions(p.ruled().options()))
}

// largestAlone is largest for one of the options.
func (p *changePlan) largestAlone() int {
	total, v := p.keepableTotal(), p.search.view
	most := total
	switch {
	case p.stuck(p.from.Quantity):
		if p.checkInstances(p.keptClaims(total)) != nil {
			return 0 // it would release hosts that its instances use
		}
	case p.from.Kind == reservation.Instances && !p.pinned():
		most = max(total, p.search.most(p.search.query))
	default:
		most = total + countClaimed(p.add(mostInstances))
	}
	return p.largestWithImage(min(most, p.search.bound.quantity(p.search.request.window), v.Limits.quantity(v.Held, p.search.request.window.Seconds())))
}

func (p *changePlan) refuse() *reservation.Refusal {
	quantity := p.to.Terms.Quantity
	r := p.search.refusal()
	r.Constraint = reservation.HostsFree
	r.Message = tooFew(&p.from, p.keepableTotal(), quantity, p.to.Span)
	if p.from.Maintenance {
		r.Message = p.search.refusing().promisedAlready(r.Free)
	} else {
		r.LargestQuantity = p.largest()
	}
	stuck, unknown := p.stuck(quantity), len(p.search.filter.Unknown()) > 0
	failing, lost := p.failing()
	if stuck {
		hosts := p.search.view.hostsOf(&p.from)
		for _, name := range failing {
			hosts.Remove(p.search.view.Hosts.numbers[name])
		}
		if quantity > p.from.Quantity {
			hosts.Unite(p.search.query.Hosts)
		}
		r.BlockedBy = p.search.refusing().blocks(p.search.request.window, hosts)
	}
	if !p.fitsUnclaimed() {
		r.BlockedBy = nil
	}
	defer p.ruled().explainLying(r)
	if stuck && !unknown && p.from.Quantity-lost < min(quantity, p.from.Quantity) {
		r.Constraint, r.Message = reservation.HostsMatching, mustStay(failing)
		return r
	}
	if (!stuck || unknown && p.refiltered) && p.never() {
		r.Constraint, r.Message = p.search.refusing().reason(r.Free, true)
		return r
	}
	if !p.pinned() {
		r.EarliestStart = p.earliest()
	}
	return r
}

// earliest returns the earliest start at which the changed reservation would be accepted; 0 if there is
// none. At its present start it keeps what it has, also on hosts that nobody else would get.
func (p *changePlan) earliest() span.Instant {
	if p.view.terse {
		return 0
	}
	earliest, present := p.lasting(span.Forever).search.refusing().earliest(), p.from.Span.Start
	if present <= p.search.request.window.Start || earliest != 0 && earliest <= present {
		return earliest
	}
	if canChange(p.view.lasting(present), p.from, p.to.Terms, span.New(present, p.to.Span.Seconds())) {
		return present
	}
	return earliest
}

// fitsUnclaimed reports whether the change would have room without the claims of others.
func (p *changePlan) fitsUnclaimed() bool {
	v := p.search.view
	v.Calendar = v.Calendar.Unclaimed()
	alone, err := newChangePlan(v, p.from, p.to)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(alone.ruled().options(), func(o *changePlan) bool {
		claims, ok := o.claims()
		return ok && o.ruled().lies(claims)
	})
}

// never reports whether the matching hosts and the kept ones have too little room even without
// other claims.
func (p *changePlan) never() bool {
	hosts, gone := p.search.matching(true), 0
	hosts.Unite(p.search.query.Hosts)
	for _, k := range p.kept {
		if p.search.view.Hosts.Host(k.host) == nil {
			gone += k.count
			continue
		}
		hosts.Add(k.host)
	}
	return p.search.refusing().roomOfEmpty(hosts)+gone < p.to.Terms.Quantity
}

// canChange reports whether the change of terms and times would be accepted.
func canChange(v View, r reservation.Reservation, terms reservation.Terms, w span.Span) bool {
	p, err := newChangePlan(v, r, Plan{Terms: terms, Span: w})
	return err == nil && p.limits() == nil && p.anyPossible()
}

// canEnd reports whether the change of the end would be accepted.
func canEnd(v View, r reservation.Reservation, end span.Instant) bool {
	return canChange(v, r, r.Terms, span.Span{Start: r.Span.Start, End: end})
}

// withImage returns the claims of a change if the image can be there in time; otherwise false. It returns
// others if the image can be on other hosts, since a pending reservation may move. The claims stay as
// they are if the reservation is active, if decisions ignore images, or if the image was late before and
// the change needs it on no other host and not for longer.
func (p *changePlan) withImage(claims []reservation.Claim) ([]reservation.Claim, bool) {
	s := p.search
	if s.staged == nil || p.pinned() || s.staged.allows(p.from.ID, claims, p.to.Span) {
		return claims, true
	}
	had := p.from.HostNames()
	asksMore := p.to.Span.Start < p.from.Span.Start || p.to.Span.End > p.from.Span.End ||
		slices.ContainsFunc(claims, func(c reservation.Claim) bool { return !slices.Contains(had, c.Host) })
	if !asksMore && !s.staged.allows(p.from.ID, p.from.Claims, p.from.Span) {
		return claims, true
	}
	found := s.imaging().tryAt(s.query.Ready)
	return found.claims, found.ok
}

// refuseImage returns the refusal of a change whose image could not be on the hosts of claims in time.
func (p *changePlan) refuseImage(claims []reservation.Claim) *reservation.Refusal {
	why := p.search.staged.explain(p.from.ID, claims, p.to.Span)
	return p.search.imaging().refuseImage(why, p.lasting(p.search.query.Ready).largestWithImage(p.to.Terms.Quantity-1))
}

// lasting is View.lasting for the plan of a change.
func (p *changePlan) lasting(until span.Instant) *changePlan {
	v := p.view.lasting(until)
	if v.later == p.view.later || p.search.query.AvailableFrom == nil && !p.search.filter.Timely() {
		return p
	}
	lasts, err := newChangePlan(v, p.from, p.to)
	if err != nil { // the filter, which was read before
		return p
	}
	return lasts
}

// largestWithImage returns the largest quantity, at most most, with which the change would be accepted.
func (p *changePlan) largestWithImage(most int) int {
	if p.search.staged == nil || p.pinned() {
		return most
	}
	return sort.Search(most, func(less int) bool { return !p.with(less + 1).anyPossible() })
}

// ruledChange is the plan of a change that looks at how the hosts must lie to each other.
type ruledChange struct{ *changePlan }

func (p *changePlan) ruled() ruledChange { return ruledChange{p} }
