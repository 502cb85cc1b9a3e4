// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// sequence is a drawn series of what a user, others and the network do.
type sequence struct {
	*rand.Rand
	t       *testing.T
	p       *page
	s       *built.Service
	network *network
	api     *client.Client
	local   *time.Location // the zone of the browser
	seed    uint64
	log     []string
	forms   int
	ever    map[string]bool // every state that a reservation had: its id and its time
	others  map[string]bool // the claims of another project, which stay as they are
	pressed []press
	undos   int
	told    [][2]string // the messages of the page and their classes
	checked             // what was looked at in all sequences, to see that something was
}

// does is what can happen, each with how often it does among all.
var does = []struct {
	name  string
	often int
	act   func(*sequence)
}{
	{"books", 7, (*sequence).books},
	{"drags", 2, (*sequence).drags},
	{"changes", 4, (*sequence).changesOwn},
	{"edits", 4, (*sequence).edits},
	{"submits", 4, (*sequence).submits},
	{"takes", 1, func(q *sequence) { q.press(".foot .choice", 1) }},
	{"opens", 1, func(q *sequence) { q.press("#book", 1) }},
	{"closes", 1, func(q *sequence) { q.press("#close-form", 1) }},
	{"undoes", 3, (*sequence).undoes},
	{"retries", 1, func(q *sequence) { q.press(".notice button, #try-again", 1) }},
	{"moves", 3, (*sequence).moves},
	{"points", 3, (*sequence).points},
	{"zone", 1, func(q *sequence) { q.script(`watch.choose('#zone', %q)`, []string{"utc", "local"}[q.IntN(2)]) }},
	{"another books", 3, (*sequence).anotherBooks},
	{"another changes", 2, (*sequence).anotherChanges},
	{"trouble", 6, func(q *sequence) { q.troubled(true) }},
	{"no trouble", 2, func(q *sequence) { q.troubled(false) }},
	{"waits", 3, func(q *sequence) { q.script(`watch.quiet(%d)`, 400) }},
	{"loads again", 1, (*sequence).loadsAgain},
}

// act does one thing.
func (q *sequence) act() {
	sum := 0
	for _, one := range does {
		sum += one.often
	}
	drawn := q.IntN(sum)
	for _, one := range does {
		if drawn -= one.often; drawn < 0 {
			q.log = append(q.log, one.name)
			q.home()
			one.act(q)
			return
		}
	}
}

// script runs a script that says whether something was there to do it to.
func (q *sequence) script(format string, values ...any) bool {
	q.t.Helper()
	done := labtest.Evaluate[bool](q.p.Browser, fmt.Sprintf(format, values...))
	if !done {
		q.log[len(q.log)-1] += " (no)"
	}
	return done
}

func (q *sequence) press(selector string, times int) {
	q.script(`watch.press(%q, %d)`, selector, times)
}

// home goes back to the calendar if the user has opened a reservation.
func (q *sequence) home() {
	if labtest.Evaluate[bool](q.p.Browser, `document.querySelector('.picture') !== null`) {
		return
	}
	labtest.Evaluate[bool](q.p.Browser, `(history.back(), true)`)
	q.p.Await(".picture")
}

// loadsAgain reloads the page.
func (q *sequence) loadsAgain() {
	q.look() // at what the page before has noted
	q.p.open("calendar", ".picture")
	q.watched()
}

func (q *sequence) watched() {
	labtest.Evaluate[bool](q.p.Browser, watchScript)
}

// places returns places of the page that a script finds, or nil.
func (q *sequence) places(format string, values ...any) []float64 {
	q.t.Helper()
	found := labtest.Evaluate[[]float64](q.p.Browser, fmt.Sprintf(format, values...))
	if found == nil {
		q.log[len(q.log)-1] += " (no)"
	}
	return found
}

// drags draws over some hosts and some time in view, wherever that is.
func (q *sequence) drags() {
	row, part := q.IntN(10), q.Float64()
	from := q.places(`watch.place(%d, %g)`, row, part)
	to := q.places(`watch.place(%d, %g)`, min(9, row+q.IntN(3)), part+0.03+q.Float64()*0.1)
	if from != nil && to != nil {
		q.p.Drag(from[0], from[1], to[0], to[1])
	}
}

// books draws, gives a name, waits for the answer for a while, and presses the button.
func (q *sequence) books() {
	q.drags()
	q.named()
	q.submits()
}

