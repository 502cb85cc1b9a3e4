// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// gpuHosts are four hosts with a property, and two without it.
const gpuHosts = `hosts:
  - {name: "gpu-[01-04]", vcpus: 16, memory_mb: 65536, disk_gb: 500, properties: {gpu: a100}}
  - {name: "node-[01-02]", vcpus: 16, memory_mb: 65536, disk_gb: 500, properties: {gpu: none}}
`

// form is a script that reads the form's state.
const form = `almanac.calendar.state().form`

// instantOf returns a time that a script has in seconds.
func instantOf(p *page, script string) time.Time {
	p.t.Helper()
	return time.Unix(int64(labtest.Evaluate[float64](p.Browser, script)), 0).UTC()
}

// drawn drags over a host, some hours from now, and waits for the offer.
func (p *page) drawn(host string, from, to float64) {
	p.t.Helper()
	fromX, fromY := p.point(host, from)
	toX, toY := p.point(host, to)
	p.Drag(fromX, fromY, toX, toY)
	p.Await("#offer")
}

// book books by the API.
func bookHosts(t *testing.T, s *built.Service, name string, begin time.Time, lasts time.Duration, hosts string) v1.Reservation {
	t.Helper()
	duration := v1.Duration(lasts.Seconds())
	made, err := s.Client(t).CreateReservation(t.Context(), v1.ReservationRequest{
		Name: name, StartTime: &begin, Duration: &duration, HostProperties: []byte(hosts),
	}, client.CreateOptions{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return made
}

// dryRuns is a script that counts the questions for an offer that the page has asked.
const dryRuns = `performance.getEntriesByType('resource').filter(one => one.name.includes('dry_run')).length`

// Whoever types a name and presses "Book it" with the pointer leaves the field by that.
func TestABookingLeavesNoOfferAndNoQuestionBehind(t *testing.T) {
	p, s := startPage(t)
	p.calendarOf(10)
	p.drawn("host-02", 24, 48)
	write(p, "#form-name", "typed")
	before := labtest.Evaluate[int](p.Browser, dryRuns)
	p.Click("#confirm")
	p.claims(1)
	p.Eventually("the form is closed", form+` === null`)
	if got := reservations(t, s)[0].Name; got != "typed" {
		t.Errorf("the name is %q", got)
	}
	// The next form asks later than anything that the one before had still to ask.
	p.Click("#book")
	p.Await("#offer")
	if after := labtest.Evaluate[int](p.Browser, dryRuns); after != before+1 {
		t.Errorf("the page asked for %d offers after the booking, not for that of the next form alone", after-before)
	}
	p.wellBehaved()
}

func TestTheOfferedTimeIsBookedInWhateverZoneItIsShown(t *testing.T) {
	p, s := startPage(t)
	p.Live("Europe/Paris", "en-GB")
	p.calendarOf(10)
	p.Choose("#zone", "utc")
	p.drawn("host-02", 24, 48)
	start := instantOf(p, form+`.offer.start`)
	shown := p.Text("#offer")
	p.Choose("#zone", "local")
	p.Eventually("the offer is shown in the other zone", fmt.Sprintf(`document.querySelector('#offer').innerText !== %q`, shown))
	if clock := labtest.Evaluate[string](p.Browser, `document.querySelector('#form-start-clock').value`); clock != start.Add(time.Hour).Format("15:04") {
		t.Errorf("in Paris the field shows %s for %s", clock, start)
	}
	p.Click("#confirm")
	p.claims(1)
	if got := reservations(t, s)[0].Start.UTC(); !got.Equal(start) {
		t.Errorf("offered was %s, booked is %s", start, got)
	}
	p.wellBehaved()
}

func TestADragIntoTheSecondHourOfOctobersNightBooksThatHour(t *testing.T) {
	p, s := startPage(t)
	p.Live("Europe/Paris", "en-GB")
	year := time.Now().Year()
	night := time.Date(year, 10, 31, 0, 0, 0, 0, time.UTC)
	for night.Before(time.Now()) || night.Weekday() != time.Sunday {
		if night = night.AddDate(0, 0, -1); night.Before(time.Now()) {
			year++
			night = time.Date(year, 10, 31, 0, 0, 0, 0, time.UTC)
		}
	}
	p.open(fmt.Sprintf("calendar?start=%d&width=43200", night.Unix()-4*3600), ".picture")
	p.hosts(10)
	from, to := night.Add(time.Hour), night.Add(3*time.Hour)
	p.drawn("host-02", time.Until(from).Hours(), time.Until(to).Hours())
	if text := p.Text("#offer"); !strings.Contains(text, "CET") {
		t.Errorf("the offer does not name its time: %s", text)
	}
	p.Click("#confirm")
	built.Eventually(t, "the reservation is made", func() bool { return len(reservations(t, s)) == 1 })
	if got := reservations(t, s)[0]; !got.Start.Equal(from) || !got.End.Equal(to) {
		t.Errorf("drawn from %s to %s, booked from %s to %s", from, to, got.Start.UTC(), got.End.UTC())
	}
	p.wellBehaved()
}

func TestAFilledFormStaysOverADragTheButtonAReloadAndBack(t *testing.T) {
	p, _ := startPage(t)
	p.calendarOf(10)
	p.drawn("host-02", 24, 48)
	write(p, "#form-name", "precious")
	holds := func(when string) {
		t.Helper()
		p.Await("#offer")
		if name := labtest.Evaluate[string](p.Browser, `document.querySelector('#form-name').value`); name != "precious" {
			t.Errorf("after %s the name is %q", when, name)
		}
	}
	p.drawn("host-05", 60, 72)
	holds("another drag")
	if hosts := labtest.Evaluate[[]string](p.Browser, form+`.hosts`); len(hosts) != 1 || hosts[0] != "host-05" {
		t.Errorf("the form has the hosts %v", hosts)
	}
	p.Click("#book")
	holds("the button Book")
	p.Visit("about:blank")
	p.open("calendar", ".picture")
	holds("a reload")
	p.Click("header nav a[href='#/reservations']")
	p.Await("main h1")
	labtest.Evaluate[bool](p.Browser, `(history.back(), true)`)
	p.Await(".picture")
	holds("Back")
	p.Click("#close-form")
	p.Click(".toast .undo")
	holds("closing and taking that back")
	p.wellBehaved()
}

// On a small screen with the filter open, the offer and the button leave most of the form to its fields.
func TestTheFieldsHaveRoomAboveTheOffer(t *testing.T) {
	p, _ := startPage(t)
	for _, look := range []struct{ width, height, room int }{{1366, 850, 380}, {1280, 640, 200}, {360, 740, 560}} {
		p.Look(look.width, look.height, false)
		p.calendarOf(10)
		labtest.Evaluate[bool](p.Browser, `(document.querySelector('.filter-box').open = true, true)`)
		labtest.Evaluate[bool](p.Browser, `(almanac.calendar.send({type: 'booked'}), true)`)
		p.Await("#offer")
		room := labtest.Evaluate[int](p.Browser, `(() => {
			const panel = document.querySelector('.panel'), foot = document.querySelector('.foot');
			panel.scrollIntoView();
			return Math.round(foot.getBoundingClientRect().top - Math.max(0, panel.getBoundingClientRect().top));
		})()`)
		if room < look.room {
			t.Errorf("at %d×%d pixels the fields have %d pixels above the offer, not %d", look.width, look.height, room, look.room)
		}
		p.Picture(fmt.Sprintf("form-%d", look.width))
		p.Click("#close-form")
	}
	p.wellBehaved()
}

func TestNothingCoversTheButtonThatBooks(t *testing.T) {
	p, _ := startPage(t)
	for _, width := range []int{1440, 1024, 360} {
		p.Look(width, 740, false)
		p.calendarOf(10)
		labtest.Evaluate[bool](p.Browser, `(almanac.calendar.send({type: 'booked'}), true)`)
		p.Await("#offer")
		p.Click("#confirm")
		p.Await(".toast")
		labtest.Evaluate[bool](p.Browser, `(almanac.calendar.send({type: 'booked'}), true)`)
		p.Await("#offer")
		p.Eventually(fmt.Sprintf("nothing covers the button at %d pixels", width), `(() => {
			const button = document.querySelector('#confirm');
			button.scrollIntoView({block: 'nearest'});
			const place = button.getBoundingClientRect();
			return document.elementFromPoint(place.left + place.width / 2, place.top + place.height / 2) === button;
		})()`)
		p.Picture(fmt.Sprintf("toast-%d", width))
		p.Click(".toast button[aria-label]")
		p.Eventually("the message is closed", `document.querySelectorAll('.toast').length === 0`)
		p.Click("#close-form")
	}
	p.wellBehaved()
}

// Three hosts with a GPU, for two days in the next month: the button, the words with Enter, and Enter again.
func TestATimeIsFoundInThreeActions(t *testing.T) {
	browser := startBrowser(t)
	s := built.StartOn(t, gpuHosts)
	p := &page{Browser: browser, t: t, url: s.URL}
	p.Look(1440, 900, false)
	next := time.Date(time.Now().Year(), time.Now().Month()+1, 1, 0, 0, 0, 0, time.UTC)
	bookHosts(t, s, "in the way", next, 48*time.Hour, `["in", "$name", "gpu-01", "gpu-02"]`)
	bookHosts(t, s, "in the way too", next, 48*time.Hour, `["=", "$name", "gpu-02"]`)
	p.Live("UTC", "en-GB")
	p.calendarOf(6)

	p.Click("#book")
	p.Await("#form-words")
	write(p, "#form-words", "3 GPU hosts for two days next month")
	p.Press(labtest.Enter)
	p.Eventually("the windows of the next month are drawn", form+`.fields.when === 'between' && `+form+`.windows.length > 0`)
	p.Await("#offer")
	p.Picture("found")
	if focused := labtest.Evaluate[string](p.Browser, `document.activeElement.id`); focused != "confirm" {
		t.Errorf("the keyboard is on %q", focused)
	}
	p.Press(labtest.Enter)
	built.Eventually(t, "three hosts are booked", func() bool {
		for _, one := range reservations(t, s) {
			if one.Quantity == 3 && one.End.Sub(one.Start) == 48*time.Hour && !one.Start.Before(next.Add(48*time.Hour)) {
				return true
			}
		}
		return false
	})
	p.wellBehaved()
}

func TestARefusedExtensionShowsWhatIsInTheWayAndTheLatestEnd(t *testing.T) {
	p, s := startPage(t)
	begin := time.Now().Add(time.Second).Truncate(time.Second)
	mine := bookHosts(t, s, "mine", begin, 12*time.Hour, `["in", "$name", "host-02", "host-03"]`)
	built.Eventually(t, "the reservation keeps its host", func() bool {
		one, err := s.Client(t).GetReservation(t.Context(), mine.ID)
		return err == nil && one.Status == "active"
	})
	neighbor := bookHosts(t, s, "neighbor", begin.Add(18*time.Hour), 12*time.Hour, `["=", "$name", "host-02"]`)
	p.calendarOf(10)
	p.claims(2)
	endX, endY := p.point("host-02", time.Until(mine.End).Hours())
	laterX, _ := p.point("host-02", time.Until(mine.End).Hours()+12)
	p.Drag(endX-1, endY, laterX, endY)
	p.Await("#refusal")
	if link := labtest.Evaluate[string](p.Browser, `document.querySelector('.beside a').getAttribute('href')`); link != "#/reservation/"+neighbor.ID {
		t.Errorf("the link leads to %s", link)
	}
	p.Await("#take-elsewhere")
	p.Picture("extension")
	p.Click("#take-until")
	p.Await("#offer")
	p.Click("#confirm")
	built.Eventually(t, "the reservation lasts until its neighbor", func() bool {
		one, err := s.Client(t).GetReservation(t.Context(), mine.ID)
		return err == nil && one.End.Equal(neighbor.Start)
	})
	p.wellBehaved()

	// There is no later end now, but other hosts are free.
	p.Eventually("the calendar has the new end", fmt.Sprintf(`almanac.calendar.state().data.hosts.get('host-02').claims[0].end === %d`, neighbor.Start.Unix()))
	endX, endY = p.point("host-02", time.Until(neighbor.Start).Hours())
	p.Drag(endX-2, endY, laterX, endY)
	p.Await("#take-elsewhere")
	p.Click("#take-elsewhere")
	p.Eventually("the form books the rest", form+`?.mode === 'book'`)
	if start := instantOf(p, form+`.fields.start.at`); !start.Equal(neighbor.Start.UTC()) {
		t.Errorf("the form begins at %s", start)
	}
	p.wellBehaved()
}

func TestAnOpenOfferIsRenewedWhenSomebodyElseBooks(t *testing.T) {
	p, s := startPage(t)
	p.calendarOf(10)
	p.drawn("host-02", 24, 48)
	bookHosts(t, s, "quicker", instantOf(p, form+`.offer.start`), 2*time.Hour, `["=", "$name", "host-02"]`)
	p.Await("#refusal")
	if drawn := labtest.Evaluate[bool](p.Browser, form+`.offer === null`); !drawn {
		t.Error("the old offer is still drawn")
	}
	p.Click("#take-earliest")
	p.Await("#offer")
	if focused := labtest.Evaluate[string](p.Browser, `document.activeElement.id`); focused != "confirm" {
		t.Errorf("after the alternative the keyboard is on %q", focused)
	}
	p.wellBehaved()
}

func TestAFilterIsWrittenInPlainWordsSavedAndDeleted(t *testing.T) {
	browser := startBrowser(t)
	s := built.StartOn(t, gpuHosts)
	p := &page{Browser: browser, t: t, url: s.URL}
	p.Look(1440, 900, false)
	p.calendarOf(6)
	p.Click(".filter-box summary")
	write(p, "#calendar-filter-plain", "gpu=a100")
	p.Press(labtest.Enter)
	p.hosts(4)
	p.Eventually("the address has the filter", `decodeURIComponent(location.hash).includes('filter=["=","$gpu","a100"]')`)
	if chip := p.Text(".chips li"); !strings.Contains(chip, "gpu = a100") {
		t.Errorf("the condition is %q", chip)
	}
	p.Picture("filter")
	write(p, "#filter-name", "my gpus")
	p.Click("#save-filter")
	if said := p.Text("#filter-said"); !strings.Contains(said, "my gpus is saved") {
		t.Errorf("the page says %q", said)
	}
	p.Click(".chips li button")
	p.hosts(6)
	p.Choose("#saved-filters", "my gpus")
	p.hosts(4)
	p.Click("#forget-filter")
	if said := p.Text("#filter-said"); !strings.Contains(said, "deleted") {
		t.Errorf("the page says %q", said)
	}
	p.Click("#undo-filter")
	p.Await("#saved-filters")
	write(p, "#calendar-filter-plain", "gpu like a100")
	p.Press(labtest.Enter)
	if wrong := p.Text("#calendar-filter-wrong"); !strings.Contains(wrong, "gpu = a100") {
		t.Errorf("the page explains %q", wrong)
	}
	p.hosts(4)
	p.wellBehaved()
}
