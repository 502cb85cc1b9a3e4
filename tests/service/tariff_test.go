// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/tariff"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// priced is a service with a tariff in a file: each hour costs 9, and the hour of cheap costs 1.
type priced struct {
	*built.Guarded
	t     *testing.T
	file  string
	cheap time.Time
}

func startPriced(t *testing.T) *priced {
	t.Helper()
	p := &priced{t: t, file: filepath.Join(t.TempDir(), "tariff.csv"), cheap: time.Now().UTC().Truncate(time.Hour).Add(5 * time.Hour)}
	p.write("start,price\n%s,9\n%s,1\n%s,9\n%s,\n", p.hour(-7), p.hour(0), p.hour(1), p.hour(8))
	p.Guarded = built.StartGuarded(t, "OS_TARIFF__SOURCE="+p.file, "OS_TARIFF__REFRESH_INTERVAL=1", "OS_TARIFF__MAX_AGE=6h")
	return p
}

// hour returns the time so many hours after the cheap one.
func (p *priced) hour(n int) string {
	return p.cheap.Add(time.Duration(n) * time.Hour).Format(time.RFC3339)
}

func (p *priced) write(text string, args ...any) {
	if err := os.WriteFile(p.file, fmt.Appendf(nil, text, args...), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// age makes the file as old as that.
func (p *priced) age(by time.Duration) {
	at := time.Now().Add(-by)
	if err := os.Chtimes(p.file, at, at); err != nil {
		p.t.Fatal(err)
	}
}

// render are the arguments for an hour between three hours before the cheap one and four after it.
func (p *priced) render(name string, more ...string) []string {
	return append([]string{"reservation", "create", name, "--policy", "cheapest", "--duration", "1h", "--start", p.hour(-3), "--end", p.hour(4)}, more...)
}

// offered returns what a tenant would get now.
func (p *priced) offered() v1.Offer {
	p.t.Helper()
	out, stderr, exit := p.As(labtest.Demo, p.render("offer", "--dry-run", "-f", "api")...)
	built.WantExit(p.t, "a dry run", stderr, exit, 0)
	var answer v1.OfferAnswer
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
	return answer.Offer
}

// booked books, and returns the reservation as `reservation show` has it, and what the tenant was told.
func (p *priced) booked(name string, more ...string) (r v1.Reservation, told string) {
	p.t.Helper()
	_, told, exit := p.As(labtest.Demo, p.render(name, more...)...)
	built.WantExit(p.t, "a booking", told, exit, 0)
	out, stderr, exit := p.As(labtest.Demo, "reservation", "show", name, "-f", "api")
	built.WantExit(p.t, "show", stderr, exit, 0)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
	return r, told
}

// eventually waits until an offer has the policy.
func (p *priced) eventually(policy string) {
	p.t.Helper()
	built.Eventually(p.t, "no offer by "+policy, func() bool { return p.offered().Policy == policy })
}

func TestABookingBeginsInTheCheapHourUntilTheTariffIsStale(t *testing.T) {
	p := startPriced(t)
	if o := p.offered(); !o.Start.Equal(p.cheap) || o.PolicyReason != "" {
		t.Errorf("offered %v (%s), want the cheap hour, %v", o.Start, o.PolicyReason, p.cheap)
	}
	for name, more := range map[string][]string{"hosts": nil, "instances": {"--kind", "instance", "--vcpus", "2", "--quantity", "3"}} {
		if r, told := p.booked(name, more...); !r.Start.Equal(p.cheap) || r.Policy != "cheapest" || r.PolicyReason != "" || strings.Contains(told, "first-fit") {
			t.Errorf("%s begin at %v by %s (%s), want the cheap hour, %v", name, r.Start, r.Policy, r.PolicyReason, p.cheap)
		}
	}

	p.age(7 * time.Hour)
	p.eventually("first-fit")
	r, told := p.booked("stale")
	const why = "first-fit instead of cheapest: the tariff is from "
	if !r.Start.Equal(p.cheap.Add(-3*time.Hour)) || r.Policy != "first-fit" || !strings.HasPrefix(r.PolicyReason, why) || !strings.Contains(told, why) {
		t.Errorf("with a stale tariff at %v by %s (%q, told %q), want the first hour of the window and why", r.Start, r.Policy, r.PolicyReason, told)
	}
	if len(r.Events) == 0 || !strings.HasPrefix(r.Events[0].Detail, why) {
		t.Errorf("the log of the reservation is %+v, want why", r.Events)
	}
	if log := p.Log.String(); !strings.Contains(log, "the tariff could not choose the start of a reservation") || !strings.Contains(log, "the tariff is stale") {
		t.Errorf("the log tells nothing of the stale tariff:\n%s", log)
	}
	built.Eventually(t, "the metrics do not count the booking", func() bool {
		return strings.Contains(p.Send("", http.MethodGet, "/metrics", "").Text, `almanac_tariff_fallbacks_total{reason="stale"} 1`+"\n")
	})
	out, stderr, exit := p.As(labtest.Admin, "readiness")
	built.WantExit(t, "readiness with a stale tariff", stderr, exit, 1)
	if !strings.Contains(out, "the tariff is stale") {
		t.Errorf("the readiness is\n%s", out)
	}

	p.age(0)
	p.eventually("cheapest")
	p.write("start,price\n%s,9\n%s,NaN\n", p.hour(-7), p.hour(0))
	built.Eventually(t, "the log does not name the wrong line", func() bool { return strings.Contains(p.Log.String(), "line 3: price") })
	if o := p.offered(); o.Policy != "cheapest" || !o.Start.Equal(p.cheap) {
		t.Errorf("with a wrong file: %v by %s, want the last good tariff", o.Start, o.Policy)
	}
}

// The recipes of the guide run on answers in the forms that the publishers document, with made-up numbers: the last price
// holds as long as the one before it, and a price that is not known yet is a gap.
func TestTheRecipesMakeATariffOfWhatFeedsPublish(t *testing.T) {
	for publisher, c := range map[string]struct {
		answer       string
		start, end   string
		gap          string // a time without a price
		cheapestHour string
	}{
		"energy-charts": {
			answer: `{"license_info":"","unix_seconds":[1796083200,1796086800,1796090400,1796094000],
				"price":[88.5,null,-3.25,17],"unit":"EUR / MWh","deprecated":false}`,
			start: "2026-12-01T00:00:00Z", end: "2026-12-01T04:00:00Z", gap: "2026-12-01T01:00:00Z", cheapestHour: "2026-12-01T02:00:00Z",
		},
		"carbonintensity": {
			answer: `{"data":[
				{"from":"2026-12-01T00:00Z","to":"2026-12-01T00:30Z","intensity":{"forecast":190,"index":"moderate"}},
				{"from":"2026-12-01T00:30Z","to":"2026-12-01T01:00Z","intensity":{"forecast":140,"index":"moderate"}},
				{"from":"2026-12-01T01:00Z","to":"2026-12-01T01:30Z","intensity":{"forecast":120,"index":"low"}}]}`,
			start: "2026-12-01T00:00:00Z", end: "2026-12-01T01:30:00Z", cheapestHour: "2026-12-01T00:30:00Z",
		},
	} {
		t.Run(publisher, func(t *testing.T) {
			folder := t.TempDir()
			var recipe string
			for _, one := range commandsOf(t, "../../docs/tariff.md") {
				if strings.HasPrefix(one.command, "curl") && strings.Contains(one.command, publisher) {
					recipe = one.command
				}
			}
			shell := exec.CommandContext(t.Context(), "bash", "-c", "set -o pipefail; curl() { printf %s \"$ANSWER\"; }\n"+recipe)
			shell.Dir, shell.Env = folder, append(os.Environ(), "ANSWER="+c.answer)
			if out, err := shell.CombinedOutput(); err != nil || recipe == "" {
				t.Fatalf("%q: %v: %s", recipe, err, out)
			}
			text, err := os.ReadFile(filepath.Join(folder, "tariff.csv"))
			if err != nil {
				t.Fatal(err)
			}
			curve, err := tariff.Read(text)
			if err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			at := func(text string) span.Instant {
				one, err := time.Parse(time.RFC3339, text)
				if err != nil {
					t.Fatal(err)
				}
				return span.At(one)
			}
			if want := (span.Span{Start: at(c.start), End: at(c.end)}); curve.Known() != want {
				t.Errorf("the prices are known for %v, want %v", curve.Known(), want)
			}
			covered := c.end
			if c.gap != "" {
				covered = c.gap
			}
			if got := curve.Covered(at(c.start)); got != at(covered) {
				t.Errorf("without a gap they are known until %v, want %s", got, covered)
			}
			all := span.Span{Start: at(c.start), End: at(c.end).Add(1 - 3600)}
			if best, found := curve.Cheapest(slices.Values([]span.Span{all}), 3600); !found || best != at(c.cheapestHour) {
				t.Errorf("the cheapest hour begins at %v (%t), want %s:\n%s", best, found, c.cheapestHour, text)
			}
		})
	}
}
