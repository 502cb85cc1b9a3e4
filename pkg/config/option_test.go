package config

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAMultiValuedOptionKeepsEveryLineInPlaceOfItsDefault(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		want  []string
	}{
		"not given":    {nil, []string{"log"}},
		"given twice":  {[]string{"a", "b,c"}, []string{"a", "b,c"}},
		"given empty":  {[]string{""}, nil},
		"given as was": {[]string{"log"}, []string{"log"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			o := multi(&got, "driver", []string{"log"}, "")
			o.restore()
			for _, line := range tc.lines {
				if err := o.set(line); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFloatIsAFiniteNumberInItsRange(t *testing.T) {
	for raw, want := range map[string]float64{"1": 1, "-1.5": -1.5, "1e-3": 0.001, "2": 2} {
		var got float64
		if err := float(&got, "cpu_weight_multiplier", 1, -2, 2, "").set(raw); err != nil || got != want {
			t.Errorf("%q: got %v and error %v, want %v", raw, got, err, want)
		}
	}
	for _, raw := range []string{"", "x", "NaN", "inf", "-Inf", "1e999", "2.1", "-2.1"} {
		got := math.Pi
		if err := float(&got, "cpu_weight_multiplier", 1, -2, 2, "").set(raw); err == nil || got != math.Pi {
			t.Errorf("%q: got %v and error %v, want the error alone", raw, got, err)
		}
	}
}

func TestDurationsAreWholeSeconds(t *testing.T) {
	for raw, want := range map[string]time.Duration{
		"0": 0, "90": 90 * time.Second, "2h30m": 150 * time.Minute, "30d": 720 * time.Hour, "1d12h": 36 * time.Hour,
		"1.5h": 90 * time.Minute, "2000ms": 2 * time.Second,
	} {
		got, err := parseDuration(raw)
		if err != nil || got != want {
			t.Errorf("%q: got %v and error %v, want %v", raw, got, err, want)
		}
	}
	for _, raw := range []string{
		"", "d", "x", "1x", "100ms", "1.5", "1.5d", "-1d", "1d-5h", "1d5", "1h1d", "2 h", "999999999d", "9999999999999999999",
	} {
		if got, err := parseDuration(raw); err == nil {
			t.Errorf("%q is taken for %v", raw, got)
		}
	}
}

func TestAWrittenDurationIsReadAsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Range(0, int64(longest/time.Second)).Draw(t, "seconds")) * time.Second
		text := formatDuration(want)
		if got, err := parseDuration(text); err != nil || got != want {
			t.Fatalf("%d s is written %q and read as %v, error %v", want/time.Second, text, got, err)
		}
	})
}
