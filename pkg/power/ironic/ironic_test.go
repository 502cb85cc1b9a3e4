// SPDX-License-Identifier: Apache-2.0

package ironic_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/ironic"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/power"
	driver "github.com/almanac-cloud/almanac/pkg/power/ironic"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func newClient(t *testing.T, o openstack.Options) *ironic.Client {
	t.Helper()
	u := labtest.Almanac
	session, err := keystone.NewSession(keystone.Connection{
		AuthURL: labtest.Keystone(t).AuthURL, Username: u.Name, Password: u.Password, ProjectName: u.Project,
	}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	client, err := ironic.New(session, o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// impatient waits a tenth of the duration.
func impatient(ctx context.Context, d time.Duration) error { return job.Pause(ctx, d/10) }

// newMachine returns the machine of a node of the test's own.
func newMachine(t *testing.T) (*driver.Machine, *labtest.IronicNode) {
	t.Helper()
	n := labtest.NewIronicNode(t, nil)
	return driver.New(newClient(t, openstack.Options{Wait: impatient}), n.Name, "", impatient), n
}

var soft, hard = power.PowerOffMode{Patience: 30 * time.Second}, power.PowerOffMode{Patience: 5 * time.Second, Hard: true}

func read(t *testing.T, m *driver.Machine) power.Reading {
	t.Helper()
	r, err := m.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestANodeIsSwitchedAndReadAndLeftAloneWhenItHasTheState(t *testing.T) {
	t.Parallel()
	m, n := newMachine(t)
	if got := read(t, m); got != (power.Reading{State: energy.On}) {
		t.Errorf("at first: got %+v", got)
	}
	for _, tc := range []struct {
		to  energy.State
		how power.PowerOffMode
	}{
		{energy.On, soft}, {energy.Off, soft}, {energy.Off, soft}, {energy.Off, hard}, {energy.On, soft}, {energy.On, hard},
		{energy.Off, power.PowerOffMode{}}, {energy.On, soft}, {energy.Off, power.PowerOffMode{Hard: true}},
	} {
		if err := m.Switch(t.Context(), tc.to, tc.how); err != nil {
			t.Fatalf("%s %+v: %v", tc.to, tc.how, err)
		}
		if got := read(t, m); got != (power.Reading{State: tc.to}) {
			t.Errorf("switched %s: got %+v", tc.to, got)
		}
		if is := n.Show()["power_state"]; is != "power "+string(tc.to) {
			t.Errorf("switched %s: Ironic reports %v", tc.to, is)
		}
	}
	if err := m.Switch(t.Context(), energy.Standby, soft); !fault.Is(err, fault.Denied) {
		t.Errorf("to standby: %v", err)
	}
}

func TestAnOperatorSeesTheNodeSwitched(t *testing.T) {
	t.Parallel()
	m, n := newMachine(t)
	if err := m.Switch(t.Context(), energy.Off, soft); err != nil {
		t.Fatal(err)
	}
	var seen struct {
		Power string `json:"power_state"`
	}
	labtest.Keystone(t).OpenstackJSON(t, labtest.Admin, &seen, "baremetal", "node", "show", n.Name)
	if seen.Power != "power off" {
		t.Errorf("openstack baremetal node show prints %q", seen.Power)
	}
}

func TestANodeThatSomebodyWorksOnIsUntouchable(t *testing.T) {
	t.Parallel()
	m, n := newMachine(t)
	retired := func() {
		n.Store(map[string]any{"provision_state": "manageable"})
		n.Set(map[string]any{"retired": true, "retired_reason": "too old"})
	}
	protected := func() {
		n.Provision("active", "active")
		n.Set(map[string]any{"protected": true, "protected_reason": "the tax office"})
	}
	state := func(provision string) func() {
		return func() { n.Store(map[string]any{"provision_state": provision}) }
	}
	for _, tc := range []struct {
		name string
		make func()
		want string
	}{
		{"maintenance", func() { n.Maintain("a new disk") }, "in maintenance: a new disk"},
		{"fault", func() { n.Store(map[string]any{"maintenance": true, "fault": "power failure"}) }, "fault of the node: power failure"},
		{"retired", retired, "retired: too old"},
		{"being switched on", func() { n.Store(map[string]any{"target_power_state": "power on"}) }, `to "power on" for somebody else`},
		{"being switched off", func() { n.Store(map[string]any{"target_power_state": "power off"}) }, `to "power off" for somebody else`},
		{"verifying", state("verifying"), `"verifying"`},
		{"inspect wait", state("inspect wait"), `"inspect wait"`},
		{"cleaning", state("cleaning"), `"cleaning"`},
		{"clean failed", state("clean failed"), `"clean failed"`},
		{"deploying", state("deploying"), `"deploying"`},
		{"wait call-back", state("wait call-back"), `"wait call-back"`},
		{"deleting", state("deleting"), `"deleting"`},
		{"rescue", state("rescue"), `"rescue"`},
		{"error", state("error"), `"error"`},
		{"servicing", state("servicing"), `"servicing"`},
		{"protected", protected, "protected: the tax office"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.make()
			if got := read(t, m); got.State != energy.On || !strings.Contains(got.Untouchable, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
			to := energy.Off
			if tc.name == "being switched off" {
				to = energy.On
			}
			if err := m.Switch(t.Context(), to, hard); !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("switched %s: %v, want a denied fault: %q", to, err, tc.want)
			}
			if node := n.Show(); node["power_state"] != "power on" {
				t.Errorf("the node is %v", node["power_state"])
			}
		})
		n.Store(map[string]any{"provision_state": "available", "maintenance": false, "fault": nil, "target_power_state": nil,
			"retired": false, "protected": false})
	}
}

// anyone requires no login.
type anyone struct{}

func (anyone) Token(context.Context, string) (string, error) { return "token", nil }
func (anyone) Endpoint(context.Context, string, string, []string) (string, error) {
	return "", fault.New(fault.Unavailable, "there is no catalog")
}

// Debian's Ironic does not have this field yet.
func TestANodeThatMustNotBePoweredOffIsUntouchable(t *testing.T) {
	t.Parallel()
	newer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("Ironic was asked to %s %s", r.Method, r.URL)
		case r.URL.Path == "/v1/":
			_, _ = io.WriteString(w, `{"version": {"id": "v1", "min_version": "1.1", "version": "1.95"}}`)
		default:
			_, _ = io.WriteString(w, `{"uuid": "u", "power_state": "power on", "provision_state": "active", "maintenance": false, "disable_power_off": true}`)
		}
	}))
	defer newer.Close()
	client, err := ironic.New(anyone{}, openstack.Options{Override: newer.URL})
	if err != nil {
		t.Fatal(err)
	}
	m := driver.New(client, "host", "u", nil)
	if got := read(t, m); got.State != energy.On || !strings.Contains(got.Untouchable, "disable_power_off") {
		t.Errorf("got %+v", got)
	}
	if err := m.Switch(t.Context(), energy.Off, hard); !fault.Is(err, fault.Denied) {
		t.Errorf("switched: %v", err)
	}
}