// submits presses the button, with or without an answer and sometimes twice. After a lost answer it often presses again.
func (q *sequence) submits() {
	labtest.Evaluate[bool](q.p.Browser, fmt.Sprintf(`watch.answered(%d)`, 900*min(1, q.IntN(4))))
	q.press("#confirm", 1+q.IntN(4)/3)
	if q.IntN(4) > 0 && labtest.Evaluate[bool](q.p.Browser, `watch.unsure(600)`) {
		q.press("#confirm", 1)
	}
}

func (q *sequence) named() {
	q.forms++
	q.script(`watch.type('#form-name', %q)`, fmt.Sprintf("run %d.%d", q.seed, q.forms))
}

// changesOwn drags the end, the start or the middle of a reservation, and presses the button.
func (q *sequence) changesOwn() {
	at := q.places(`watch.own(%d)`, q.IntN(100))
	if at == nil {
		return
	}
	from := []float64{at[1] - 2, at[0] + 2, (at[0] + at[1]) / 2}[q.IntN(3)]
	q.p.Drag(from, at[2], from+float64(12+q.IntN(120)-q.IntN(40)), at[2])
	if q.IntN(3) > 0 {
		q.submits()
	}
}

// edits changes a field of the form, and opens it before.
func (q *sequence) edits() {
	if labtest.Evaluate[bool](q.p.Browser, `!document.querySelector('.panel')`) {
		q.press("#book", 1)
	}
	clock := fmt.Sprintf("%02d:%02d", q.IntN(24), 15*q.IntN(4))
	switch q.IntN(6) {
	case 0, 1:
		q.named()
	case 2:
		q.script(`watch.type('#form-quantity', '%d')`, 1+q.IntN(4))
	case 3:
		q.script(`watch.choose('#form-when', %q)`, []string{"now", "at"}[q.IntN(2)])
	case 4:
		q.script(`watch.type('#form-end-clock', %q)`, clock)
	case 5:
		q.script(`watch.type('#form-start-clock', %q)`, clock)
	}
}

// undoes presses Undo in the last message, or in all at once.
func (q *sequence) undoes() {
	if q.IntN(2) == 0 {
		q.press(".toast .undo", 1)
		return
	}
	q.script(`watch.pressAll('.toast .undo')`)
}

// moves shows another time.
func (q *sequence) moves() {
	q.press([]string{".tools .buttons button:first-child", ".tools .buttons button:nth-child(3)", "#today", "[data-range=day]", "[data-range=week]", "[data-range=month]", ".zoom button:first-child", ".zoom button:last-child"}[q.IntN(8)], 1)
	if q.IntN(2) == 0 {
		q.points()
	}
}

// points moves the pointer over the picture.
func (q *sequence) points() {
	if at := q.places(`watch.place(%d, %g)`, q.IntN(11)-1, q.Float64()); at != nil {
		q.p.Point(at[0], at[1])
	}
}

func (q *sequence) troubled(on bool) { q.network.troubled(on) }

// anotherBooks books as another user of the project, on the way without trouble.
func (q *sequence) anotherBooks() {
	begin, lasts, quantity := time.Now().Add(time.Duration(1+q.IntN(140))*time.Hour).Truncate(time.Second), v1.Duration(3600*(1+q.IntN(20))), 1+q.IntN(3)
	q.forms++
	made, err := q.api.CreateReservation(q.t.Context(), v1.ReservationRequest{
		Name: fmt.Sprintf("another %d.%d", q.seed, q.forms), StartTime: &begin, Duration: &lasts, Quantity: &quantity,
	}, client.CreateOptions{})
	if err == nil { // else there is no room
		q.had(made.ID, made.Start, made.End)
	}
}

// anotherChanges cancels or moves a reservation as another user of the project.
func (q *sequence) anotherChanges() {
	all := reservations(q.t, q.s)
	if len(all) == 0 {
		return
	}
	one := all[q.IntN(len(all))]
	if q.IntN(2) == 0 {
		if err := q.api.DeleteReservation(q.t.Context(), one.ID); err != nil {
			q.t.Fatal(err)
		}
		return
	}
	end := one.End.Add(time.Duration(1+q.IntN(3)) * time.Hour)
	if made, err := q.api.ChangeReservation(q.t.Context(), one.ID, v1.ReservationChange{EndTime: &end}); err == nil { // else there is no room
		q.had(made.ID, made.Start, made.End)
	}
}

// had notes a state that a reservation has had.
func (q *sequence) had(id string, start, end time.Time) {
	q.ever[fmt.Sprint(id, start.UnixMilli(), end.UnixMilli())] = true
}

func (q *sequence) String() string {
	_, fates, _ := q.network.happened()
	return fmt.Sprintf("seed %d: %s\nthe network: %s", q.seed, strings.Join(q.log, ", "), strings.Join(fates, ", "))
}
