// SPDX-License-Identifier: Apache-2.0

package whatif_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/whatif"
)

// sixOnFourOff is the question of check A004-3, with a placeholder for the forecast.
const sixOnFourOff = `{"now": 0, "horizon": 900, "idle_needed": 5, "hosts": [
	{"name": "r1", "on": true}, {"name": "r2", "on": true}, {"name": "r3", "on": true}, {"name": "r4", "on": true}, {"name": "r5", "on": true}, {"name": "r6", "on": true},
	{"name": "s1", "flops_per_watt": 1.5}, {"name": "s2", "flops_per_watt": 4}, {"name": "s3"}, {"name": "s4", "flops_per_watt": 4}],
	"forecast": FORECAST, "reserved": ["r1", "r2", "r3"]}`

func TestPowerAnswersThePapersQuestions(t *testing.T) {
	for name, tc := range map[string]struct {
		question string
		on, off  []string
	}{
		"A004-3":                        {strings.Replace(sixOnFourOff, "FORECAST", "7", 1), []string{"s2"}, []string{}},
		"A004-3 with too much forecast": {strings.Replace(sixOnFourOff, "FORECAST", "20", 1), []string{"s2", "s4", "s1", "s3"}, []string{}},
		"A004-4":                        {exampleWith(t, "power"), []string{}, []string{"r4", "r6"}},
		"less idleness is needed":       {exampleWith(t, "power", `"idle_needed": 5`, `"idle_needed": 4`), []string{}, []string{"r4", "r5", "r6"}},
		"a reserved host that is off":   {exampleWith(t, "power", `"r5", "on": true, "idle": 4`, `"r5"`, `"r3"]`, `"R5"]`), []string{"r5"}, []string{"r4", "r6"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := whatif.Power(strings.NewReader(tc.question))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]string{tc.on, tc.off}, [][]string{got.On, got.Off}); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
			for _, host := range append(got.On, got.Off...) {
				if got.Reasons[host] == "" {
					t.Errorf("%s is switched without a reason", host)
				}
			}
		})
	}
}

func TestPowerSaysAlsoWhyAnIdleHostStaysOn(t *testing.T) {
	got, err := whatif.Power(strings.NewReader(exampleWith(t, "power")))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"r1": "it is reserved now or within the horizon",
		"r4": "it has been idle for 5 measurements, and 6 hosts are on where 3 are enough",
		"r5": "it has been idle for 4 measurements, and must be for 5",
		"r6": "it has been idle for 9 measurements, and 5 hosts are on where 3 are enough",
	}
	if diff := cmp.Diff(want, got.Reasons); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func TestAPowerQuestionThatMakesNoSenseNamesItsField(t *testing.T) {
	for field, question := range map[string]string{
		"now":                     exampleWith(t, "power", "1800000000", "9007199254740993"),
		"horizon":                 exampleWith(t, "power", `"horizon": 900`, `"horizon": -1`),
		"idle_needed":             exampleWith(t, "power", `"idle_needed": 5`, `"idle_needed": -5`),
		"forecast":                exampleWith(t, "power", `"forecast": 2`, `"forecast": -2`),
		"hosts":                   `{"forecast": 1}`,
		"hosts[1].name":           exampleWith(t, "power", `"r2", "on"`, `"R1", "on"`),
		"hosts[0].name":           exampleWith(t, "power", `"name": "r1", `, ``),
		"hosts[4].idle":           exampleWith(t, "power", `"idle": 4`, `"idle": -4`),
		"hosts[0].flops_per_watt": exampleWith(t, "power", `10, "flops_per_watt": 1.8e9`, `10, "flops_per_watt": -1.8e9`),
		"hosts[0].one":            exampleWith(t, "power", `"r1", "on"`, `"r1", "one"`),
		"reserved[2]":             exampleWith(t, "power", `"r3"]`, `"r7"]`),
		"reserved[1]":             exampleWith(t, "power", `["r1", "r2"`, `["r1", "r1"`),
		"reserve":                 exampleWith(t, "power", `"reserved"`, `"reserve"`),
		"input":                   "{",
	} {
		t.Run(field, func(t *testing.T) {
			_, err := whatif.Power(strings.NewReader(question))
			if got := fault.Of(err); got == nil || got.Kind != fault.Invalid || got.Field != field {
				t.Errorf("got %v", err)
			}
		})
	}
}
