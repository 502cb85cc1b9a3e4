// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/tests/oslotest/memory"
)

// bubble runs a test with a broker in memory and a clock of its own.
func bubble(t *testing.T, test func(t *testing.T, broker oslo.Transport)) {
	synctest.Test(t, func(t *testing.T) {
		broker := memory.New()
		t.Cleanup(func() {
			if err := broker.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, broker)
	})
}

// listen returns a fleet that receives announcements.
func listen(t *testing.T, broker oslo.Transport, name string) *power.Fleet {
	f := power.NewFleet(power.FleetOptions{Client: client(t, broker), Exchange: "almanac", Now: time.Now})
	serve(t, broker, power.AgentsTopic, name, f.Endpoint())
	return f
}

// remote runs an agent that serves on the broker, and announces it now.
func remote(t *testing.T, broker oslo.Transport, name, file string, machines map[string]power.Machine) (a *power.Agent, stop func()) {
	t.Helper()
	driven := map[string]power.Driven{}
	for host, m := range machines {
		driven[host] = power.Driven{Driver: "test", Machine: m}
	}
	a, end := agentOf(t, power.AgentOptions{Name: name, StateFile: file, Machines: driven, Client: client(t, broker)})
	unserve := serve(t, broker, power.Topic, name, a.Endpoint())
	announce(t, a)
	return a, func() { unserve(); end() }
}

func announce(t *testing.T, a *power.Agent) {
	t.Helper()
	if err := a.Announce(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAFleetKnowsWhoSwitchesWhat(t *testing.T) {
	bubble(t, func(t *testing.T, broker oslo.Transport) {
		f := listen(t, broker, "controller")
		one, stop := remote(t, broker, "one", "", map[string]power.Machine{"h1": &machine{}, "h2": &machine{}})
		two, _ := remote(t, broker, "two", "", map[string]power.Machine{"h2": &machine{}, "h3": &machine{}})
		synctest.Wait()
		states := []energy.State{energy.On, energy.Off}
		hosts, twice := f.Access()
		if diff := cmp.Diff(map[string]energy.Access{
			"h1": {Host: "h1", Agent: "one", Driver: "test", States: states}, "h3": {Host: "h3", Agent: "two", Driver: "test", States: states},
		}, hosts); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]string{"h2": "one, two"}, twice); diff != "" {
			t.Error(diff)
		}
		if _, err := f.Order(t.Context(), numbered(1, "h2", energy.Off)); !fault.Is(err, fault.Conflict) {
			t.Errorf("a host of two agents: got %v", err)
		}
		if _, err := f.Order(t.Context(), numbered(1, "h9", energy.Off)); !fault.Is(err, fault.NotFound) {
			t.Errorf("a host of none: got %v", err)
		}

		stop()
		seen := at(0)
		time.Sleep(20 * time.Second)
		announce(t, two)
		time.Sleep(11 * time.Second)
		if hosts, twice = f.Access(); len(hosts) != 2 || len(twice) != 0 || hosts["h2"].Host == "" {
			t.Errorf("after one is lost: %v, twice %v", hosts, twice)
		}
		want := []energy.Agent{{Name: "one", Hosts: 2, Seen: seen, Lost: true}, {Name: "two", Hosts: 2, Seen: seen.Add(20)}}
		if diff := cmp.Diff(want, f.Agents()); diff != "" {
			t.Error(diff)
		}
		began := time.Now()
		if _, err := f.Order(t.Context(), numbered(1, "h1", energy.Off)); !fault.Is(err, fault.Unavailable) || time.Since(began) > 0 {
			t.Errorf("a host of a lost agent: got %v after %v", err, time.Since(began))
		}
		announce(t, one)
		synctest.Wait()
		if hosts, _ = f.Access(); hosts["h1"].Host == "" {
			t.Error("an agent that is back is not known")
		}
	})
}

func TestTwoAgentsOfOneNameAreNotedAndARestartIsNot(t *testing.T) {
	bubble(t, func(t *testing.T, broker oslo.Transport) {
		f := listen(t, broker, "controller")
		old, stop := remote(t, broker, "one", "", map[string]power.Machine{"h1": &machine{}})
		synctest.Wait()
		stop()
		remote(t, broker, "one", "", map[string]power.Machine{"h1": &machine{}})
		synctest.Wait()
		if hosts, twice := f.Access(); len(hosts) != 1 || len(twice) != 0 {
			t.Errorf("after a restart: %v, twice %v", hosts, twice)
		}
		announce(t, old)
		synctest.Wait()
		if hosts, twice := f.Access(); len(hosts) != 0 || twice["h1"] != "2 agents of the name one" {
			t.Errorf("two of a name: %v, twice %v", hosts, twice)
		}
	})
}

func TestAFleetThatIsNewHearsOfAgentsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, broker oslo.Transport) {
		a, _ := remote(t, broker, "one", "", map[string]power.Machine{"h1": &machine{}})
		f := listen(t, broker, "later")
		if err := f.Discover(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-a.DiscoveryRequested()
		announce(t, a)
		synctest.Wait()
		if hosts, _ := f.Access(); len(hosts) != 1 {
			t.Errorf("got %v", hosts)
		}
	})
}

