package controller_test

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
	"github.com/almanac-cloud/almanac/reservation/besteffort/controller"
)

// counter is a cloud and a database with one flavor, one image and as many trusts as are
// made.
type counter struct {
	controller.Shelf
	stored  map[string]controller.Request // by key
	trusts  []string
	refuses error // to store
	ids     int
}

func (c *counter) BestEffortOfKey(_ context.Context, _, key string) (controller.Request, bool, error) {
	r, used := c.stored[key]
	return r, used, nil
}

func (c *counter) AddBestEffort(_ context.Context, r controller.Request, _ string, _ int) (controller.Request, error) {
	if c.refuses != nil {
		return controller.Request{}, c.refuses
	}
	c.stored[r.Key] = r
	return r, nil
}

func (c *counter) Flavor(_ context.Context, _ controller.Caller, named string) (controller.Named, resource.Vector, error) {
	if named != "tiny" {
		return controller.Named{}, resource.Vector{}, fault.Field("flavor", "there is none")
	}
	return controller.Named{ID: "1", Name: "tiny"}, resource.Vector{VCPUs: 1}, nil
}

func (c *counter) Image(context.Context, controller.Caller, string) (controller.Named, error) {
	return controller.Named{ID: "2", Name: "cirros"}, nil
}

func (c *counter) Make(context.Context, controller.Caller) (string, error) {
	c.trusts = append(c.trusts, fmt.Sprint("trust ", len(c.trusts)))
	return c.trusts[len(c.trusts)-1], nil
}

func (c *counter) End(_ context.Context, trust string) error {
	c.trusts = slices.DeleteFunc(c.trusts, func(one string) bool { return one == trust })
	return nil
}

func opened() (*counter, *controller.Desk) {
	c := &counter{stored: map[string]controller.Request{}}
	return c, &controller.Desk{
		Shelf: c, Catalogue: c, Trusts: c, Changed: func() {}, Now: func() span.Instant { return 1000 },
		NewID: func() string { c.ids++; return fmt.Sprint(c.ids) }, Log: slog.New(slog.DiscardHandler),
	}
}

var sensible = controller.Submission{Name: "render", VMs: 2, Flavor: "tiny", Image: "cirros", Duration: 60, Key: "k", BodyHash: "h"}

func TestWhatMakesNoSenseIsRefusedBeforeATrustIsMade(t *testing.T) {
	for field, spoil := range map[string]func(s *controller.Submission){
		"name":      func(s *controller.Submission) { s.Name = " " },
		"vms":       func(s *controller.Submission) { s.VMs = 0 },
		"vms ":      func(s *controller.Submission) { s.VMs = controller.MostVMsOfOne + 1 },
		"duration":  func(s *controller.Submission) { s.Duration = 0 },
		"duration ": func(s *controller.Submission) { s.Duration = controller.LongestDuration + 1 },
		"flavor":    func(s *controller.Submission) { s.Flavor = "" },
		"flavor ":   func(s *controller.Submission) { s.Flavor = "other" },
		"image":     func(s *controller.Submission) { s.Image = "" },
		"networks":  func(s *controller.Submission) { s.Networks = []string{"none", "auto"} },
		"user_data": func(s *controller.Submission) { s.UserData = "?" },
		"metadata":  func(s *controller.Submission) { s.Metadata = map[string]string{"almanac:besteffort": "x"} },
	} {
		c, desk := opened()
		asked := sensible
		spoil(&asked)
		_, err := desk.Submit(t.Context(), controller.Caller{}, asked)
		if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || f.Field != strings.TrimSpace(field) || len(c.trusts) != 0 || len(c.stored) != 0 {
			t.Errorf("%s: %v, trusts %v", field, err, c.trusts)
		}
	}
}

