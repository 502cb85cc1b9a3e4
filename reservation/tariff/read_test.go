// SPDX-License-Identifier: Apache-2.0

package tariff_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/tariff"
)

// text returns a tariff with lines, at the hours of a day, below the header.
func text(lines ...string) string {
	all := "start,price\n"
	for hour, price := range lines {
		all += fmt.Sprintf("2026-12-01T%02d:00:00Z,%s\n", hour, price)
	}
	return all
}

const midnight = span.Instant(1_796_083_200) // 2026-12-01T00:00:00Z

// cheapestHour returns which hour after midnight is the cheapest of a day.
func cheapestHour(t *testing.T, c *tariff.Curve) int {
	t.Helper()
	start, ok := c.Cheapest(slices.Values([]span.Span{span.New(midnight, 24*3600)}), 3600)
	if !ok {
		t.Fatal("no hour has a price")
	}
	return int(start-midnight) / 3600
}

func TestPricesAreReadExactly(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		hour int // the cheapest
	}{
		"decimals are compared as numbers":        {text("0.5", "0.45", "0.450000001", ""), 1},
		"of equal prices the earliest wins":       {text("0.10", "0.1", "0.100", ""), 0},
		"a negative price is cheaper than 0":      {text("0", "-0.01", "0.00", ""), 1},
		"a plus sign and zeros change nothing":    {text("+5", "05.0", "4.9", ""), 2},
		"an hour without a price is never chosen": {text("3", "", "2", "", "", "2.5", ""), 2},
		"fields may be quoted":                    {strings.ReplaceAll(text("3", "1", ""), ",3", `,"3"`), 1},
		"lines may end as in Windows":             {strings.ReplaceAll(text("3", "1", ""), "\n", "\r\n"), 1},
		"another zone is another instant":         {strings.ReplaceAll(text("3", "1", ""), "Z", "+00:00"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			curve, err := tariff.Read([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := cheapestHour(t, curve); got != c.hour {
				t.Errorf("the cheapest hour is %d, want %d", got, c.hour)
			}
		})
	}
}

func TestTheLastLineEndsThePricesAndEmptyOnesAreGaps(t *testing.T) {
	curve, err := tariff.Read([]byte(text("1", "2", "", "3", "")))
	if err != nil {
		t.Fatal(err)
	}
	hour := func(n int64) span.Instant { return midnight.Add(3600 * n) }
	if known, want := curve.Known(), (span.Span{Start: midnight, End: hour(4)}); known != want {
		t.Errorf("known %v, want %v", known, want)
	}
	for from, want := range map[span.Instant]span.Instant{hour(0): hour(2), hour(1) + 1: hour(2), hour(2): hour(2), hour(3): hour(4), hour(5): hour(5)} {
		if got := curve.Covered(from); got != want {
			t.Errorf("from %v covered until %v, want %v", from, got, want)
		}
	}
}

func TestWhatIsNoTariffIsRefusedWithItsLine(t *testing.T) {
	long := "start,price\n" + strings.Repeat("2026-12-01T00:00:00Z,1\n", 3)
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                       {"", "there are no prices"},
		"a header only":                 {"start,price\n", "there are no prices"},
		"gaps only":                     {text("", ""), "there are no prices"},
		"a page of a web server":        {"<html>\n<body>Sign in</body>\n", `line 1: must be start,price, and is "<html>"`},
		"no header":                     {"2026-12-01T00:00:00Z,1\n", "line 1: must be start,price"},
		"three fields":                  {text("1", "2,3", ""), "line 3: must have a start and a price, and has 3 fields"},
		"a price that is no number":     {text("1", "NaN", ""), `line 3: price "NaN" is no decimal number such as 87.34 or -3`},
		"an infinite price":             {text("Inf", ""), `line 2: price "Inf" is no decimal number`},
		"a price with an exponent":      {text("1", "1e-3", ""), `line 3: price "1e-3" is no decimal number`},
		"a price in hexadecimal":        {text("0x10", ""), `line 2: price "0x10" is no decimal number`},
		"too many decimals":             {text("1", "0.12345678901", ""), `line 3: price "0.12345678901" has more than 9 decimals; round it`},
		"a price beyond all numbers":    {text("1", strings.Repeat("9", 30), ""), "is too large"},
		"a price beyond the bound":      {text("1.5", "10000000001", ""), "line 3: the price is larger than 100000000000 units of the last of 1 decimal"},
		"a large price with small ones": {text("0.000000001", "-101", ""), "line 3: the price is larger than 100000000000 units of the last of 9 decimals"},
		"a start that is no time":       {"start,price\n01.12.2026,5\n", `line 2: start "01.12.2026" is no whole second in the form 2026-12-01T00:00:00Z`},
		"a start without a zone":        {"start,price\n2026-12-01T00:00:00,5\n", "line 2: start"},
		"a fraction of a second":        {"start,price\n2026-12-01T00:00:00.5Z,5\n", "line 2: start"},
		"the same start twice":          {long, "line 3: start 2026-12-01T00:00:00Z is not later than that of the line before"},
		"a start before the last":       {"start,price\n2026-12-01T01:00:00Z,5\n2026-12-01T00:00:00Z,5\n", "line 3: start 2026-12-01T00:00:00Z is not later"},
		"no end":                        {text("1", "2"), "line 3: is the last one and has a price; add a line with the time at which it ends and without a price"},
		"quotes that do not end":        {text("1", `"2`), "line 3: "},
		"more than a year":              {"start,price\n2026-12-01T00:00:00Z,1\n2027-12-03T00:00:00Z,\n", "the prices last longer than 366 days"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tariff.Read([]byte(c.text))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an Invalid fault with %q", err, c.want)
			}
		})
	}
}

func TestTooManyPricesAreRefused(t *testing.T) {
	lines := []string{"start,price"}
	for i := range int64(tariff.MostSteps + 2) {
		lines = append(lines, midnight.Add(60*i).String()+",1")
	}
	_, err := tariff.Read([]byte(strings.Join(lines, "\n")))
	want := fmt.Sprintf("line %d: is one too many; there may be %d prices", tariff.MostSteps+3, tariff.MostSteps)
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	lines[len(lines)-2] = midnight.Add(60*tariff.MostSteps).String() + "," // the end
	if _, err := tariff.Read([]byte(strings.Join(lines[:len(lines)-1], "\n"))); err != nil {
		t.Errorf("as many as are allowed: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(text("1", "-2.5", "", "3", "")))
	f.Add([]byte("start,price\n2026-12-01T00:00:00Z,\"\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		curve, err := tariff.Read(text)
		if err != nil {
			return
		}
		known := curve.Known()
		if known.Empty() {
			t.Errorf("known %v", known)
		}
		if start, ok := curve.Cheapest(slices.Values([]span.Span{known}), 1); !ok || !known.Contains(start) {
			t.Errorf("the cheapest second of %v is %v (%v)", known, start, ok)
		}
	})
}
