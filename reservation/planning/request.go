// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Defaults are the operator's values for what a request omits.
type Defaults struct {
	Policy calendar.Policy
	OnEnd  reservation.OnEnd
	// OnEndChoices are the values that a request may choose for on_end; nil allows all.
	OnEndChoices []reservation.OnEnd
}

// OnEnds returns the values that a request may choose for on_end.
func (d Defaults) OnEnds() []reservation.OnEnd {
	if d.OnEndChoices == nil {
		return reservation.OnEnds
	}
	return d.OnEndChoices
}

// mayEnd returns an error if the operator does not allow this on_end.
func (d Defaults) mayEnd(chosen reservation.OnEnd) error {
	if slices.Contains(d.OnEnds(), chosen) {
		return nil
	}
	return fault.Field("on_end", "%q is not offered on this cloud; choose %s", chosen, strings.Join(fault.Texts(d.OnEnds()), " or "))
}

// request is a parsed request: the terms, the duration in seconds, and the window.
type request struct {
	reservation.Terms
	window   span.Span
	duration int64
	// named contains the hosts of maintenance.
	named map[string]bool
	// immediate is true if the request has no time, so that the reservation starts now, or as soon
	// as sleeping hosts have booted and the image can be on the hosts.
	immediate bool
	hold      int64 // in seconds
}

// what returns what the request is for, in words.
func (a request) what() string {
	if a.Kind == reservation.Instances {
		return "instance"
	}
	return "host"
}

// LongestName is the largest number of characters of the name of a reservation or a lease, and of an image.
const LongestName = 255

const (
	longestDuration = 100 * 366 * 24 * 3600
)

// lastInstant is the latest instant in a request. It is so early that the longest reservation ends
// within the years of RFC 3339.
var lastInstant = span.At(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC))

// parseRequest reads a request at v.Now. It fails with an Invalid fault that names the field.
func parseRequest(req reservation.Request, v View) (request, error) {
	req = begunNow(req, v.Now)
	req = startingWhileItWaits(req)
	now, a := v.Now, request{Terms: req.Terms, duration: req.Duration, immediate: req.Start == 0 && req.End == 0 && req.Hold == 0, hold: req.Hold}
	if err := a.name(req.Hosts, v.Hosts); err != nil {
		return request{}, err
	}
	fill(&a.Terms, v.Defaults)
	if err := cmp.Or(checkTerms(a.Terms), v.Defaults.mayEnd(a.OnEnd), checkLevel(a.Together, v)); err != nil {
		return request{}, err
	}
	if err := checkClasses(a.Resources.Custom, v.Hosts.snapshot.Classes()); err != nil {
		return request{}, err
	}
	a.window = span.Span{Start: req.Start, End: req.End}
	if req.Start == 0 {
		a.window.Start = now
		if req.End == 0 {
			a.window.Start = now.Add(req.Hold)
		}
	}
	switch {
	case req.WaitUntil != 0 && req.WaitUntil <= now:
		return request{}, fault.Field("wait_until", "%v lies in the past; it is now %v", req.WaitUntil, now)
	case req.Duration < 0 || req.Duration > longestDuration:
		return request{}, fault.Field("duration", "must be from one second to 100 years")
	case req.Start > lastInstant:
		return request{}, fault.Field("start_time", "must lie before %v", lastInstant)
	case req.WaitUntil > lastInstant:
		return request{}, fault.Field("wait_until", "must lie before %v", lastInstant)
	case req.End > lastInstant:
		return request{}, fault.Field("end_time", "must lie before %v", lastInstant)
	case req.Start != 0 && req.Start < now:
		return request{}, fault.Field("start_time", "%v lies in the past; it is now %v", req.Start, now)
	case req.End != 0 && req.End <= a.window.Start:
		return request{}, fault.Field("end_time", "%v is not after the start, %v", req.End, a.window.Start)
	case req.End == 0 && req.Duration == 0:
		return request{}, fault.Field("duration", "is required unless end_time is given")
	case req.End == 0:
		a.window.End = a.window.Start.Add(req.Duration)
	case req.Duration == 0:
		a.duration = a.window.Seconds()
	}
	if a.duration > longestDuration {
		return request{}, fault.Field("end_time", "%v is more than 100 years after the start", req.End)
	}
	if a.Notice > 0 && a.duration == a.window.Seconds() {
		return request{}, fault.Field("notice", "is allowed for a window that is longer than the duration; state duration and a later end_time")
	}
	if a.duration > a.window.Seconds() {
		return request{}, fault.Field("duration", "%d s is longer than the window from %v to %v, %d s",
			a.duration, a.window.Start, a.window.End, a.window.Seconds())
	}
	if err := cmp.Or(a.startAfterHold(v), a.checkWait(v, req.WaitUntil)); err != nil {
		return request{}, err
	}
	if req.ShortWarning {
		a.BeforeEnd = min(a.BeforeEnd, a.duration/2)
	}
	return a, nil
}

// begunNow returns the request without a start that means now. If the duration fits only from that
// start to the end, it is the time that is left.
func begunNow(req reservation.Request, now span.Instant) reservation.Request {
	if req.Start == 0 || req.Start >= now || tooLongAgo(req.Start, now) {
		return req
	}
	if left := int64(req.End - now); left > 0 && req.Duration <= int64(req.End-req.Start) {
		req.Duration = min(req.Duration, left)
	}
	req.Start = 0
	return req
}