func TestAKeySubmitsOnceAndTrustsThatAreNotNeededEnd(t *testing.T) {
	c, desk := opened()
	first, err := desk.Submit(t.Context(), controller.Caller{}, sensible)
	if err != nil || len(first.VMs) != 2 || first.Trust == "" || !slices.Equal(first.Networks, []string{"auto"}) {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := desk.Submit(t.Context(), controller.Caller{}, sensible); err != nil || again.ID != first.ID || len(c.trusts) != 1 {
		t.Errorf("again: %s, %v, trusts %v", again.ID, err, c.trusts)
	}
	other := sensible
	other.BodyHash = "another"
	if _, err := desk.Submit(t.Context(), controller.Caller{}, other); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("another body: %v", err)
	}
	c.refuses = fault.New(fault.Refused, "too many")
	other.Key = "fresh"
	if _, err := desk.Submit(t.Context(), controller.Caller{}, other); !fault.Is(err, fault.Refused) || len(c.trusts) != 1 {
		t.Errorf("refused: %v, trusts %v", err, c.trusts)
	}
	desk.Off = "it is off"
	if _, err := desk.Submit(t.Context(), controller.Caller{}, other); !fault.Is(err, fault.Conflict) {
		t.Errorf("switched off: %v", err)
	}
}

// pin is where one VM may be placed.
type pin controller.Pinned

func (p pin) BestEffortPin(_ context.Context, vm string) (controller.Pinned, bool, error) {
	return controller.Pinned(p), vm == "vm", nil
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
		"another is to start":        {pin{"p", "other", "a", besteffort.Starting}, "vm", "p", "", "takes no server now"},
		"another runs":               {pin{"p", "other", "a", besteffort.Running}, "vm", "p", "", "takes no server now"},
		"it waits":                   {pin{"p", "", "", besteffort.Waiting}, "vm", "p", "", "takes no server now"},
		"it is of another project":   {pin{"p", "", "a", besteffort.Starting}, "vm", "q", "", "has no best-effort work"},
		"there is no such VM at all": {pin{"p", "", "a", besteffort.Starting}, "mv", "p", "", "has no best-effort work"},
	} {
		node, refusal, err := controller.Pin(t.Context(), test.p, test.vm, test.project, []string{"s"})
		if node != test.node || err != nil || (refusal == "") != (test.denied == "") || !strings.Contains(refusal, test.denied) {
			t.Errorf("%s: node %q, refusal %q, %v", name, node, refusal, err)
		}
	}
}

// planner counts plans.
type planner struct{ plans *int }

func (p planner) Plan(s besteffort.Situation) besteffort.Plan {
	*p.plans++
	return suspending.Plan(s)
}

func TestWhoLooksAtTheQueueDoesNotHaveItPlannedEachTime(t *testing.T) {
	m, plans := newModel(2, "a"), 0
	m.submit(1, 60, 2, false)
	second := m.submit(1, 60, 2, false)
	desk := &controller.Desk{
		Shelf: shelfOf{nil, m}, Planner: planner{&plans}, Now: func() span.Instant { return m.now },
		Ground: controller.Ground{Snapshot: m.snapshot, Promises: m, Clear: clearing},
	}
	for range 10 {
		expected, err := desk.Expected(t.Context())
		if err != nil || expected[m.vm(second, 0).ID].Start <= m.now {
			t.Fatalf("expected is %v, %v", expected, err)
		}
	}
	if plans != 1 {
		t.Errorf("ten looks at once took %d plans, want 1", plans)
	}
	m.now += 10
	if _, err := desk.Expected(t.Context()); err != nil || plans != 2 {
		t.Errorf("one later took %d plans in all, %v; want 2", plans, err)
	}

	c := m.starts(suspending)
	desk.Planned = c.Expected
	runs(t, m, c, 1)
	m.now += 3
	expected, err := desk.Expected(t.Context())
	if err != nil || plans != 2 || expected[m.vm(second, 0).ID].Start <= m.now {
		t.Errorf("beside the controller it took %d plans in all, want 2: %v, %v", plans, expected, err)
	}
}

// shelfOf is a shelf of the model's requests.
type shelfOf struct {
	controller.Shelf
	*model
}

func (s shelfOf) OpenBestEffort(ctx context.Context) ([]controller.Request, error) {
	return s.model.OpenBestEffort(ctx)
}
