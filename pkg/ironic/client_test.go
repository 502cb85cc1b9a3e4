// SPDX-License-Identifier: Apache-2.0

package ironic_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/ironic"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// newClient returns a client of the lab's Ironic that calls wait instead of sleeping.
func newClient(t *testing.T, wait func()) *ironic.Client {
	t.Helper()
	return clientOf(t, labtest.Almanac, wait)
}

func clientOf(t *testing.T, u labtest.User, wait func()) *ironic.Client {
	t.Helper()
	session, err := keystone.NewSession(keystone.Connection{
		AuthURL: labtest.Keystone(t).AuthURL, Username: u.Name, Password: u.Password, ProjectName: u.Project,
	}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c, err := ironic.New(session, openstack.Options{Wait: func(context.Context, time.Duration) error {
		wait()
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestANodeIsReadByNameAndByID(t *testing.T) {
	t.Parallel()
	c, n := newClient(t, func() {}), labtest.NewIronicNode(t, nil)
	n.Maintain("a new disk")
	want := ironic.Node{
		ID: n.ID, Name: n.Name, Power: ironic.PowerOn, Provision: "available", Maintenance: true, MaintenanceReason: "a new disk",
	}
	for _, id := range []string{n.ID, n.Name} {
		got, err := c.Node(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by %s (-want +got):\n%s", id, diff)
		}
	}
	for _, id := range []string{"", "no-such-node", "no/such node?"} {
		if got, err := c.Node(t.Context(), id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q is %+v, %v; want a not found fault", id, got, err)
		}
	}
}

func TestTheNodeOfAHostIsFound(t *testing.T) {
	t.Parallel()
	c, n, other := newClient(t, func() {}), labtest.NewIronicNode(t, nil), labtest.NewIronicNode(t, nil)
	n.Set(map[string]any{"extra": map[string]any{"compute_node_id": "hypervisor-of-" + n.Name},
		"instance_info": map[string]any{"display_name": "instance-on-" + n.Name}})
	for name, host := range map[string][2]string{
		"by its name":                {n.Name, ""},
		"by its name without domain": {n.Name + ".example.org", ""},
		"by its hypervisor":          {"something", "hypervisor-of-" + n.Name},
		"by the host in extra":       {"hypervisor-of-" + n.Name, ""},
		"by its instance":            {"instance-on-" + n.Name, ""},
	} {
		if got, err := c.NodeOf(t.Context(), host[0], host[1]); err != nil || got.ID != n.ID {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	before := c.Calls()
	if _, err := c.NodeOf(t.Context(), n.Name, ""); err != nil || c.Calls() != before+1 {
		t.Errorf("by its name with %d calls, %v; want one", c.Calls()-before, err)
	}
	for _, host := range []string{"", "nobody", "no_body", "no body/here"} {
		if got, err := c.NodeOf(t.Context(), host, ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q is %+v, %v; want a not found fault", host, got, err)
		}
	}
	other.Set(map[string]any{"extra": map[string]any{"compute_node_id": "hypervisor-of-" + n.Name}})
	if got, err := c.NodeOf(t.Context(), "something", "hypervisor-of-"+n.Name); !fault.Is(err, fault.Conflict) {
		t.Errorf("with two nodes for it: %+v, %v; want a conflict", got, err)
	}
}

// Since Ironic's newer policy, it leaves out of lists what belongs to another project.
func TestANodeThatIronicMayHideIsNotMissing(t *testing.T) {
	t.Parallel()
	c, n := clientOf(t, labtest.Demo, func() {}), labtest.NewIronicNode(t, nil)
	for _, host := range []string{n.Name, "nobody"} {
		if got, err := c.NodeOf(t.Context(), host, ""); !fault.Is(err, fault.Denied) {
			t.Errorf("%q is %+v, %v; want a denied fault", host, got, err)
		}
	}
}

func TestAnOrderBringsANodeToAPowerState(t *testing.T) {
	t.Parallel()
	c, n := newClient(t, func() {}), labtest.NewIronicNode(t, nil)
	for _, tc := range []struct{ order, want ironic.Power }{
		{ironic.PowerSoftOff, ironic.PowerOff}, {ironic.PowerOff, ironic.PowerOff}, {ironic.PowerOn, ironic.PowerOn}, {ironic.PowerReboot, ironic.PowerOn},
	} {
		if err := c.SetPower(t.Context(), n.ID, tc.order, time.Minute); err != nil {
			t.Fatal(err)
		}
		n.Await("target_power_state", nil)
		if got, err := c.Node(t.Context(), n.ID); err != nil || got.Power != tc.want {
			t.Errorf("after %q: got %+v, %v; want %q", tc.order, got, err, tc.want)
		}
	}
	if err := c.SetPower(t.Context(), "no-such-node", ironic.PowerOn, 0); !fault.Is(err, fault.NotFound) {
		t.Errorf("of a node that is not there: %v", err)
	}
	if err := c.SetPower(t.Context(), n.ID, "standby", 0); !fault.Is(err, fault.Invalid) {
		t.Errorf("to a state that there is not: %v", err)
	}
}

func TestALockedNodeIsOrderedAgainUntilTheLockIsGone(t *testing.T) {
	t.Parallel()
	n := labtest.NewIronicNode(t, nil)
	var waits int
	c := newClient(t, func() {
		waits++
		n.Store(map[string]any{"reservation": nil})
	})
	n.Store(map[string]any{"reservation": "another-conductor"})
	if got, err := c.Node(t.Context(), n.ID); err != nil || got.Lock != "another-conductor" {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := c.SetPower(t.Context(), n.ID, ironic.PowerOff, 0); err != nil || waits != 1 {
		t.Fatalf("%v after %d waits, want one", err, waits)
	}
	n.Await("power_state", "power off")
}

// anyone requires no login.
type anyone struct{}

func (anyone) Token(context.Context, string) (string, error) { return "token", nil }
func (anyone) Endpoint(context.Context, string, string, []string) (string, error) {
	return "", fault.New(fault.Unavailable, "there is no catalog")
}

// stand returns a client of an Ironic that supports microversions up to most and answers by
// answer.
func stand(t *testing.T, most string, answer http.HandlerFunc) *ironic.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/" {
			_, _ = io.WriteString(w, `{"id": "v1", "version": {"id": "v1", "min_version": "1.1", "version": "`+most+`"}}`)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	c, err := ironic.New(anyone{}, openstack.Options{
		Override: server.URL, Wait: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestANodeThatStaysLockedIsAConflict(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	c := stand(t, "1.82", func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"error_message": "{\"faultstring\": \"Node n is locked by host c\"}"}`)
	})
	err := c.SetPower(t.Context(), "n", ironic.PowerOff, 0)
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "is locked by host c") || asked.Load() != 6 {
		t.Errorf("%v after %d attempts, want a conflict after 6", err, asked.Load())
	}
}

func TestTheHighestMicroversionThatBothKnowIsSpoken(t *testing.T) {
	t.Parallel()
	var spoken string
	for most, want := range map[string]string{"1.46": "1.46", "1.82": "1.82", "1.109": "1.95"} {
		c := stand(t, most, func(w http.ResponseWriter, r *http.Request) {
			spoken = r.Header.Get("X-OpenStack-Ironic-API-Version")
			_, _ = io.WriteString(w, `{"uuid": "u", "maintenance": false, "disable_power_off": true, "provision_state": null}`)
		})
		got, err := c.Node(t.Context(), "n")
		if err != nil || spoken != want || !got.StaysOn || got.Provision != "available" {
			t.Errorf("with one up to %s: spoke %s, got %+v, %v", most, spoken, got, err)
		}
	}
	if _, err := stand(t, "1.45", nil).Node(t.Context(), "n"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("with one that is too old: %v", err)
	}
}

func TestAllPagesOfNodesAreRead(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"":  `{"nodes": [{"uuid": "a", "maintenance": false}], "next": "x"}`,
		"a": `{"nodes": [{"uuid": "b", "maintenance": false}]}`,
	}
	all, err := stand(t, "1.82", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, pages[r.URL.Query().Get("marker")])
	}).Nodes(t.Context())
	if err != nil || len(all) != 2 || all[1].ID != "b" {
		t.Errorf("got %+v, %v", all, err)
	}
	for _, senseless := range []string{pages[""], `{}`, `{"nodes": [{}]}`, `<html>`} {
		_, err := stand(t, "1.82", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, senseless) }).Nodes(t.Context())
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v, want an unavailable fault", senseless, err)
		}
	}
}
