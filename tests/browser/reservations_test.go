// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// replace replaces the text of a field as a user does: with keys.
func (p *page) replace(field, text string) {
	p.t.Helper()
	p.Await(field)
	labtest.Evaluate[bool](p.Browser, fmt.Sprintf(`(() => { const one = document.querySelector(%q); one.focus(); one.select(); return true })()`, field))
	p.Press(text)
}

// says waits until an element has a text in it.
func (p *page) says(element, text string) {
	p.t.Helper()
	p.Eventually(fmt.Sprintf("%s says %q", element, text), fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q) ?? false`, element, text))
}

// book books for a time from now.
func book(t *testing.T, s *built.Service, request v1.ReservationRequest, from, lasts time.Duration) v1.Reservation {
	t.Helper()
	begin, duration := time.Now().Add(from), v1.Duration(lasts.Seconds())
	request.StartTime, request.Duration = &begin, &duration
	made, err := s.Client(t).CreateReservation(t.Context(), request, client.CreateOptions{})
	if err != nil {
		t.Fatalf("%s: %v", request.Name, err)
	}
	return made
}

func rename(t *testing.T, s *built.Service, id, name string) {
	t.Helper()
	if _, err := s.Client(t).ChangeReservation(t.Context(), id, v1.ReservationChange{Name: &name}); err != nil {
		t.Error(err)
	}
}

const hundred = "hosts: [{name: \"host-[001-100]\", vcpus: 16, memory_mb: 65536, disk_gb: 500}]\n"

// The list has all reservations, shows some hundred of them and says so, finds each, and sorts them. While ten of them a
// second change, it stays quiet: it reads those alone, at most once a second, with less work than two sorts of the list
// take, and the focus stays where it is.
func TestAListOfThousandsOfReservationsIsWholeAndQuiet(t *testing.T) {
	browser := startBrowser(t)
	s := built.StartOn(t, hundred, "OS_API__RATE_LIMIT=0")
	p := &page{Browser: browser, t: t, url: s.URL}
	p.Look(1440, 900, false)
	const count = 2400
	ids := make([]string, count)
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			for i := w; i < count; i += 8 {
				ids[i] = book(t, s, v1.ReservationRequest{Name: fmt.Sprintf("run %d", i)}, time.Duration(1+i/50)*24*time.Hour, 20*time.Hour).ID
			}
		})
	}
	workers.Wait()
	rename(t, s, ids[count-1], "the last one")

	p.open("reservations", "tbody a")
	p.says("#count", "2,400 reservations")
	rows := func() int { return labtest.Evaluate[int](p.Browser, `document.querySelectorAll('tbody tr').length`) }
	if n := rows(); n != 100 || !strings.Contains(p.Text(".rest"), "100 of 2,400 are shown") {
		t.Errorf("at first there are %d rows, and %q", n, p.Text(".rest"))
	}
	p.Click("#more")
	p.says(".rest", "200 of 2,400")
	p.replace("#search", "the Last")
	p.says("#count", "1 of 2,400")
	p.says("tbody a", "the last one")
	p.replace("#search", " ")
	p.says("#count", "2,400 reservations")
	const sorts = 10
	before := p.Busy()
	for range sorts / 2 {
		p.Click("#by-name")
		p.says("tbody a", "run 0")
		p.Click("#by-name")
		p.says("tbody a", "the last one")
	}
	sort := (p.Busy() - before) / sorts

	labtest.Evaluate[bool](p.Browser, `(document.querySelector('tbody a').focus(), performance.clearResourceTimings(), true)`)
	p.Eventually("the page hears of changes", `document.querySelector('.live.on')`)
	const changes = 150
	before = p.Busy()
	began := time.Now()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for i := range changes {
		<-ticks.C
		rename(t, s, ids[count-2-i%200], fmt.Sprintf("run %d changed", 9000+i))
	}
	busy, seconds := p.Busy()-before, time.Since(began).Seconds()
	p.says("tbody", "run 9149 changed")
	t.Logf("busy for %v of %.1f s; a sort takes %v", busy, seconds, sort)
	if busy.Seconds() > 2*seconds*sort.Seconds() {
		t.Errorf("in %.1f seconds with %d changes, the page was busy for %v, and a sort takes %v", seconds, changes, busy, sort)
	}
	asked := labtest.Evaluate[[]string](p.Browser, `performance.getEntriesByType('resource').map(one => one.name).filter(one => one.includes('/v1/reservations'))`)
	if len(asked) > int(seconds)+3 || len(asked) == 0 {
		t.Errorf("there were %d requests", len(asked))
	}
	for _, one := range asked {
		if !strings.Contains(one, "&id=") {
			t.Errorf("%s reads more than what has changed", one)
		}
	}
	if focus := labtest.Evaluate[string](p.Browser, `document.activeElement.closest('tr')?.querySelector('a').textContent ?? document.activeElement.tagName`); focus != "the last one" {
		t.Errorf("the focus is on %q", focus)
	}
	p.wellBehaved()
}

// What others do is shown while a user types. What was typed stays, in its field with the focus, and the field says that
// it was changed elsewhere. A cancellation is shown at once.
func TestAReservationIsShownAsItIsWhileSomebodyTypes(t *testing.T) {
	p, s := startPage(t)
	one := book(t, s, v1.ReservationRequest{Name: "training"}, 24*time.Hour, 2*time.Hour)
	p.open("reservation/"+one.ID, "#rename")
	p.Eventually("the page hears of changes", `document.querySelector('.live.on')`)
	p.replace("#rename", "my name")
	rename(t, s, one.ID, "their name")
	p.says("#reservation-name", "their name")
	p.says("#elsewhere-name", "their name")
	if got := labtest.Evaluate[string](p.Browser, `document.activeElement.id + ': ' + document.activeElement.value`); got != "rename: my name" {
		t.Errorf("the field with the focus is %q", got)
	}
	p.Click("[data-more='3600']")
	built.Eventually(t, "the reservation is not an hour longer", func() bool {
		got, err := s.Client(t).GetReservation(t.Context(), one.ID)
		return err == nil && got.End.Sub(one.End) == time.Hour && got.Name == "their name"
	})
	if got := labtest.Evaluate[string](p.Browser, `document.querySelector('#rename').value + ' ' + (document.activeElement === document.body)`); got != "my name false" {
		t.Errorf("after the extension the field and the focus are %q", got)
	}
	p.Eventually("the change is over", `!document.querySelector('#cancel[aria-disabled]')`)
	p.Click("#cancel")
	p.Await("#confirm-cancel")
	p.Click("#keep")
	p.Eventually("the focus is back on the button", `document.activeElement.id === 'cancel'`)
	p.Click("#cancel")
	p.Await("#confirm-cancel")
	p.Click("#confirm-cancel")
	p.Await(".badge.canceled")
	p.Eventually("there is nothing to cancel any more", `!document.querySelector('#cancel') && !document.querySelector('dialog')`)
	if focus := labtest.Evaluate[string](p.Browser, `document.activeElement.id`); focus != "reservation-head" {
		t.Errorf("the focus is on %q", focus)
	}
	p.wellBehaved()
}

// A change can be undone from the message that tells of it.
func TestAChangeIsUndoneInTheBrowser(t *testing.T) {
	p, s := startPage(t)
	one := book(t, s, v1.ReservationRequest{Name: "training"}, 24*time.Hour, 2*time.Hour)
	p.open("reservation/"+one.ID, "#rename")
	p.replace("#rename", "wrong")
	p.Click("#submit-name")
	p.says("#reservation-name", "wrong")
	p.Click(".toast .undo")
	p.says("#reservation-name", "training")
	if got := reservations(t, s)[0].Name; got != "training" {
		t.Errorf("the name is %q", got)
	}
	if disabled := labtest.Evaluate[bool](p.Browser, `document.querySelector('#submit-end').getAttribute('aria-disabled') === 'true'`); !disabled {
		t.Error("an end that nobody edited can be sent")
	}
	p.wellBehaved()
}

// A refused extension names what is in the way, with a link, and offers the latest end.
func TestARefusedExtensionNamesWhatIsInTheWayAndTheLatestEnd(t *testing.T) {
	p, s := startPage(t)
	quantity := 10
	one := book(t, s, v1.ReservationRequest{Name: "training", Quantity: &quantity}, 24*time.Hour, 2*time.Hour)
	next := book(t, s, v1.ReservationRequest{Name: "in the way", Quantity: &quantity}, 30*time.Hour, 2*time.Hour)
	p.open("reservation/"+one.ID, "#rename")
	p.Click("[data-more='86400']")
	p.Await("#change-refused")
	if link := labtest.Evaluate[string](p.Browser, `[...document.querySelectorAll('#change-refused a')].find(one => one.textContent === 'in the way')?.getAttribute('href')`); link != "#/reservation/"+next.ID {
		t.Errorf("what is in the way has the link %q:\n%s", link, p.Text("#change-refused"))
	}
	p.Click("#take-latest")
	built.Eventually(t, "the reservation does not end at its latest end", func() bool {
		got, err := s.Client(t).GetReservation(t.Context(), one.ID)
		return err == nil && got.End.Equal(next.Start)
	})
	p.Eventually("the refusal is gone", `!document.querySelector('#change-refused')`)
	p.wellBehaved()
}

// The command on the page of a reservation books one with the same terms, and nothing else of its project's texts runs.
func TestTheCommandOnThePageBooksTheSame(t *testing.T) {
	browser := startBrowser(t)
	s := built.StartOn(t, "hosts: [{name: \"gpu-[01-10]\", vcpus: 16, memory_mb: 65536, disk_gb: 500, properties: {gpu: a100}}]\n")
	p := &page{Browser: browser, t: t, url: s.URL}
	p.Look(1440, 900, false)
	quantity, warning := 3, v1.Duration(600)
	for _, request := range []v1.ReservationRequest{
		{
			Name: `O'Hara's "web" $(touch here)`, Kind: "instance", Quantity: &quantity, Resources: &v1.Resources{VCPUs: 2, MemoryMB: 4096, DiskGB: 20},
			HostProperties: json.RawMessage(`["=", "$gpu", "a100"]`), Affinity: "different", OnEnd: "shelve", BeforeEnd: &warning,
		},
		{Name: "--hosts", Quantity: &quantity, Policy: "pe-best-fit"},
	} {
		one := book(t, s, request, 24*time.Hour, 2*time.Hour)
		p.open("reservation/"+one.ID, "#same-command")
		command := labtest.Evaluate[string](p.Browser, `document.querySelector('#same-command').textContent`)
		program, rest, _ := strings.Cut(command, " ")
		if program != "almanac" {
			t.Fatalf("the command is %s", command)
		}
		built.Shell(t, s.Folder, []string{"ALMANAC_URL=" + s.URL}, "bash", "-c", built.Commands()+"/almanac "+rest)
		list := reservations(t, s)
		at := slices.IndexFunc(list, func(r v1.Reservation) bool { return r.Name == one.Name && r.ID != one.ID })
		if at < 0 {
			t.Fatalf("%s books nothing with the name %q", command, one.Name)
		}
		again := list[at]
		differing := func(r *v1.Reservation) {
			r.ID, r.CreatedAt, r.UpdatedAt, r.Hosts, r.Events = "", time.Time{}, time.Time{}, nil, nil
		}
		differing(&one)
		differing(&again)
		if diff := gocmp.Diff(one, again); diff != "" {
			t.Errorf("%s books another (-first +again):\n%s", command, diff)
		}
	}
	if out := built.Shell(t, s.Folder, nil, "ls"); strings.Contains(out, "here") {
		t.Error("the name of a reservation ran as a command")
	}
	p.wellBehaved()
}

// The page asks for a feed link only where the service has one.
func TestThePageAsksForAFeedLinkOnlyWhereThereIsOne(t *testing.T) {
	browser := startBrowser(t)
	for _, secret := range []string{"", "a secret"} {
		s := built.StartOn(t, built.TenHosts, "OS_API__FEED_SECRET="+secret)
		p := &page{Browser: browser, t: t, url: s.URL}
		one := book(t, s, v1.ReservationRequest{Name: "training"}, 24*time.Hour, 2*time.Hour)
		p.open("reservation/"+one.ID, cmp.Or(map[string]string{"a secret": "#feed-link"}[secret], "#same-command"))
		asked := labtest.Evaluate[bool](p.Browser, `performance.getEntriesByType('resource').some(one => one.name.includes('/v1/feed'))`)
		if asked != (secret != "") {
			t.Errorf("with the secret %q it is asked: %v", secret, asked)
		}
		p.wellBehaved()
	}
}

// From a reservation, a link leads back to where the user was in the calendar.
func TestALinkLeadsBackToThePlaceInTheCalendar(t *testing.T) {
	p, s := startPage(t)
	one := book(t, s, v1.ReservationRequest{Name: "training"}, 24*time.Hour, 2*time.Hour)
	begin := time.Now().Add(40 * 24 * time.Hour).Unix()
	p.open(fmt.Sprintf("calendar?start=%d&width=172800", begin), ".picture")
	labtest.Evaluate[bool](p.Browser, fmt.Sprintf(`(location.hash = '#/reservation/%s', true)`, one.ID))
	p.Await("#back")
	if link := labtest.Evaluate[string](p.Browser, `document.querySelector('#back').getAttribute('href')`); !strings.Contains(link, fmt.Sprint("start=", begin)) {
		t.Errorf("the link leads to %s", link)
	}
	p.wellBehaved()
}

// A link is followed in a later event than that of the click. What the part that is left wants the address to name in
// between does not call the user back.
func TestALinkIsFollowedWhateverThePartThatIsLeftStillWrites(t *testing.T) {
	p, s := startPage(t)
	one := book(t, s, v1.ReservationRequest{Name: "training"}, 24*time.Hour, 2*time.Hour)
	for left, writes := range map[string]string{
		"calendar":     `almanac.calendar.send({type: 'settled'})`,
		"reservations": `document.querySelector('input[type=search]').dispatchEvent(new Event('input', {bubbles: true}))`,
	} {
		p.open(left, map[string]string{"calendar": ".picture", "reservations": "input[type=search]"}[left])
		labtest.Evaluate[bool](p.Browser, fmt.Sprintf(`(location.hash = '#/reservation/%s', %s, true)`, one.ID, writes))
		p.Await("#back")
	}
	p.wellBehaved()
}