func TestOrdersAndReadingsGoToTheAgentOfTheHost(t *testing.T) {
	bubble(t, func(t *testing.T, broker oslo.Transport) {
		f := listen(t, broker, "controller")
		machines, hosts := map[string]power.Machine{}, []string{"h1", "unknown"}
		for i := range 100 {
			host := fmt.Sprintf("many-%d", i)
			machines[host] = &machine{state: energy.On}
			hosts = append(hosts, host)
		}
		m := &machine{state: energy.On}
		remote(t, broker, "one", "", map[string]power.Machine{"h1": m})
		remote(t, broker, "two", "", machines)
		synctest.Wait()
		o := numbered(1, "h1", energy.Off)
		o.Hard, o.Patience = true, 90
		becomes(t, give(t, f, o), energy.OrderAccepted, "")
		synctest.Wait()
		becomes(t, give(t, f, o), energy.OrderDone, "")
		got := f.Read(t.Context(), hosts)
		if len(got) != 102 || got["h1"].State != energy.Off || got["many-99"].State != energy.On || got["many-99"].Watts != 100 {
			t.Errorf("%d readings, h1 %+v, many-99 %+v", len(got), got["h1"], got["many-99"])
		}
		if problem := got["unknown"].Problem; !strings.Contains(problem, "no agent has announced") {
			t.Errorf("unknown: %q", problem)
		}
	})
}

func TestAnAgentThatDiesWithAnOrderLeavesItInDoubtAndKnowsItAfterwards(t *testing.T) {
	bubble(t, func(t *testing.T, broker oslo.Transport) {
		f := listen(t, broker, "controller")
		file, m := stateFile(t), &machine{state: energy.On, gate: make(chan struct{})}
		_, stop := remote(t, broker, "one", file, map[string]power.Machine{"h1": m})
		synctest.Wait()
		o := numbered(1, "h1", energy.Off)
		o.Deadline = at(600)
		becomes(t, give(t, f, o), energy.OrderAccepted, "")
		stop()
		began := time.Now()
		if _, err := f.Order(t.Context(), o); !fault.Is(err, fault.Unavailable) || time.Since(began) != 10*time.Second {
			t.Errorf("got %v after %v, want Unavailable after 10 s", err, time.Since(began))
		}
		if r := f.Read(t.Context(), []string{"h1"})["h1"]; r.Problem == "" {
			t.Errorf("got %+v, want a problem", r)
		}
		close(m.gate)
		remote(t, broker, "one", file, map[string]power.Machine{"h1": m})
		synctest.Wait()
		becomes(t, give(t, f, o), energy.OrderDone, "")
		if got := m.switched(); got != "[off]" {
			t.Errorf("the machine was switched %v", got)
		}
	})
}

func TestOfTwoControllersTheOneWithTheNewerEpochIsHeard(t *testing.T) {
	bubble(t, func(t *testing.T, broker oslo.Transport) {
		old, next := listen(t, broker, "old"), listen(t, broker, "new")
		m := &machine{state: energy.On}
		remote(t, broker, "one", "", map[string]power.Machine{"h1": m, "h2": &machine{}})
		synctest.Wait()
		late := numbered(2, "h1", energy.Off)
		becomes(t, give(t, old, numbered(1, "h1", energy.On)), energy.OrderAccepted, "")
		synctest.Wait()
		o := numbered(1, "h2", energy.On)
		o.Epoch = 2
		becomes(t, give(t, next, o), energy.OrderAccepted, "")
		becomes(t, give(t, old, late), energy.OrderRefused, "a newer controller has taken over")
		synctest.Wait()
		if got := m.switched(); got != "[on]" {
			t.Errorf("the machine was switched %v", got)
		}
	})
}

func TestAnAnswerThatIsNoneIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, broker oslo.Transport) {
		f := listen(t, broker, "controller")
		a, _ := agentOf(t, power.AgentOptions{Name: "odd", Machines: map[string]power.Driven{"h1": {Machine: &machine{}}}, Client: client(t, broker)})
		answer := func(given any) oslo.Handler {
			return func(context.Context, *oslo.Request) (any, error) { return given, nil }
		}
		serve(t, broker, power.Topic, "odd", oslo.Endpoint{Version: "1.0", Methods: map[string]oslo.Handler{
			"order": answer(map[string]string{"progress": "perhaps"}),
			"read":  answer(map[string]any{"readings": []map[string]string{{"host": "h7", "state": "on"}}}),
		}})
		announce(t, a)
		synctest.Wait()
		if got, err := f.Order(t.Context(), numbered(1, "h1", energy.Off)); !fault.Is(err, fault.Unavailable) || got.Progress != "" {
			t.Errorf("got %+v, %v", got, err)
		}
		got := f.Read(t.Context(), []string{"h1"})
		if len(got) != 1 || !strings.Contains(got["h1"].Problem, "did not answer for this host") {
			t.Errorf("got %+v", got)
		}
	})
}
