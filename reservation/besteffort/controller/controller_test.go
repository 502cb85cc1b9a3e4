// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/controller"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

var suspending = besteffort.Rules{Suspend: true, Backfilling: besteffort.Aggressive, Overheads: quick}

// runs advances the clock by seconds with one step per second, and fails the test if an
// invariant is broken.
func runs(t *testing.T, m *model, c *controller.Controller, seconds int) {
	t.Helper()
	for range seconds {
		if !m.steps(t.Context(), c) {
			t.Fatalf("almanacd was killed")
		}
		m.tick()
		if broken := m.broken(); broken != "" {
			t.Fatalf("at %d %s", m.now, broken)
		}
	}
}

func TestWorkIsSuspendedForAReservationAndGoesOnAfterIt(t *testing.T) {
	m := newModel(2, "a")
	id := m.submit(1, 60, 2, false)
	m.reserve(1060, 50, "a")
	c := m.starts(suspending)
	runs(t, m, c, 8)
	if s := m.server(id, 0); s.Status != "ACTIVE" || s.Host != "a" || m.vm(id, 0).Phase != besteffort.Running {
		t.Fatalf("before the reservation, the server is %+v, the VM %+v", s, m.vm(id, 0))
	}
	runs(t, m, c, 52)
	if s := m.server(id, 0); s.Status != "SUSPENDED" || !s.Locked || s.allocated || m.vm(id, 0).Phase != besteffort.Suspended {
		t.Fatalf("during the reservation, the server is %+v, the VM %+v", s, m.vm(id, 0))
	}
	runs(t, m, c, 60)
	if s := m.server(id, 0); s.Status != "ACTIVE" || s.Locked || !s.allocated {
		t.Fatalf("after the reservation, the server is %+v, the VM %+v", s, m.vm(id, 0))
	}
	runs(t, m, c, 60)
	if v := m.vm(id, 0); m.server(id, 0) != nil || v.Phase != besteffort.Done || v.Ran < 58 || v.Ran > 64 || m.made[v.ID] != 1 {
		t.Errorf("the VM is %+v; %d servers were created", v, m.made[v.ID])
	}
	if m.stored[id].Over == 0 || len(m.trusts) != 0 {
		t.Errorf("the request is %+v, the trusts are %v", m.stored[id], m.trusts)
	}
}

func TestWhatCannotBeSuspendedInTimeIsDeletedAndBeginsAnew(t *testing.T) {
	m := newModel(2, "a")
	id := m.submit(1, 60, 2, false)
	m.reserve(1060, 50, "a")
	m.slow[m.vm(id, 0).ID] = true
	c := m.starts(suspending)
	runs(t, m, c, 70)
	if v := m.vm(id, 0); v.Phase != besteffort.Waiting || v.Ran != 0 || v.Failures != 0 {
		t.Fatalf("the VM is %+v", v)
	}
	runs(t, m, c, 130)
	if v := m.vm(id, 0); v.Phase != besteffort.Done || m.made[v.ID] != 2 {
		t.Errorf("the VM is %+v; %d servers were created", v, m.made[v.ID])
	}
}

func TestAReservationThatStartsAtOnceComesFirst(t *testing.T) {
	m := newModel(2, "a")
	id := m.submit(1, 600, 2, false)
	c := m.starts(suspending)
	runs(t, m, c, 8)
	m.reserve(int64(m.now)+15, 50, "a") // the host must be clear already
	runs(t, m, c, 60)
	if v := m.vm(id, 0); v.Phase != besteffort.Suspended {
		t.Errorf("the VM is %+v", v)
	}
}

func TestHowAServerEndsSaysWhatBecomesOfItsVM(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(s *server)
		phase   besteffort.Phase
		made    int
		reason  string
	}{
		"its guest shuts down":       {func(s *server) { s.Status = "SHUTOFF" }, besteffort.Done, 1, "shut down"},
		"its owner deletes it":       {func(s *server) { s.gone, s.allocated, s.byOwner = true, false, true }, besteffort.Done, 1, "by a user of its project"},
		"somebody else takes it":     {func(s *server) { s.gone, s.allocated = true, false }, besteffort.Running, 2, ""},
		"its host fails":             {func(s *server) { s.Status, s.Fault = "ERROR", "the disk is gone." }, besteffort.Running, 2, ""},
		"an admin moves it":          {func(s *server) { s.Host = "b" }, besteffort.Running, 1, ""},
		"its owner has it suspended": {func(s *server) { s.Status = "SUSPENDED" }, besteffort.Running, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(2, "a", "b")
			id := m.submit(1, 600, 2, false)
			c := m.starts(suspending)
			runs(t, m, c, 8)
			test.happens(m.server(id, 0))
			runs(t, m, c, 15)
			v := m.vm(id, 0)
			if v.Phase != test.phase || m.made[v.ID] != test.made || !strings.Contains(v.Reason, test.reason) {
				t.Errorf("the VM is %+v; %d servers were created; want %s, %d and %q", v, m.made[v.ID], test.phase, test.made, test.reason)
			}
			if name == "an admin moves it" && v.Node != "b" {
				t.Errorf("the VM without a server is recorded on %s", v.Node)
			}
		})
	}
}

