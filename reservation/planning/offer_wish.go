// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Range is the numbers from Min to Max, both included.
type Range struct{ Min, Max int64 }

// Wish is a request for offers: ranges in place of one quantity and one duration.
type Wish struct {
	// Name is that of the reservation.
	Name     string
	Quantity Range
	Duration Range // seconds
	// Windows are when the reservation may be. Each of its instants is in one of them; windows that touch are one. None
	// means any time from now on. A start of 0 means now, an end of 0 that there is none.
	Windows []span.Span
	// Alternatives are what to reserve, the preferred one first; their quantities and names are ignored. None means
	// any host.
	Alternatives []reservation.Terms
}

// The largest numbers of windows and alternatives of a wish.
const (
	MostOfferWindows      = 8
	MostOfferAlternatives = 4
)

// wish is a parsed Wish. Its windows are sorted and do not touch, and each is as long as the shortest duration.
type wish struct {
	quantity, duration Range
	windows            []span.Span
	alternatives       []request // for the smallest quantity and the shortest duration in the first window
}

// parseWish reads a wish at v.Now. It fails with an Invalid fault that names the field.
func parseWish(asked Wish, v View) (wish, error) {
	w := wish{quantity: asked.Quantity, duration: asked.Duration}
	if err := w.quantity.check("quantity", math.MaxInt32); err != nil {
		return wish{}, err
	}
	if err := w.duration.check("duration", longestDuration); err != nil {
		return wish{}, err
	}
	if err := w.open(asked.Windows, v.Now); err != nil {
		return wish{}, err
	}
	if len(asked.Alternatives) > MostOfferAlternatives {
		return wish{}, fault.Field("alternatives", "has %d entries; at most %d are allowed", len(asked.Alternatives), MostOfferAlternatives)
	}
	if asked.Alternatives == nil {
		asked.Alternatives = []reservation.Terms{{}}
	}
	for i, terms := range asked.Alternatives {
		terms.Name, terms.Quantity = asked.Name, int(w.quantity.Min)
		a, err := parseRequest(reservation.Request{Terms: terms, Start: w.windows[0].Start, End: w.windows[0].End, Duration: w.duration.Min}, v)
		if err != nil {
			return wish{}, OfAlternative(err, i)
		}
		w.alternatives = append(w.alternatives, a)
	}
	return w, nil
}

// check returns an Invalid fault for a range that is empty or not from 1 to most.
func (r Range) check(field string, most int64) error {
	switch {
	case r.Min < 1 || r.Min > most:
		return fault.Field(field+".min", "must be from 1 to %d, not %d", most, r.Min)
	case r.Max < r.Min || r.Max > most:
		return fault.Field(field+".max", "must be from min, %d, to %d, not %d", r.Min, most, r.Max)
	}
	return nil
}

// open sets the windows.
func (w *wish) open(asked []span.Span, now span.Instant) error {
	if len(asked) > MostOfferWindows {
		return fault.Field("windows", "has %d entries; at most %d are allowed", len(asked), MostOfferWindows)
	}
	if len(asked) == 0 {
		asked = []span.Span{{}}
	}
	opened := make([]span.Span, len(asked))
	for i, one := range asked {
		field := fmt.Sprintf("windows[%d]", i)
		if one.Start == 0 {
			one.Start = now
		}
		if one.End == 0 {
			one.End = lastInstant
		}
		switch {
		case tooLongAgo(one.Start, now):
			return fault.Field(field+".start", "%v lies in the past; it is now %v", one.Start, now)
		case one.Start > lastInstant:
			return fault.Field(field+".start", "must lie before %v", lastInstant)
		case one.End > lastInstant:
			return fault.Field(field+".end", "must lie before %v", lastInstant)
		}
		one.Start = max(one.Start, now)
		if one.Empty() {
			return fault.Field(field+".end", "%v is not after the start, %v", one.End, one.Start)
		}
		opened[i] = one
	}
	for _, one := range merged(opened) {
		if one.Seconds() >= w.duration.Min {
			w.windows = append(w.windows, one)
		}
	}
	if len(w.windows) == 0 {
		return fault.Field("windows", "are all shorter than the shortest duration, %d s", w.duration.Min)
	}
	return nil
}

// merged returns the spans in order, those that touch or overlap as one.
func merged(spans []span.Span) (list []span.Span) {
	slices.SortFunc(spans, func(a, b span.Span) int { return int(a.Start - b.Start) })
	for _, s := range spans {
		if last := len(list) - 1; last >= 0 && s.Start <= list[last].End {
			list[last].End = max(list[last].End, s.End)
		} else {
			list = append(list, s)
		}
	}
	return list
}

// OfAlternative returns an error about an alternative, with its index in the field of a fault.
func OfAlternative(err error, index int) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Field == "" || f.Field == "name" {
		return err
	}
	of := *f
	of.Field = fmt.Sprintf("alternatives[%d].%s", index, f.Field)
	if f.Field == "quantity" { // which alternatives do not have
		of.Field = "quantity.min"
	}
	return &of
}