func TestANodeAtRestIsSwitched(t *testing.T) {
	t.Parallel()
	m, n := newMachine(t)
	for i, provision := range []string{"enroll", "manageable", "active"} {
		n.Store(map[string]any{"provision_state": provision})
		to := []energy.State{energy.Off, energy.On}[i%2]
		if err := m.Switch(t.Context(), to, soft); err != nil || read(t, m).State != to {
			t.Errorf("in the provision state %s: %v", provision, err)
		}
	}
}

func TestAnOrderThatIsUnderWayIsAwaited(t *testing.T) {
	t.Parallel()
	n := labtest.NewIronicNode(t, nil)
	n.Store(map[string]any{"target_power_state": "power off"})
	looks := 0
	m := driver.New(newClient(t, openstack.Options{}), n.Name, n.ID, func(context.Context, time.Duration) error {
		if looks++; looks == 2 {
			n.Store(map[string]any{"target_power_state": nil, "power_state": "power off"})
		}
		return nil
	})
	if err := m.Switch(t.Context(), energy.Off, soft); err != nil || looks != 2 {
		t.Errorf("%v after %d looks, want 2", err, looks)
	}
}

func TestANodeThatSomebodySwitchesBackIsAnError(t *testing.T) {
	t.Parallel()
	n := labtest.NewIronicNode(t, nil)
	n.Store(map[string]any{"target_power_state": "power off"})
	m := driver.New(newClient(t, openstack.Options{}), n.Name, n.ID, func(context.Context, time.Duration) error {
		n.Store(map[string]any{"target_power_state": nil})
		return nil
	})
	err := m.Switch(t.Context(), energy.Off, soft)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "somebody else switches it") {
		t.Errorf("got %v", err)
	}
}

//make:test-energy
func TestALockedNodeIsAConflictAndStaysAsItIs(t *testing.T) {
	t.Parallel()
	m, n := newMachine(t)
	n.Store(map[string]any{"reservation": "another-conductor"})
	if got := read(t, m); got != (power.Reading{State: energy.On}) {
		t.Errorf("locked: got %+v", got)
	}
	labtest.Long(t) // Ironic itself waits for the lock at each attempt
	if err := m.Switch(t.Context(), energy.Off, hard); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "is locked by host another-conductor") {
		t.Errorf("got %v, want a conflict", err)
	}
	if is := n.Show()["power_state"]; is != "power on" {
		t.Errorf("the node is %v", is)
	}
}

func TestIronicKnowsItsHosts(t *testing.T) {
	t.Parallel()
	c, n := newClient(t, openstack.Options{}), labtest.NewIronicNode(t, nil)
	for host, want := range map[string]bool{n.Name: true, n.Name + ".example.org": true, "no-such-host": false} {
		if knows, err := driver.Knows(t.Context(), c, host); err != nil || knows != want {
			t.Errorf("%s: %v, %v; want %v", host, knows, err, want)
		}
	}
	if _, err := driver.Knows(t.Context(), newClient(t, openstack.Options{Override: "http://127.0.0.1:1"}), n.Name); err == nil {
		t.Error("an Ironic that does not answer is no doubt")
	}
}

func TestAHostWithoutANodeCannotBeRead(t *testing.T) {
	t.Parallel()
	c := newClient(t, openstack.Options{})
	for _, m := range []*driver.Machine{driver.New(c, "no-such-host", "", nil), driver.New(c, "host", "no-such-node", nil)} {
		if r, err := m.Read(t.Context()); !fault.Is(err, fault.NotFound) {
			t.Errorf("read %+v, %v", r, err)
		}
		if err := m.Switch(t.Context(), energy.Off, hard); !fault.Is(err, fault.NotFound) {
			t.Errorf("switched: %v", err)
		}
	}
}
