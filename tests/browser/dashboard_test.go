// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// page is the calendar page of a service in a browser.
type page struct {
	*labtest.Browser
	t   *testing.T
	url string
}

// open opens a part of the page, such as "calendar", and waits for what it shows.
func (p *page) open(part, element string) {
	p.t.Helper()
	p.Visit("about:blank")
	p.Visit(p.url + "/dashboard/#/" + part)
	p.Await(element)
}

// calendarOf opens the calendar and waits until it shows the hosts.
func (p *page) calendarOf(hosts int) {
	p.t.Helper()
	p.open("calendar", ".picture")
	p.hosts(hosts)
	p.Eventually("the page hears of changes", `document.querySelector('.live.on')`)
}

// hosts waits until the calendar shows a number of hosts. They may be read before the browser tells the size of the
// picture, without which no time has a place in it.
func (p *page) hosts(want int) {
	p.t.Helper()
	p.Eventually(fmt.Sprintf("the calendar has %d hosts", want),
		fmt.Sprintf(`document.querySelector('.picture').dataset.hosts === '%d' && almanac.calendar.state().view.width > 0`, want))
}

// point returns where the picture has a host at some hours from now, in pixels of the page.
func (p *page) point(host string, hours float64) (x, y float64) {
	p.t.Helper()
	at := labtest.Evaluate[[]float64](p.Browser, fmt.Sprintf(`(() => {
		const {view, rows} = almanac.calendar.state(), row = rows.find(one => one.host?.name === %q), frame = document.querySelector('.picture').getBoundingClientRect();
		return [frame.left + view.label + (Date.now() / 1000 + %g * 3600 - view.start) * view.scale, frame.top + 82 + row.y - view.scroll + row.height / 2]
	})()`, host, hours))
	return at[0], at[1]
}

// tools shows the tools that a narrow page folds.
func (p *page) tools(width int) {
	p.t.Helper()
	if width < 560 {
		p.Click(".fold")
	}
}

// claims waits until the calendar has a number of claims.
func (p *page) claims(want int) {
	p.t.Helper()
	p.Eventually(fmt.Sprintf("the calendar has %d claims", want), fmt.Sprintf(`document.querySelector('.picture').dataset.claims === '%d'`, want))
}

// wellBehaved fails the test if anything went wrong in the page.
func (p *page) wellBehaved() {
	p.t.Helper()
	if troubles := p.Troubles(); len(troubles) > 0 {
		p.t.Errorf("the page has troubles: %v", troubles)
	}
}

// startPage starts a browser, and a service with ten hosts on the embedded default.
func startPage(t *testing.T) (*page, *built.Service) {
	t.Helper()
	browser := startBrowser(t)
	s := built.StartOn(t, built.TenHosts)
	p := &page{Browser: browser, t: t, url: s.URL}
	p.Look(1440, 900, false)
	return p, s
}

// reservations returns those of the service that are not over.
func reservations(t *testing.T, s *built.Service) []v1.Reservation {
	t.Helper()
	var list []v1.Reservation
	for one, err := range s.Client(t).ListReservations(t.Context(), client.ReservationFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, one)
	}
	return list
}