func TestWhatNovaRefusesIsTriedAgainOrGivenUp(t *testing.T) {
	for name, test := range map[string]struct {
		refusal error
		phase   besteffort.Phase
	}{
		"the quota is used up": {fault.New(fault.Denied, "Quota exceeded for cores"), besteffort.Waiting},
		"the flavor is gone":   {fault.New(fault.Invalid, "Flavor 7 could not be found"), besteffort.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(2, "a")
			m.refuses = func() error { return test.refusal }
			id := m.submit(1, 60, 2, false)
			o := m.starts(suspending).Options
			o.Limits.Retries = 2
			runs(t, m, controller.New(o), 200)
			v := m.vm(id, 0)
			if v.Phase != test.phase || !strings.Contains(v.Reason, fault.Of(test.refusal).Message) || len(m.servers) != 0 {
				t.Errorf("the VM is %+v", v)
			}
		})
	}
}

func TestACanceledRequestLosesItsServersWhateverTheyDo(t *testing.T) {
	for at := range 75 {
		m := newModel(2, "a")
		id := m.submit(2, 60, 1, at%2 == 0)
		m.reserve(1060, 50, "a")
		c := m.starts(suspending)
		runs(t, m, c, at)
		m.stored[id].Canceled = m.now
		runs(t, m, c, 40)
		if r := m.stored[id]; r.Status() != state.StatusCanceled || r.Over == 0 || len(m.alive(r.VMs[0].ID)) != 0 || len(m.trusts) != 0 {
			t.Fatalf("canceled after %d s, the request is %+v", at, r)
		}
	}
}

func TestParallelWorkBeginsAnewTogether(t *testing.T) {
	m := newModel(2, "a", "b")
	id := m.submit(4, 600, 1, true)
	c := m.starts(suspending)
	runs(t, m, c, 8)
	first := m.server(id, 0).ID
	lost := m.server(id, 3)
	lost.gone, lost.allocated = true, false
	runs(t, m, c, 20)
	for n := range 4 {
		if v := m.vm(id, n); v.Phase != besteffort.Running || m.made[v.ID] != 2 {
			t.Errorf("VM %d is %+v; %d servers were created", n, v, m.made[v.ID])
		}
	}
	if m.server(id, 0).ID == first {
		t.Error("the first VM did not start again")
	}
}

// One mishap happens at each call in turn. In every case, a VM never has a second server,
// no server is on a reserved host, no host is oversold, and all work is done in the end.
//
//make:test-drawn
func TestNothingIsLostWhereverAlmanacdIsKilled(t *testing.T) {
	for _, what := range []mishap{unsent, lost, killed, killedBy} {
		for at := 0; ; at++ {
			calls := 0
			m := scene()
			m.trouble = func(string) mishap {
				if calls++; calls == at+1 {
					return what
				}
				return fine
			}
			if done := lives(t, m, 400); done != "" {
				t.Fatalf("mishap %d at call %d: %s", what, at, done)
			}
			if calls <= at || at > 3000 {
				break
			}
			at += at / 40 // every early call, and some of the later ones
			if testing.Short() {
				at += 6
			}
		}
	}
}

// scene returns a model with work that is suspended once, some of it parallel.
func scene() *model {
	m := newModel(2, "a", "b")
	m.submit(1, 70, 2, false)
	m.submit(2, 30, 1, true)
	m.submit(2, 20, 1, false)
	m.reserve(1060, 40, "a")
	m.reserve(1080, 40, "b")
	return m
}

// lives advances the clock by seconds with an almanacd that restarts after each kill. It
// returns what is wrong in the end, or "".
func lives(t testingT, m *model, seconds int) string {
	c := m.starts(suspending)
	for range seconds {
		if !m.steps(t.Context(), c) {
			c = m.starts(suspending)
		}
		m.tick()
		if broken := m.broken(); broken != "" {
			return broken
		}
	}
	for id, r := range m.stored {
		if r.Status() != state.StatusDone || r.Over == 0 {
			return id + " is " + string(r.Status())
		}
	}
	if len(m.trusts) != 0 || slices.ContainsFunc(m.hosts, func(h string) bool { return m.free(h) != m.room }) {
		return "something is left"
	}
	return ""
}

// The rule of TestNothingIsLostWhereverAlmanacdIsKilled holds with many different mishaps too.
//
//make:test-drawn
func TestNothingIsLostInACrowdOfMishaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := scene()
		every := rapid.IntRange(8, 60).Draw(t, "every")
		calls := 0
		m.trouble = func(string) mishap {
			if calls++; m.now > 1200 || calls%every != 0 {
				return fine
			}
			return mishap(rapid.IntRange(0, 4).Draw(t, "mishap"))
		}
		m.builds, m.takes = rapid.Int64Range(0, 3).Draw(t, "builds"), rapid.Int64Range(0, 2).Draw(t, "takes")
		m.lateness = rapid.Int64Range(0, 6).Draw(t, "lateness")
		if slow := rapid.IntRange(0, 3).Draw(t, "slow"); slow > 0 {
			m.slow[m.vm("request-1", 0).ID] = slow == 1
		}
		if wrong := lives(t, m, 700); wrong != "" {
			t.Fatalf("%s", wrong)
		}
	})
}
