// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// checked counts what was looked at.
type checked struct{ booked, repeated, moved, undone, tips, pictures, offers int }

// press is what the form showed when its button was pressed.
type press struct {
	Mode, ID             string
	Again, Offered, UTC  bool
	Offer                map[string]any // the body of the request whose offer the form had
	Name, Quantity, When string
	Start, End           string // as 2026-12-01T09:30, in the zone of the page
	Only                 string // the hosts of the drag, if only these are wanted
}

// claim is a claim that the page shows, with whether it is the project's own, its id, its name and its status.
type claim struct {
	Host     string
	From, To int64 // in milliseconds
	Rest     [4]string
}

// shownPage is what the page shows.
type shownPage struct {
	Claims  []claim
	Known   []int64
	Resting string // what the page still waits for
	Form    *struct {
		Mode, ID                 string
		Offered, Refused, Unsure bool
		Body                     map[string]any
	}
}

func (q *sequence) seen() shownPage {
	q.t.Helper()
	return labtest.Evaluate[shownPage](q.p.Browser, `watch.seen()`)
}

// look reads what the page has noted of itself, and compares the claims that it shows with those that the service has had.
func (q *sequence) look() {
	q.t.Helper()
	noted := labtest.Evaluate[struct {
		Wrong, Troubles        []string
		Pressed                []press
		Undone, Tips, Pictures int
		Told                   [][2]string
		Seen                   shownPage
	}](q.p.Browser, `watch.take()`)
	q.pressed, q.told, q.undos = append(q.pressed, noted.Pressed...), append(q.told, noted.Told...), q.undos+noted.Undone
	q.tips, q.pictures = q.tips+noted.Tips, q.pictures+noted.Pictures
	if len(noted.Wrong)+len(noted.Troubles) > 0 {
		q.t.Errorf("the page: %q; its troubles: %q", noted.Wrong, noted.Troubles)
	}
	for _, one := range noted.Seen.Claims {
		if !q.hadOnce(one) && !labtest.Poll(built.Patience, 20*time.Millisecond, func() bool { return q.nothingIsUnderWay() }) || !q.hadOnce(one) && !q.hasNow(one) {
			q.t.Errorf("the page shows a claim that the service never had: %+v", one)
		}
	}
}

// nothingIsUnderWay reports whether the service has answered every change of the page.
func (q *sequence) nothingIsUnderWay() bool {
	_, _, settled := q.network.happened()
	return settled
}

func (q *sequence) hadOnce(one claim) bool {
	if one.Rest[1] == "" {
		return q.others[fmt.Sprint(one.Host, one.From, one.To)]
	}
	changes, _, _ := q.network.happened()
	return q.ever[fmt.Sprint(one.Rest[1], one.From, one.To)] || slices.ContainsFunc(changes, func(c change) bool {
		return c.id == one.Rest[1] && c.start.UnixMilli() == one.From && c.end.UnixMilli() == one.To
	})
}

// hasNow reports whether the service has a claim that no answer to a change has told: one that has ended early.
func (q *sequence) hasNow(one claim) bool {
	return slices.Contains(q.claims(one.From, one.To), one)
}

// claims returns the claims that the service has in a time, sorted.
func (q *sequence) claims(from, to int64) []claim {
	q.t.Helper()
	whole, err := q.api.Calendar(q.t.Context(), client.CalendarQuery{Start: time.UnixMilli(from), End: time.UnixMilli(to)})
	if err != nil {
		q.t.Fatal(err)
	}
	var list []claim
	for _, host := range whole.Hosts {
		for _, one := range host.Claims {
			list = append(list, claim{host.Host, one.Start.UnixMilli(), one.End.UnixMilli(), [4]string{strconv.FormatBool(one.Mine), one.ReservationID, one.Name, one.Status}})
		}
	}
	return sorted(list)
}

