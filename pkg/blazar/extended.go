// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// This file has what microversion 1.1 adds to the requests for leases. Under 1.0 its keys are
// unknown, and so ignored.

// DryRun reports whether a request asks for an offer only.
func (r Reader) DryRun(o Object) (bool, error) {
	if !r.Extended {
		return false, nil
	}
	yes, _, err := o.truth("dry_run")
	return yes, err
}

// required returns the keys that a new lease must have.
func (r Reader) required(o Object) []string {
	if r.Extended && (o.has("duration") || o.has("deadline")) {
		return []string{"name", "start_date", "duration"}
	}
	return []string{"name", "start_date", "end_date"}
}

// extension is the times that only microversion 1.1 has.
type extension struct {
	duration int64         // 0 if there is none
	deadline *span.Instant // nil if there is none
}

// extended returns the times that a request has beside those of Blazar.
func (r Reader) extended(o Object) (e extension, err error) {
	if !r.Extended {
		return e, nil
	}
	if e.duration, err = o.seconds("duration"); err != nil {
		return e, err
	}
	deadline, has, err := r.instant(o, "deadline")
	if err != nil || !has && e.duration == 0 {
		return e, err
	}
	if has {
		e.deadline = &deadline
	}
	switch {
	case o.has("end_date"):
		err = malformed("end_date (the end follows from duration and deadline; leave it out)")
	case has && o.has("before_end_date"):
		err = malformed("before_end_date (the end is not known before the start is found; leave it out)")
	}
	return e, err
}

// window returns the start and the end of a new lease, and the seconds that it lasts in between if it
// has a deadline, which is then the end.
func (r Reader) window(o Object) (w span.Span, seconds int64, err error) {
	e, err := r.extended(o)
	if err != nil {
		return w, 0, err
	}
	if w.Start, _, err = r.instant(o, "start_date"); err != nil {
		return w, 0, err
	}
	switch {
	case e.deadline != nil:
		w.End, seconds = *e.deadline, e.duration
	case e.duration != 0:
		w.End = w.Start.Add(e.duration)
	default:
		w.End, _, err = r.instant(o, "end_date")
	}
	if err != nil {
		return w, 0, err
	}
	return w, seconds, r.checkTimes(w)
}

// last returns the last span of a lease in a window: the whole window, or its last seconds.
func last(w span.Span, seconds int64) span.Span {
	if seconds == 0 {
		return w
	}
	return span.Span{Start: max(w.Start, w.End.Add(-seconds)), End: w.End}
}

// onEnd returns what happens to the servers at the end of a lease; nil if the request does not say it.
func (r Reader) onEnd(o Object) (*reservation.OnEnd, error) {
	if !r.Extended || !o.has("on_end") {
		return nil, nil
	}
	text, _, err := o.text("on_end")
	if err != nil {
		return nil, err
	}
	chosen := reservation.OnEnd(text)
	if !slices.Contains(reservation.OnEnds, chosen) {
		return nil, malformed("on_end (must be " + strings.Join(fault.Texts(reservation.OnEnds), ", ") + ")")
	}
	return &chosen, nil
}

// extend adds to the change of a lease what only microversion 1.1 has.
func (r Reader) extend(o Object, c *reservation.LeaseChange) error {
	e, err := r.extended(o)
	if err != nil {
		return err
	}
	c.Duration, c.Deadline = e.duration, e.deadline
	c.OnEnd, err = r.onEnd(o)
	return err
}

// seconds returns a duration in the form of span.ParseDuration; 0 if there is none.
func (o Object) seconds(key string) (int64, error) {
	if !o.has(key) {
		return 0, nil
	}
	text := fmt.Sprint(o[key])
	if number, is := o[key].(json.Number); is {
		text = resource.Whole(number.String())
	}
	n, err := span.ParseDuration(text)
	if err != nil || n < 1 || n > largest {
		return 0, malformed(key + ` (must be whole seconds, or a text such as "2h30m" or "3d")`)
	}
	return n, nil
}
