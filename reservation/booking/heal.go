package booking

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Failed says whether a host has failed, and why, in a sentence such as "its
// nova-compute is down".
type Failed func(host string) (reason string, yes bool)

// Heal gives a reservation other hosts for those that have failed: one that has begun
// or is about to from now on, a pending one for all its time. Where none is free, what
// is promised of the failed host stays so, and Degraded says what is missing; it is
// taken back once all is well. Limits of the project do not count, and what ends or is
// over is left alone. changed is false where there was nothing to do.
func (d *Desk) Heal(ctx context.Context, id string, failed Failed) (r reservation.Reservation, changed bool, err error) {
	return d.heal(ctx, id, failed, false)
}

// Rehome is Heal for a reservation whose start is blocked on hosts that have not failed:
// those that something keeps occupied. Where none is free to take the place of one,
// nothing changes, and the reservation is not degraded.
func (d *Desk) Rehome(ctx context.Context, id string, blocked Failed) (r reservation.Reservation, changed bool, err error) {
	return d.heal(ctx, id, blocked, true)
}

func (d *Desk) heal(ctx context.Context, id string, failed Failed, blocked bool) (r reservation.Reservation, changed bool, err error) {
	r, err = d.modify(ctx, Caller{Admin: true, SeesHidden: true}, id, "store the healed reservation", func(v View, r reservation.Reservation) (reservation.Reservation, reservation.Cause, error) {
		next, cause := r, reservation.Cause{}
		if r.Status != reservation.Ending && r.Span.End > v.Now && (!blocked || r.Status == reservation.Pending || r.Status == reservation.Starting) {
			plan := planHealing(v, r, failed)
			plan.blocked = blocked
			next, cause = healed(r, plan, v.Now)
		}
		changed = next.Version != r.Version
		return next, cause, nil
	})
	switch {
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Conflict): // it is over
		return r, false, nil
	case err != nil:
		return r, false, err
	}
	return r, changed, nil
}

// healing is what becomes of a reservation some of whose hosts have failed.
type healing struct {
	claims []reservation.Claim
	fresh  []string // the hosts that it is given
	// replaced and missing are what it has of failed hosts less than before, and still.
	replaced, missing []loss
	// blocked says that the hosts have not failed and only keep the start waiting.
	blocked bool
	// hopeless says why no other host can be looked for; mostly empty.
	hopeless string
}

// loss is a failed host and what is wrong with it.
type loss struct{ host, reason string }

// planHealing decides what r is given for its failed hosts. The claims of r are in the
// calendar: what is well stays as it is.
func planHealing(v View, r reservation.Reservation, failed Failed) healing {
	var h healing
	var lost []reservation.Claim
	for _, c := range r.Claims {
		if _, yes := failed(c.Host); yes && c.Span.End > v.Now {
			lost = append(lost, c)
		} else {
			h.claims = append(h.claims, c)
		}
	}
	if len(lost) == 0 {
		return h
	}
	fresh, err := substitutes(v, r, countClaimed(lost), failed)
	if err != nil {
		h.hopeless = fault.Of(err).Error()
	}
	missing := without(lost, countClaimed(fresh))
	h.claims = append(append(h.claims, missing...), fresh...)
	h.fresh = hostNames(fresh)
	for _, host := range hostNames(lost) {
		reason, _ := failed(host)
		still := countOn(missing, host)
		if still < countOn(lost, host) {
			h.replaced = append(h.replaced, loss{host, reason})
		}
		if still > 0 {
			h.missing = append(h.missing, loss{host, reason})
		}
	}
	return h
}

// substitutes gives claims for quantity hosts or instances of r, or for as many as
// there is room for, from now or its start on: in the order of a booking, but where
// too few are awake, those that must boot first as well.
func substitutes(v View, r reservation.Reservation, quantity int, failed Failed) ([]reservation.Claim, error) {
	terms, window := r.Terms, span.Span{Start: max(r.Span.Start, v.Now), End: r.Span.End}
	terms.Quantity = quantity
	filter, err := inventory.ParseStoredFilter([]byte(terms.HostProperties), v.roster.snapshot, v.SeesHidden)
	if err != nil {
		return nil, err
	}
	s := searchBy(v, ask{Terms: terms, window: window, duration: window.Seconds()}, filter)
	for number, name := range v.roster.names {
		_, bad := failed(name)
		// Whole hosts of its own are held, so they are not found.
		if own := countOn(r.Claims, name) > 0; bad || own && r.Affinity == calendar.AffinityDifferent {
			s.query.Hosts.Remove(number)
		}
	}
	_ = s.stage() // a host without the image is better than none
	var fresh []reservation.Claim
	for _, q := range []calendar.Query{s.query, s.allAwake()} {
		s.query = q
		found := s.claims(window.Start)
		for _, c := range found {
			s.query.Hosts.Remove(v.roster.numbers[c.Host])
		}
		fresh = append(fresh, found...)
		s.ask.Quantity = quantity - countClaimed(fresh)
	}
	return fresh, nil
}

