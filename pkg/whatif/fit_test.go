// SPDX-License-Identifier: Apache-2.0

package whatif_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/whatif"
)

// question returns Figure 1 of paper 003, changed by edit.
func question(t *testing.T, edit func(q map[string]any)) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/examples/whatif/fit.json")
	if err != nil {
		t.Fatal(err)
	}
	var q map[string]any
	if err := json.Unmarshal(raw, &q); err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(q)
	}
	out, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func fit(t *testing.T, edit func(q map[string]any)) whatif.FitAnswer {
	t.Helper()
	answer, err := whatif.Fit(strings.NewReader(question(t, edit)))
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func request(q map[string]any) map[string]any { return q["request"].(map[string]any) }

func TestA003_2_3_CandidatesAndChoicesFromAFile(t *testing.T) {
	for policy, want := range map[string]struct {
		start int64
		hosts []int
	}{
		"first-fit":             {20, []int{4, 5, 6, 7}},
		"pe-best-fit":           {85, []int{0, 1, 8, 9}},
		"pe-worst-fit":          {30, []int{0, 1, 2, 3}},
		"duration-best-fit":     {30, []int{0, 1, 2, 3}},
		"duration-worst-fit":    {85, []int{0, 1, 8, 9}},
		"pe-duration-best-fit":  {85, []int{0, 1, 8, 9}},
		"pe-duration-worst-fit": {30, []int{0, 1, 2, 3}},
	} {
		t.Run(policy, func(t *testing.T) {
			answer := fit(t, func(q map[string]any) { q["policy"] = policy })
			if !answer.Accepted || *answer.Start != want.start || *answer.End != want.start+25 {
				t.Fatalf("answer %+v, want start %d", answer, want.start)
			}
			if diff := cmp.Diff(want.hosts, answer.Hosts); diff != "" {
				t.Errorf("hosts (-want +got):\n%s", diff)
			}
			candidates := []whatif.FitCandidate{{20, 10, 100, 8}, {30, 30, 100, 12}, {75, 30, 100, 12}, {85, 30, 130, 6}}
			if diff := cmp.Diff(candidates, answer.Candidates); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
		})
	}
}

func TestA003_4_TheSlotsAfterBooking(t *testing.T) {
	want := []whatif.FitSlot{
		{0, []int{0, 1, 2, 3, 4, 5, 6}}, {10, []int{0, 1, 2, 3}}, {55, []int{}},
		{100, []int{2, 3, 4, 5, 6, 7}}, {130, []int{}},
	}
	if diff := cmp.Diff(want, fit(t, nil).Slots); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
}

func TestA003_5_MoreHostsThanExistAreRefusedAndNothingIsBooked(t *testing.T) {
	answer := fit(t, func(q map[string]any) { request(q)["quantity"] = 13 })
	if answer.Accepted || answer.Reason == "" || len(answer.Candidates) != 0 || len(answer.Slots) != 5 {
		t.Errorf("answer %+v", answer)
	}
}

func TestA003_6_AnEmptyCalendarBooksAtTheReadyTime(t *testing.T) {
	answer, err := whatif.Fit(strings.NewReader(`{"hosts": 3, "request": {"ready": 5, "duration": 10, "deadline": 20, "quantity": 3}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []whatif.FitSlot{{5, []int{0, 1, 2}}, {15, []int{}}}
	if diff := cmp.Diff(want, answer.Slots); diff != "" || *answer.Start != 5 {
		t.Errorf("start %d, slots (-want +got):\n%s", *answer.Start, diff)
	}
}

func TestWhatIsBusyTwiceIsBusyOnce(t *testing.T) {
	answer, err := whatif.Fit(strings.NewReader(`{"hosts": 1, "claims": [{"hosts": [0], "start": 10, "end": 20}, {"hosts": [0, 0], "start": 0, "end": 30}],
		"request": {"ready": 0, "duration": 10, "deadline": 100, "quantity": 1}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]whatif.FitSlot{{0, []int{0}}, {40, []int{}}}, answer.Slots); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
}

func TestBadInputNamesTheField(t *testing.T) {
	for name, tc := range map[string]struct {
		edit  func(q map[string]any)
		field string
	}{
		"no hosts":                {func(q map[string]any) { q["hosts"] = 0 }, "hosts"},
		"hosts of another type":   {func(q map[string]any) { q["hosts"] = "12" }, "hosts"},
		"unknown field":           {func(q map[string]any) { q["polizy"] = "first-fit" }, "polizy"},
		"a field in capitals":     {func(q map[string]any) { request(q)["READY"] = 20 }, "request.READY"},
		"a deadline out of range": {func(q map[string]any) { request(q)["deadline"] = int64(1) << 62 }, "request.deadline"},
		"an unknown field of a claim": {func(q map[string]any) {
			q["claims"] = []any{map[string]any{"hosts": []int{1}, "strt": 5, "end": 6}}
		}, "claims[0].strt"},
		"unknown policy":         {func(q map[string]any) { q["policy"] = "best" }, "policy"},
		"quantity under 1":       {func(q map[string]any) { request(q)["quantity"] = 0 }, "request.quantity"},
		"quantity a fraction":    {func(q map[string]any) { request(q)["quantity"] = 1.5 }, "request.quantity"},
		"quantity missing":       {func(q map[string]any) { delete(request(q), "quantity") }, "request.quantity"},
		"duration of nothing":    {func(q map[string]any) { request(q)["duration"] = 0 }, "request.duration"},
		"longer than the window": {func(q map[string]any) { request(q)["duration"] = 91 }, "request.duration"},
		"ready before now":       {func(q map[string]any) { q["now"] = 21 }, "request.ready"},
		"deadline missing":       {func(q map[string]any) { delete(request(q), "deadline") }, "request.deadline"},
		"a host that is not there": {func(q map[string]any) {
			q["claims"] = []any{map[string]any{"hosts": []int{12}, "start": 0, "end": 1}}
		}, "claims[0].hosts"},
		"a claim without hosts": {func(q map[string]any) {
			q["claims"] = []any{map[string]any{"hosts": []int{}, "start": 0, "end": 1}}
		}, "claims[0].hosts"},
		"an empty claim": {func(q map[string]any) {
			q["claims"] = []any{map[string]any{"hosts": []int{1}, "start": 5, "end": 5}}
		}, "claims[0].end"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := whatif.Fit(strings.NewReader(question(t, tc.edit)))
			if f := fault.Of(err); err == nil || f.Kind != fault.Invalid || f.Field != tc.field {
				t.Errorf("error %v, want one about %s", err, tc.field)
			}
		})
	}
	for _, text := range []string{"", "[]", "{", `{"hosts": 1} {}`, "null"} {
		if _, err := whatif.Fit(strings.NewReader(text)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v, want an invalid input", text, err)
		}
	}
}

// priced adds a tariff to the question of Figure 1: 3, then 1 from 40 to 60, then 2.
func priced(q map[string]any) {
	q["policy"] = "cheapest"
	q["tariff"] = []any{
		map[string]any{"start": 0, "end": 40, "price": 3}, map[string]any{"start": 40, "end": 60, "price": 1},
		map[string]any{"start": 60, "end": 110, "price": 2},
	}
}

func TestTheCheapestStartFromAFile(t *testing.T) {
	answer := fit(t, priced)
	if !answer.Accepted || *answer.Start != 40 || answer.Cost == nil || *answer.Cost != 20+2*5 {
		t.Errorf("answer %+v, want start 40 for 30", answer)
	}
	answer = fit(t, func(q map[string]any) { priced(q); q["policy"] = "first-fit" })
	if !answer.Accepted || *answer.Start != 20 || answer.Cost == nil || *answer.Cost != 20*3+5 {
		t.Errorf("first fit %+v, want start 20 for 65", answer)
	}
}

func TestATariffThatCannotTellIsRefused(t *testing.T) {
	price := func(q map[string]any, i int) map[string]any { return q["tariff"].([]any)[i].(map[string]any) }
	for name, edit := range map[string]func(q map[string]any){
		"none":                     func(q map[string]any) { delete(q, "tariff") },
		"an end before the window": func(q map[string]any) { price(q, 2)["end"] = 109 },
		"a gap":                    func(q map[string]any) { price(q, 0)["end"] = 39 },
		"an overlap":               func(q map[string]any) { price(q, 0)["end"] = 41 },
		"another order":            func(q map[string]any) { price(q, 0)["start"], price(q, 0)["end"] = 200, 240 },
		"times out of range":       func(q map[string]any) { price(q, 2)["end"] = 1e17 },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := whatif.Fit(strings.NewReader(question(t, func(q map[string]any) { priced(q); edit(q) })))
			if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(fault.Of(err).Field, "tariff") {
				t.Errorf("%v, want an Invalid fault about the tariff", err)
			}
		})
	}
}