func sorted(list []claim) []claim {
	slices.SortFunc(list, func(a, b claim) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return list
}

// comesToRest waits until the page waits for nothing, shows exactly the claims of the service, and its form has the answer
// of the service. Who is not patient presses the button that asks again, and the computer tells the page that it is
// connected.
func (q *sequence) comesToRest(patient bool) {
	q.t.Helper()
	var why string
	if !labtest.Poll(built.Patience, 30*time.Millisecond, func() bool {
		page := q.seen()
		if why = page.Resting; why != "" {
			if !patient {
				labtest.Evaluate[bool](q.p.Browser, `(dispatchEvent(new Event('online')), watch.press('.notice button, #try-again') || true)`)
			}
			return false
		}
		if has := q.claims(page.Known[0], page.Known[1]); !slices.Equal(sorted(page.Claims), has) {
			why = fmt.Sprintf("the page shows\n%v\nand the service has\n%v", page.Claims, has)
			return false
		}
		why = q.formDiffers(page)
		return why == ""
	}) {
		q.t.Errorf("after the trouble the page does not show what the service has: %s", why)
	}
}

// formDiffers asks the service itself for what the form shows an answer to, and says what differs.
func (q *sequence) formDiffers(page shownPage) string {
	form := page.Form
	if form == nil || form.Unsure || form.Offered == form.Refused {
		return ""
	}
	text, err := json.Marshal(form.Body)
	if err != nil {
		q.t.Fatal(err)
	}
	if form.Mode == "change" {
		var body v1.ReservationChange
		if err = json.Unmarshal(text, &body); err == nil {
			_, err = q.api.OfferChange(q.t.Context(), form.ID, body)
		}
	} else {
		var body v1.ReservationRequest
		if err = json.Unmarshal(text, &body); err == nil {
			_, err = q.api.OfferReservation(q.t.Context(), body)
		}
	}
	if refused, ok := errors.AsType[*client.Error](err); form.Offered != (err == nil) && (form.Offered || ok && refused.Status == http.StatusConflict) {
		return fmt.Sprintf("the form shows an offer: %v, and the service says to %s: %v", form.Offered, text, err)
	}
	q.offers++
	return ""
}

// sentAsSeen looks at each change that the page has sent: it is the one whose offer the form showed, one press books
// once, and each undo has told its outcome.
func (q *sequence) sentAsSeen() {
	q.t.Helper()
	changes, _, _ := q.network.happened()
	made, keys, wanted := map[string]bool{}, map[string]int{}, 0
	for _, one := range q.pressed {
		if one.Mode == "book" && !one.Again {
			wanted++
		}
		if !one.Offered && !one.Again {
			q.t.Errorf("the button was there without an offer: %+v", one)
		}
		if one.Again {
			q.repeated++
		}
	}
	for _, one := range changes {
		switch one.method {
		case http.MethodPost:
			q.matches(one)
			keys[one.key]++
			if one.key == "" {
				q.t.Errorf("a booking has no Idempotency-Key: %+v", one)
			}
			if one.status == http.StatusCreated {
				made[one.id] = true
			}
		case http.MethodPatch:
			q.matches(one)
			q.moved++
		}
	}
	for _, times := range keys {
		q.repeated += times - 1
	}
	if q.booked += len(made); len(made) > wanted {
		q.t.Errorf("the button was pressed for %d bookings, and there are %d: %v", wanted, len(made), slices.Collect(maps.Keys(made)))
	}
	if len(keys) > wanted {
		q.t.Errorf("the button was pressed for %d bookings, and they have %d keys: what was sent again may book twice", wanted, len(keys))
	}
	told := 0
	for _, one := range q.told {
		if strings.Contains(one[0], "undone") || strings.Contains(one[1], "bad") {
			told++
		}
	}
	if q.undone += told; told < q.undos {
		q.t.Errorf("an undo was pressed %d times, and the page tells %d outcomes: %q", q.undos, told, q.told)
	}
}

// matches looks for what the form showed when a change was sent.
func (q *sequence) matches(sent change) {
	q.t.Helper()
	var why []string
	for _, one := range slices.Backward(q.pressed) {
		differs := q.differs(sent, one)
		if differs == "" {
			return
		}
		why = append(why, fmt.Sprintf("%+v: %s", one, differs))
	}
	if sent.method == http.MethodPatch && q.undos > 0 {
		return // it takes a change back
	}
	q.t.Errorf("nobody has seen what was sent, %+v; shown was\n%s", sent, strings.Join(why, "\n"))
}

// differs returns what of a change is not as the form showed it.
func (q *sequence) differs(sent change, shown press) string {
	if (sent.method == http.MethodPost) != (shown.Mode == "book") || !strings.HasSuffix(sent.path, shown.ID) {
		return "another form"
	}
	body := maps.Clone(sent.body)
	offer := maps.Clone(shown.Offer)
	if shown.Mode == "book" {
		if body["name"] != shown.Name {
			return "another name"
		}
		if text := shown.Quantity; text != fmt.Sprint(body["quantity"]) {
			return "another quantity"
		}
		delete(body, "name")
		delete(offer, "name")
	}
	if !reflect.DeepEqual(body, offer) {
		return "another offer"
	}
	zone := time.UTC
	if !shown.UTC {
		zone = q.local
	}
	at := func(text string) string {
		instant, err := time.ParseInLocation("2006-01-02T15:04", text[:min(len(text), 16)], zone)
		if err != nil {
			return ""
		}
		return instant.UTC().Format("2006-01-02T15:04")
	}
	minute := func(part string) string { text, _ := body[part].(string); return text[:min(len(text), 16)] }
	if start := minute("start_time"); start != "" && start != at(shown.Start) {
		return "another start than " + at(shown.Start)
	}
	if end := minute("end_time"); end != "" && end != at(shown.End) {
		return "another end than " + at(shown.End)
	}
	if length, ok := body["duration"].(float64); ok && minute("start_time") != "" {
		start, err := time.Parse(time.RFC3339, body["start_time"].(string))
		if end := start.Add(time.Duration(length) * time.Second).UTC().Format("2006-01-02T15:04"); err != nil || end != at(shown.End) {
			return "another length, until " + end
		}
	}
	return ""
}
