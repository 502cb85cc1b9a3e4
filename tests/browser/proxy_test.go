// SPDX-License-Identifier: Apache-2.0

package browser

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

//go:embed testdata/watch.js
var watchScript string

const (
	sequences = 100
	actions   = 10 // of each sequence
)

// drawnFrom returns a number that a variable has, or another one.
func drawnFrom(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return number
}

// The same rules as those of the ten thousand sequences in calendar.model.test.js hold in a browser, against almanacd and
// through a network that delays and drops, and answers 502 and 503. ALMANAC_SEED is the first seed, ALMANAC_SEQUENCES how
// many follow one another.
func TestThroughABadNetworkThePageShowsAndSendsWhatIsTrue(t *testing.T) {
	browser := labtest.StartBrowser(t)
	folder := built.NewFolder(t, built.TenHosts)
	before := built.Start(t, folder, "OS_NOAUTH__PROJECT_ID=physics", "OS_NOAUTH__ROLES=member")
	grant(t, before, []shownWish{
		{name: "of another project", from: 12, hours: 30, quantity: 2},
		{name: "of another project", from: 60, hours: 20, quantity: 3},
		{name: "of another project", from: 200, hours: 90, quantity: 4},
	})
	before.Stop(t)
	s := built.Start(t, folder, "OS_NOAUTH__ROLES=member")
	n := slowNetwork(t, s.URL)
	p := &page{Browser: browser, t: t, url: n.URL}
	p.Look(1440, 900, false)
	local, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	p.Live(local.String(), "en-GB")
	p.calendarOf(10)

	q := &sequence{t: t, p: p, s: s, network: n, api: s.Client(t), local: local, ever: map[string]bool{}, others: map[string]bool{}}
	q.watched()
	q.knowOthers()
	first, count := drawnFrom(t, "ALMANAC_SEED", 1), drawnFrom(t, "ALMANAC_SEQUENCES", sequences)
	begun := time.Now()
	for seed := first; seed < first+count && !t.Failed(); seed++ {
		q.run(uint64(seed))
	}
	t.Logf("from seed %d on, %d sequences in %v: %+v", first, count, time.Since(begun).Round(time.Second), q.checked)
	if !t.Failed() && count >= sequences && (q.booked == 0 || q.repeated == 0 || q.undone == 0 || q.tips == 0 || q.pictures == 0 || q.offers == 0) {
		t.Error("the sequences leave out what they are for")
	}
}

// run draws a sequence, and looks at what must be true after each action and at the end.
func (q *sequence) run(seed uint64) {
	q.seed, q.log, q.forms, q.Rand = seed, []string{"begins"}, 0, rand.New(rand.NewPCG(seed, 1))
	for _, one := range reservations(q.t, q.s) {
		if err := q.api.DeleteReservation(q.t.Context(), one.ID); err != nil {
			q.t.Fatal(err)
		}
	}
	changes, _, _ := q.network.happened()
	for _, one := range changes {
		q.had(one.id, one.start, one.end)
	}
	q.network.begin(seed)
	for range 3 {
		q.anotherBooks()
	}
	q.script(`watch.choose('#zone', 'local')`)
	q.press("[data-range=week]", 1)
	q.pressed, q.undos, q.told = nil, 0, nil
	defer func() {
		if q.t.Failed() {
			q.t.Log(q)
		}
	}()
	for range actions {
		q.act()
		q.look()
		if q.t.Failed() {
			return
		}
	}
	q.home()
	q.network.troubled(false)
	q.log = append(q.log, "the trouble ends")
	if q.IntN(2) == 0 {
		q.closesForm()
	}
	q.comesToRest(q.IntN(4) == 0)
	q.look()
	q.sentAsSeen()
	q.closesForm()
}

// closesForm lets the next sequence begin without a form and without messages.
func (q *sequence) closesForm() {
	for labtest.Evaluate[bool](q.p.Browser, `document.querySelector('#close-form') !== null`) {
		q.press("#close-form", 1)
	}
	labtest.Evaluate[bool](q.p.Browser, `(document.querySelectorAll('.toast button[aria-label]').forEach(one => one.click()), true)`)
}

// knowOthers keeps the claims of the other project.
func (q *sequence) knowOthers() {
	q.t.Helper()
	now := time.Now()
	whole, err := q.api.Calendar(q.t.Context(), client.CalendarQuery{Start: now.Add(-time.Hour), End: now.Add(2000 * time.Hour)})
	if err != nil {
		q.t.Fatal(err)
	}
	for _, host := range whole.Hosts {
		for _, one := range host.Claims {
			q.others[fmt.Sprint(host.Host, one.Start.UnixMilli(), one.End.UnixMilli())] = true
		}
	}
}
