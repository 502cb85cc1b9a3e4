// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// counter is a cloud and a database with one flavor and one image. It counts trusts.
type counter struct {
	requests.RequestStore
	stored  map[string]state.Request // by key
	trusts  []string
	refuses error // the error of Store; nil accepts
	ids     int
}

func (c *counter) BestEffortOfKey(_ context.Context, _, key string) (state.Request, bool, error) {
	r, used := c.stored[key]
	return r, used, nil
}

func (c *counter) AddBestEffort(_ context.Context, r state.Request, _ string, _ int) (state.Request, error) {
	if c.refuses != nil {
		return state.Request{}, c.refuses
	}
	c.stored[r.Key] = r
	return r, nil
}

func (c *counter) Flavor(_ context.Context, _ requests.Caller, named string) (state.Named, resource.Vector, error) {
	if named != "tiny" {
		return state.Named{}, resource.Vector{}, fault.Field("flavor", "there is none")
	}
	return state.Named{ID: "1", Name: "tiny"}, resource.Vector{VCPUs: 1}, nil
}

func (c *counter) Image(context.Context, requests.Caller, string) (state.Named, error) {
	return state.Named{ID: "2", Name: "cirros"}, nil
}

func (c *counter) Make(context.Context, requests.Caller) (string, error) {
	c.trusts = append(c.trusts, fmt.Sprint("trust ", len(c.trusts)))
	return c.trusts[len(c.trusts)-1], nil
}

func (c *counter) End(_ context.Context, trust string) error {
	c.trusts = slices.DeleteFunc(c.trusts, func(one string) bool { return one == trust })
	return nil
}

func opened() (*counter, *requests.API) {
	c := &counter{stored: map[string]state.Request{}}
	return c, &requests.API{
		Store: c, Catalogue: c, Trusts: c, Changed: func() {}, Now: func() span.Instant { return 1000 },
		NewID: func() string { c.ids++; return fmt.Sprint(c.ids) }, Log: slog.New(slog.DiscardHandler),
	}
}

var sensible = requests.Submission{Name: "render", VMs: 2, Flavor: "tiny", Image: "cirros", Duration: 60, Key: "k", BodyHash: "h"}

func TestWhatMakesNoSenseIsRefusedBeforeATrustIsMade(t *testing.T) {
	for field, spoil := range map[string]func(s *requests.Submission){
		"name":      func(s *requests.Submission) { s.Name = " " },
		"vms":       func(s *requests.Submission) { s.VMs = 0 },
		"vms ":      func(s *requests.Submission) { s.VMs = requests.MostVMsOfOne + 1 },
		"duration":  func(s *requests.Submission) { s.Duration = 0 },
		"duration ": func(s *requests.Submission) { s.Duration = requests.LongestDuration + 1 },
		"flavor":    func(s *requests.Submission) { s.Flavor = "" },
		"flavor ":   func(s *requests.Submission) { s.Flavor = "other" },
		"image":     func(s *requests.Submission) { s.Image = "" },
		"networks":  func(s *requests.Submission) { s.Networks = []string{"none", "auto"} },
		"user_data": func(s *requests.Submission) { s.UserData = "?" },
		"metadata":  func(s *requests.Submission) { s.Metadata = map[string]string{"almanac:besteffort": "x"} },
	} {
		c, bookings := opened()
		asked := sensible
		spoil(&asked)
		_, err := bookings.Submit(t.Context(), requests.Caller{}, asked)
		if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || f.Field != strings.TrimSpace(field) || len(c.trusts) != 0 || len(c.stored) != 0 {
			t.Errorf("%s: %v, trusts %v", field, err, c.trusts)
		}
	}
}

func TestAKeySubmitsOnceAndTrustsThatAreNotNeededEnd(t *testing.T) {
	c, bookings := opened()
	first, err := bookings.Submit(t.Context(), requests.Caller{}, sensible)
	if err != nil || len(first.VMs) != 2 || first.Trust == "" || !slices.Equal(first.Networks, []string{"auto"}) {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := bookings.Submit(t.Context(), requests.Caller{}, sensible); err != nil || again.ID != first.ID || len(c.trusts) != 1 {
		t.Errorf("again: %s, %v, trusts %v", again.ID, err, c.trusts)
	}
	other := sensible
	other.BodyHash = "another"
	if _, err := bookings.Submit(t.Context(), requests.Caller{}, other); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("another body: %v", err)
	}
	c.refuses = fault.New(fault.Refused, "too many")
	other.Key = "fresh"
	if _, err := bookings.Submit(t.Context(), requests.Caller{}, other); !fault.Is(err, fault.Refused) || len(c.trusts) != 1 {
		t.Errorf("refused: %v, trusts %v", err, c.trusts)
	}
	bookings.Off = "it is off"
	if _, err := bookings.Submit(t.Context(), requests.Caller{}, other); !fault.Is(err, fault.Conflict) {
		t.Errorf("switched off: %v", err)
	}
}

// pin is the node on which one VM may be placed.
type pin requests.Pinned

func (p pin) BestEffortPin(_ context.Context, vm string) (requests.Pinned, bool, error) {
	return requests.Pinned(p), vm == "vm", nil
}

func TestOnlyAServerThatIsToStartIsPinnedToItsNode(t *testing.T) {
	for name, test := range map[string]struct {
		p            pin
		vm, project  string
		node, denied string
	}{
		"it is to start":             {pin{"p", "", "a", besteffort.Starting}, "vm", "p", "a", ""},
		"its id is known":            {pin{"p", "s", "a", besteffort.Starting}, "vm", "p", "a", ""},
		"it moves":                   {pin{"p", "s", "a", besteffort.Running}, "vm", "p", "", ""},
		"another is to start":        {pin{"p", "other", "a", besteffort.Starting}, "vm", "p", "", "does not accept a server now"},
		"another runs":               {pin{"p", "other", "a", besteffort.Running}, "vm", "p", "", "does not accept a server now"},
		"it waits":                   {pin{"p", "", "", besteffort.Waiting}, "vm", "p", "", "does not accept a server now"},
		"it is of another project":   {pin{"p", "", "a", besteffort.Starting}, "vm", "q", "", "has no best-effort work"},
		"there is no such VM at all": {pin{"p", "", "a", besteffort.Starting}, "mv", "p", "", "has no best-effort work"},
	} {
		node, refusal, err := requests.Pin(t.Context(), test.p, test.vm, test.project, []string{"s"})
		if node != test.node || err != nil || (refusal == "") != (test.denied == "") || !strings.Contains(refusal, test.denied) {
			t.Errorf("%s: node %q, refusal %q, %v", name, node, refusal, err)
		}
	}
}