// fill sets the defaults in terms that have no value, and removes resource classes of amount 0.
func fill(t *reservation.Terms, defaults Defaults) {
	t.Resources = t.Resources.WithoutZeros()
	if t.Kind == "" {
		t.Kind = reservation.Hosts
	}
	if t.Policy == "" {
		t.Policy = defaults.Policy
		if t.Kind == reservation.Instances && t.Policy.ComparesRectangles() || t.Maintenance || rulesOut(*t, t.Policy) {
			t.Policy = calendar.PolicyFirstFit
		}
	}
	if t.OnEnd == "" {
		t.OnEnd = defaults.OnEnd
	}
	if t.Kind == reservation.Instances && t.Affinity == "" {
		t.Affinity = calendar.AffinityNone
	}
}

func checkTerms(t reservation.Terms) error {
	if utf8.RuneCountInString(t.Name) > LongestName {
		return fault.Field("name", "has more than %d characters", LongestName)
	}
	if utf8.RuneCountInString(t.Image) > LongestName {
		return fault.Field("image", "has more than %d characters", LongestName)
	}
	if t.Quantity < 1 {
		return fault.Field("quantity", "must be at least 1, not %d", t.Quantity)
	}
	if t.BeforeEnd < 0 {
		return fault.Field("before_end", "must not be negative")
	}
	switch {
	case t.Notice < 0 || t.Notice > longestDuration:
		return fault.Field("notice", "must be from 0 seconds to 100 years")
	case t.Notice > 0 && t.Maintenance:
		return fault.Field("notice", "is not allowed for maintenance, whose time is fixed")
	case t.Notice > 0 && t.Image != "":
		return fault.Field("notice", "is not allowed with an image, which must be there at a fixed start")
	}
	for _, check := range []error{
		oneOf("kind", t.Kind, reservation.HostKinds),
		oneOf("policy", t.Policy, calendar.Policies),
		oneOf("on_end", t.OnEnd, reservation.OnEnds),
	} {
		if check != nil {
			return check
		}
	}
	if t.Maintenance {
		if err := checkMaintenance(t); err != nil {
			return err
		}
	}
	if err := checkTogether(t); err != nil {
		return err
	}
	if t.Kind == reservation.Hosts {
		return checkHostTerms(t)
	}
	return checkInstanceTerms(t)
}

func checkHostTerms(t reservation.Terms) error {
	if !t.Resources.IsZero() {
		return fault.Field("resources", "is allowed for kind instance only; kind host reserves whole hosts")
	}
	if t.Affinity != "" {
		return fault.Field("affinity", "is allowed for kind instance only")
	}
	return nil
}

func checkInstanceTerms(t reservation.Terms) error {
	r := t.Resources
	if r.VCPUs < 0 || r.MemoryMB < 0 || r.DiskGB < 0 {
		return fault.Field("resources", "must not be negative")
	}
	for class, amount := range r.Custom {
		if amount < 0 {
			return fault.Field("resources."+class, "must not be negative")
		}
	}
	if r.IsZero() {
		return fault.Field("resources", "is required for kind instance: the size of one instance")
	}
	if t.Policy.ComparesRectangles() {
		return fault.Field("policy", "kind instance accepts %s and %s only; %s compares whole free hosts", calendar.PolicyFirstFit, calendar.PolicyCheapest, t.Policy)
	}
	return oneOf("affinity", t.Affinity, []calendar.Affinity{calendar.AffinityNone, calendar.AffinitySame, calendar.AffinityDifferent})
}

// mostClasses is the maximum number of custom resource classes in a request. Each search
// compares all of them, for each claim on each host.
const mostClasses = 32

// checkClasses returns an Invalid fault for custom resource classes that are not in known, the
// classes that hosts have.
func checkClasses(custom map[string]int64, known []string) error {
	const field = "resources.custom"
	if len(custom) > mostClasses {
		return fault.Field(field, "names %d resource classes; at most %d are allowed", len(custom), mostClasses)
	}
	for _, class := range slices.Sorted(maps.Keys(custom)) {
		if !resource.IsCustomClass(class) {
			return fault.Field(field, "%.60q is not a custom resource class: CUSTOM_ and then capitals, digits or _, at most 255 characters", class)
		}
		if _, has := slices.BinarySearch(known, class); !has {
			return fault.Field(field, "no host has resource class %s; %s", class, existing(known))
		}
	}
	return nil
}

// existing returns the names of the resource classes that hosts have, for a sentence.
func existing(classes []string) string {
	if len(classes) == 0 {
		return "the hosts have no custom resource classes"
	}
	return "the hosts have " + strings.Join(shortened(classes), ", ")
}

func oneOf[T ~string](field string, value T, known []T) error {
	if slices.Contains(known, value) {
		return nil
	}
	text := fault.Unknown(field, string(value), known)
	if fault.Nearest(string(value), known) == "" {
		text += "; choose one of " + strings.Join(fault.Texts(known), ", ")
	}
	return fault.Field(field, "%s", text)
}

// tooLongAgo reports whether a start lies too long in the past to mean now.
func tooLongAgo(start, now span.Instant) bool { return start < now.Add(-LatestPast) }
