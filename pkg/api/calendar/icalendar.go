// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	ics "github.com/arran4/golang-ical"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// ICalendar writes reservations of a project as events (RFC 5545). The text depends only on the
// reservations, so that a calendar program recognizes changes.
func ICalendar(project string, list []reservation.Reservation, seesHosts func(*reservation.Reservation) bool) string {
	calendar := ics.NewCalendar()
	calendar.SetProductId("-//Almanac//Reservations//EN")
	calendar.SetXWRCalName(printable("Reservations of " + project))
	for i := range list {
		r := &list[i]
		e := calendar.AddEvent(r.ID + "@almanac")
		e.SetDtStampTime(r.Updated.Time()) // without a METHOD it is the time of the last change: section 3.8.7.2
		e.SetModifiedAt(r.Updated.Time())
		e.SetCreatedTime(r.Created.Time())
		e.SetSequence(int(r.Version))
		e.SetStartAt(r.Span.Start.Time())
		e.SetEndAt(r.Span.End.Time())
		e.SetSummary(printable(summary(r)))
		e.SetDescription(printable(description(r, seesHosts(r))))
		e.SetStatus(ics.ObjectStatusConfirmed)
		switch {
		case r.Status == reservation.Failed:
			e.SetStatus(ics.ObjectStatusCancelled)
		case r.HeldUntil() != 0:
			e.SetStatus(ics.ObjectStatusTentative)
		}
		if r.BeforeEnd > 0 && r.BeforeEnd < r.Span.Seconds() {
			alarm := e.AddAlarm()
			alarm.SetAction(ics.ActionDisplay)
			alarm.SetTrigger(fmt.Sprintf("-PT%dS", r.BeforeEnd), &ics.KeyValues{Key: "RELATED", Value: []string{"END"}})
			alarm.SetDescription(printable(summary(r) + " ends soon"))
		}
	}
	return calendar.Serialize(ics.WithNewLineWindows)
}

func summary(r *reservation.Reservation) string {
	if r.Name == "" {
		return "Reservation of " + amount(r)
	}
	return r.Name
}

func amount(r *reservation.Reservation) string {
	return fault.Counted(r.Quantity, string(r.Kind))
}

func description(r *reservation.Reservation, hosts bool) string {
	text := fmt.Sprintf("%s, %s", amount(r), r.Status)
	if names := r.HostNames(); hosts && len(names) > 0 {
		text += "\nHosts: " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
	}
	if r.Degraded != "" {
		text += "\nDegraded: " + r.Degraded
	}
	return text
}

// printable removes the characters that iCalendar forbids: control characters other than the end
// of a line (section 3.1).
func printable(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}