// A user draws a reservation over free time, asks for too much and takes the alternative, sees the booking of somebody
// else, extends a reservation by its end and cancels it.
func TestHostsAreBookedExtendedAndCanceledInTheBrowser(t *testing.T) {
	p, s := startPage(t)
	p.calendarOf(10)

	fromX, fromY := p.point("host-03", 24)
	toX, toY := p.point("host-04", 48)
	p.Drag(fromX, fromY, toX, toY)
	p.Await("#offer")
	p.Fill(".booking input[name=name]", "drawn")
	p.Click("#confirm")
	p.claims(2)
	drawn := reservations(t, s)[0]
	if lasts := drawn.End.Sub(drawn.Start); drawn.Name != "drawn" || !slices.Equal(drawn.Hosts, []string{"host-03", "host-04"}) || lasts < 22*time.Hour || lasts > 26*time.Hour {
		t.Errorf("the drawn reservation is %+v", drawn)
	}

	p.Click("#book")
	p.Fill(".booking input[name=name]", "as many as possible")
	p.Fill(".booking input[name=quantity]", "11")
	p.Await("#refusal")
	if text := p.Text("#refusal"); !strings.Contains(text, "11 hosts asked for") {
		t.Errorf("the refusal is %q", text)
	}
	p.Click("#take-fewer")
	p.Await("#offer")
	p.Click("#confirm")
	p.claims(12)

	// Somebody else books: the page polls nothing, so what appears came with the stream.
	begin, duration, quantity := time.Now().Add(72*time.Hour), v1.Duration(7200), 3
	if _, err := s.Client(t).CreateReservation(t.Context(), v1.ReservationRequest{Name: "another", StartTime: &begin, Duration: &duration, Quantity: &quantity}, client.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.claims(15)

	endX, endY := p.point("host-03", drawn.End.Sub(time.Now()).Hours())
	laterX, _ := p.point("host-03", drawn.End.Sub(time.Now()).Hours()+12)
	p.Drag(endX-1, endY, laterX, endY)
	p.Await("#offer")
	p.Click("#confirm")
	built.Eventually(t, "the drawn reservation is not longer", func() bool {
		one, err := s.Client(t).GetReservation(t.Context(), drawn.ID)
		return err == nil && one.End.Sub(drawn.End) >= 10*time.Hour
	})

	p.open("reservation/"+drawn.ID, "#reservation-name")
	if text := p.Text("main"); !strings.Contains(text, "--hint reservation="+drawn.ID) || !strings.Contains(text, "almanac reservation create drawn") {
		t.Errorf("the page of the reservation does not have its commands:\n%s", text)
	}
	p.Click("#cancel")
	p.Await("#confirm-cancel")
	p.Click("#confirm-cancel")
	p.Await(".badge.canceled")
	p.wellBehaved()
	p.calendarOf(10)
	p.claims(13)
	p.wellBehaved()
}

// Everything that the pointer does is there for the keyboard.
// An operator draws maintenance over free time, sees what is in the way, takes the earliest start, and cancels it.
func TestMaintenanceIsPlannedAndCanceledInTheBrowser(t *testing.T) {
	p, s := startPage(t)
	begin, duration := time.Now().Add(24*time.Hour), v1.Duration(12*3600)
	blocking, err := s.Client(t).CreateReservation(t.Context(), v1.ReservationRequest{
		Name: "in the way", StartTime: &begin, Duration: &duration, HostProperties: []byte(`["=", "$name", "host-04"]`),
	}, client.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.calendarOf(10)
	p.claims(1)

	fromX, fromY := p.point("host-03", 24)
	toX, toY := p.point("host-04", 30)
	p.Drag(fromX, fromY, toX, toY)
	p.Await(".booking")
	p.Choose(".booking select[name=kind]", "maintenance")
	p.Fill(".booking input[name=name]", "new memory")
	// The kind before may have been refused already.
	p.Eventually("the refusal names how many hosts are free", `document.querySelector("#refusal")?.innerText.includes("1 of the 2 hosts") ?? false`)
	p.Click("#take-earliest")
	p.Await("#offer")
	p.Click("#confirm")
	p.claims(3)
	planned := reservations(t, s)[1]
	if !planned.Maintenance || planned.Name != "new memory" || !slices.Equal(planned.Hosts, []string{"host-03", "host-04"}) || planned.Start.Before(blocking.End) {
		t.Errorf("planned is %+v", planned)
	}

	p.Click("#table-switch")
	p.Await(".table-view table")
	if text := p.Text(".table-view"); !strings.Contains(text, "Maintenance: new memory") {
		t.Errorf("the table does not show the maintenance:\n%s", text)
	}
	p.open("reservation/"+planned.ID, "#reservation-name")
	if text := p.Text("main"); !strings.Contains(text, "almanac host maintenance host-03 host-04") {
		t.Errorf("the page of the maintenance does not have its command:\n%s", text)
	}
	p.Click("#cancel")
	p.Await("#confirm-cancel")
	p.Click("#confirm-cancel")
	built.Eventually(t, "the maintenance is not canceled", func() bool { return len(reservations(t, s)) == 1 })
	p.wellBehaved()
}

func TestHostsAreBookedWithTheKeyboard(t *testing.T) {
	p, s := startPage(t)
	p.calendarOf(10)
	labtest.Evaluate[bool](p.Browser, `(document.querySelector('.picture').focus({focusVisible: true}), true)`)
	for _, key := range []string{labtest.ArrowDown, labtest.ArrowDown, labtest.ArrowRight, labtest.ArrowRight, " ", labtest.ArrowRight, labtest.ArrowRight, labtest.ArrowRight} {
		p.Press(key)
	}
	if tip := p.Text(".tip"); !strings.Contains(tip, "host-03") {
		t.Errorf("the facts at the cursor are %q", tip)
	}
	if said := labtest.Evaluate[string](p.Browser, `document.querySelector('[role=status]').textContent`); !strings.Contains(said, "3h, 1 host") {
		t.Errorf("a screen reader reads %q", said)
	}
	p.Press(labtest.Enter)
	p.Await("#offer")
	p.Click("#confirm")
	p.claims(1)
	if got := reservations(t, s)[0]; !slices.Equal(got.Hosts, []string{"host-03"}) || got.End.Sub(got.Start) != 3*time.Hour {
		t.Errorf("the reservation is %+v", got)
	}
	p.Click("#table-switch")
	p.Await(".table-view table")
	if text := p.Text(".table-view"); !strings.Contains(text, "reservation ") || !strings.Contains(text, "host-10") {
		t.Errorf("the table is\n%s", text)
	}
	p.wellBehaved()
}

// The names of reservations are texts of users, and nothing else.
func TestHostileNamesAreTextInTheBrowser(t *testing.T) {
	p, s := startPage(t)
	names := []string{
		`<u title="x">markup</u>`, `"><s>text</s>`, strings.Repeat("w", 255),
		"שריון \u202eevil\u202c عربى", `mailto:x@example.org`, "{name} {count}", `O'Hara "quoted" -- dashes`,
	}
	for i, name := range names {
		begin, duration := time.Now().Add(time.Duration(1+i)*24*time.Hour), v1.Duration(20*3600)
		if _, err := s.Client(t).CreateReservation(t.Context(), v1.ReservationRequest{Name: name, StartTime: &begin, Duration: &duration}, client.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p.calendarOf(10)
	p.claims(len(names))
	x, y := p.point("host-01", 30)
	p.Drag(x, y, x, y)
	p.wellBehaved()
	for _, width := range []int{1440, 360} {
		p.Look(width, 800, false)
		p.open("reservations", "tbody a")
		shown := labtest.Evaluate[[]string](p.Browser, `[...document.querySelectorAll('tbody th .name')].map(one => one.textContent)`)
		for _, name := range names {
			if !slices.Contains(shown, name) {
				t.Errorf("the list does not show %q as it is: %q", name, shown)
			}
		}
		if elements := labtest.Evaluate[int](p.Browser, `document.querySelectorAll('main u, main s, main a[href^=mailto]').length`); elements != 0 {
			t.Errorf("the names became %d elements", elements)
		}
		if wide := labtest.Evaluate[int](p.Browser, `document.documentElement.scrollWidth`); wide > width {
			t.Errorf("at %d pixels the page is %d wide", width, wide)
		}
		p.wellBehaved()
	}
	for _, one := range reservations(t, s) {
		p.open("reservation/"+one.ID, "#reservation-name")
		if shown := labtest.Evaluate[string](p.Browser, `document.querySelector('#reservation-name').textContent`); shown != one.Name {
			t.Errorf("the page of %q shows %q", one.Name, shown)
		}
	}
	p.wellBehaved()
}

// operatorPages are the pages of operators, each with what it shows of a small cloud.
var operatorPages = []struct{ name, element string }{
	{"usage", "#csv"}, {"hosts", "tbody th"}, {"energy", "main .box, main .card"}, {"decisions", "input[name=server]"}, {"preemptible", "table"}, {"queue", "main .box, main table"}, {"images", "table"}, {"doctor", ".box.good"},
}

// axe-core finds nothing serious in the calendar, the form, the lists and the operators' pages.
func TestThePageIsAccessible(t *testing.T) {
	p, s := startPage(t)
	axe := labtest.Axe(t)
	begin, duration, quantity := time.Now().Add(time.Hour), v1.Duration(7200), 2
	made, err := s.Client(t).CreateReservation(t.Context(), v1.ReservationRequest{Name: "training", StartTime: &begin, Duration: &duration, Quantity: &quantity}, client.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	examine := func(what string) {
		t.Helper()
		for _, found := range p.Examine(axe) {
			t.Errorf("%s: %v", what, found)
		}
		p.wellBehaved()
	}
	for _, look := range []struct {
		width int
		dark  bool
	}{{1440, false}, {360, true}} {
		p.Look(look.width, 800, look.dark)
		p.calendarOf(10)
		examine("the calendar")
		labtest.Evaluate[bool](p.Browser, `(document.querySelector('.picture').focus({focusVisible: true}), true)`)
		p.Press("h")
		p.Await("#host-menu")
		examine("the menu of a host")
		p.Click("#book")
		p.Await("#offer")
		examine("the form")
		p.Choose("#form-when", "offers")
		p.Await("#form-lastsTo")
		p.Click("#confirm")
		p.Await(".offers li button")
		examine("the offers")
		p.Choose("#form-when", "now")
		p.Await("#offer")
		p.tools(look.width)
		p.Click("#table-switch")
		p.Await(".table-view table")
		examine("the table")
		p.Click("#table-switch")
		p.open("reservations", "tbody a")
		examine("the list")
		p.open("reservation/"+made.ID, "#reservation-name")
		examine("the reservation")
		p.Click("#cancel")
		p.Await("#confirm-cancel")
		examine("the question")
		for _, one := range operatorPages {
			p.open("operator/"+one.name, one.element)
			examine("the page " + one.name)
		}
	}
}

// The page is strict about what it loads, and small.
func TestThePageAllowsNothingFromElsewhereAndIsSmall(t *testing.T) {
	s := built.StartOn(t, built.TenHosts)
	get := func(path string, header ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer
	}
	if a := get("/dashboard"); a.StatusCode != http.StatusPermanentRedirect || a.Header.Get("Location") != "dashboard/" {
		t.Errorf("/dashboard: %d to %q", a.StatusCode, a.Header.Get("Location"))
	}
	a := get("/dashboard/")
	policy := a.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s: %s", part, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("the headers are %v", a.Header)
	}
	if again := get("/dashboard/", "If-None-Match", a.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("the page again: %d", again.StatusCode)
	}
	if unknown := get("/dashboard/nothing.js"); unknown.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown file: %d", unknown.StatusCode)
	}
}