// without gives claims less the first n hosts or instances of them.
func without(claims []reservation.Claim, n int) (rest []reservation.Claim) {
	for _, c := range claims {
		taken := min(n, max(c.Slices, 1))
		if n -= taken; taken == max(c.Slices, 1) {
			continue
		}
		if c.Slices > 0 {
			c.Slices -= taken
		}
		rest = append(rest, c)
	}
	return rest
}

// healed gives r after h and why it is another than before; without an action where
// it is not.
func healed(r reservation.Reservation, h healing, now span.Instant) (reservation.Reservation, reservation.Cause) {
	// A tenant does not know the hosts of what has not begun, and never what an admin
	// writes about a host; the audit trail does.
	telling, full := h.discreet().words(r.Status == reservation.Active), h.words(true)
	if h.blocked {
		telling.degraded = r.Degraded
	}
	var cause reservation.Cause
	var details []string
	log := slices.Clone(r.Events)
	tell := func(action reservation.Action, t reservation.EventType, detail, audit string) {
		if cause.Action == "" {
			cause.Action = action
		}
		log = append(log, happened(t, now, detail))
		details = append(details, audit)
	}
	if len(h.fresh) > 0 {
		for i := range log { // a start that failed for want of the host need not wait
			log[i].Until = min(log[i].Until, now)
		}
		tell(reservation.Heal, reservation.HealedEvent, telling.healed, full.healed)
	}
	switch {
	case telling.degraded == r.Degraded:
	case telling.degraded != "":
		tell(reservation.Degrade, reservation.DegradedEvent, telling.degraded, full.degraded)
	case len(h.fresh) == 0:
		tell(reservation.Restore, reservation.RestoredEvent, backAgain, backAgain)
	}
	if cause.Action == "" {
		return r, cause
	}
	cause.Detail = strings.Join(details, "; ")
	r.Claims, r.Degraded, r.Events = h.claims, telling.degraded, recent(log)
	r.Updated, r.Version = now, r.Version+1
	return r, cause
}

const backAgain = "all its hosts are well again"

// unusable is all that a tenant is told of what is wrong with a host.
const unusable = "it takes no instances now"

// discreet gives h without the reasons.
func (h healing) discreet() healing {
	for _, list := range []*[]loss{&h.replaced, &h.missing} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].reason = unusable
		}
	}
	return h
}

// words are what is said of a healing.
type words struct{ healed, degraded string }

func (h healing) words(named bool) (w words) {
	if n := len(h.replaced); n > 0 && named {
		w.healed = fmt.Sprintf("%s; instead: %s", eachOf(h.replaced, "was replaced"), strings.Join(shortened(h.fresh), ", "))
	} else if n > 0 {
		w.healed = fmt.Sprintf("hosts replaced: %d", n)
		if h.blocked {
			w.healed += "; they were not free at the start"
		}
	}
	n := len(h.missing)
	switch {
	case n == 0:
		return w
	case named:
		w.degraded = eachOf(h.missing, "is missing")
	default:
		w.degraded = fmt.Sprintf("hosts missing: %d", n)
	}
	switch {
	case h.hopeless != "":
		w.degraded += "; no other can be looked for: " + h.hopeless
	case n == 1:
		w.degraded += "; no free host can take its place"
	default:
		w.degraded += "; there are not enough free hosts to take their places"
	}
	return w
}

// eachOf says what of each host, and why.
func eachOf(losses []loss, what string) string {
	parts := make([]string, len(losses))
	for i, l := range losses {
		parts[i] = fmt.Sprintf("host %s %s since %s", l.host, what, l.reason)
	}
	return strings.Join(shortened(parts), ", ")
}

// mostNamed is how many hosts one sentence names.
const mostNamed = 10

func shortened(list []string) []string {
	if len(list) <= mostNamed {
		return list
	}
	return append(slices.Clone(list[:mostNamed]), fmt.Sprintf("and %d more", len(list)-mostNamed))
}

func hostNames(claims []reservation.Claim) []string {
	return (&reservation.Reservation{Claims: claims}).HostNames()
}

// countOn is the number of hosts or instances that claims have on host.
func countOn(claims []reservation.Claim, host string) int {
	sum := 0
	for _, c := range claims {
		if c.Host == host {
			sum += max(c.Slices, 1)
		}
	}
	return sum
}
