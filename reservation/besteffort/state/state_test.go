// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

const now = span.Instant(1000)

func TestTheNextTaskFollowsFromTheRecordAndWhatWasSeen(t *testing.T) {
	had := &state.Held{ProjectID: "p"}
	for name, test := range map[string]struct {
		vm     state.VM
		status string // of the server; empty if there is none
		task   string
		looked bool
		has    *state.Held
		want   state.Task
	}{
		"a server that was not requested is created":     {vm: state.VM{Phase: besteffort.Starting}, want: state.TaskCreate},
		"one that was requested is not created again":    {vm: state.VM{Phase: besteffort.Starting, Asked: 990}, want: state.TaskNone},
		"one that was found is adopted":                  {vm: state.VM{Phase: besteffort.Starting, Asked: 990, Server: "s"}, status: "BUILD", want: state.TaskAdopt},
		"a running one is left alone":                    {vm: state.VM{Phase: besteffort.Running, Server: "s"}, status: "ACTIVE", want: state.TaskNone},
		"after a resumption it is unlocked":              {vm: state.VM{Phase: besteffort.Running, Server: "s", Held: had}, status: "ACTIVE", want: state.TaskUnlock},
		"without an allocation it is restored":           {vm: state.VM{Phase: besteffort.Running, Server: "s", Held: had, Released: true}, status: "ACTIVE", looked: true, want: state.TaskRestore},
		"one that must leave is suspended":               {vm: state.VM{Phase: besteffort.Suspending, Server: "s"}, status: "ACTIVE", want: state.TaskSuspend},
		"but not again at once":                          {vm: state.VM{Phase: besteffort.Suspending, Server: "s", Asked: 990}, status: "ACTIVE", want: state.TaskNone},
		"but again when nothing happens":                 {vm: state.VM{Phase: besteffort.Suspending, Server: "s", Asked: 985}, status: "ACTIVE", want: state.TaskSuspend},
		"and not while Nova is busy with it":             {vm: state.VM{Phase: besteffort.Suspending, Server: "s"}, status: "ACTIVE", task: "suspending", want: state.TaskNone},
		"a suspended one loses its allocation":           {vm: state.VM{Phase: besteffort.Suspending, Server: "s", Asked: 990}, status: "SUSPENDED", want: state.TaskFree},
		"also where another program restored it":         {vm: state.VM{Phase: besteffort.Suspended, Server: "s", Held: had}, status: "SUSPENDED", looked: true, has: had, want: state.TaskFree},
		"and is left alone without one":                  {vm: state.VM{Phase: besteffort.Suspended, Server: "s", Held: had}, status: "SUSPENDED", looked: true, want: state.TaskNone},
		"it is resumed when Placement was read":          {vm: state.VM{Phase: besteffort.Resuming, Server: "s", Held: had}, status: "SUSPENDED", looked: true, want: state.TaskResume},
		"and not before":                                 {vm: state.VM{Phase: besteffort.Resuming, Server: "s", Held: had}, status: "SUSPENDED", want: state.TaskNone},
		"one whose time is up is deleted":                {vm: state.VM{Phase: besteffort.Stopping, Server: "s"}, status: "ACTIVE", want: state.TaskDelete},
		"nothing is done with a server that is not seen": {vm: state.VM{Phase: besteffort.Stopping, Server: "s"}, want: state.TaskNone},
		"and nothing with a VM that is over":             {vm: state.VM{Phase: besteffort.Done, Server: "s"}, status: "ACTIVE", want: state.TaskNone},
	} {
		seen := state.Sight{Looked: test.looked, Allocated: test.has}
		if test.status != "" {
			seen.Server = &state.Server{ID: "s", Status: test.status, Task: test.task}
		}
		if got := test.vm.Next(seen, now); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestVMsLeaveHostsBeforeOthersBegin(t *testing.T) {
	for phase, want := range map[besteffort.Phase]state.Turn{
		besteffort.Suspending: state.TurnLeave, besteffort.Suspended: state.TurnLeave, besteffort.Stopping: state.TurnLeave,
		besteffort.Running: state.TurnContinue, besteffort.Resuming: state.TurnContinue, besteffort.Starting: state.TurnBegin,
	} {
		if got := (&state.VM{Phase: phase}).Turn(); got != want {
			t.Errorf("%s is in turn %d, want %d", phase, got, want)
		}
	}
}

func TestASuspensionTakesAtMostHalfOfTheTimeInWhichAHostIsCleared(t *testing.T) {
	view := state.ClusterView{Clear: 20}
	hold := besteffort.Hold{Node: "a", Span: span.Span{Start: now, End: now + 500}} // of a reservation that starts 20 s later
	for name, test := range map[string]struct {
		node  string
		until span.Instant
		want  span.Instant
	}{
		"before a reservation":      {"a", now, now + 10},
		"that is close already":     {"a", now + 15, now + 15},
		"after it":                  {"a", now + 600, now + 720},
		"on a host without another": {"b", now, now + 120},
	} {
		if got := view.Deadline([]besteffort.Hold{hold}, test.node, test.until, 120); got != test.want {
			t.Errorf("%s: until %d, want %d", name, got, test.want)
		}
	}
}

func TestAStatusFollowsFromTheVMs(t *testing.T) {
	for name, test := range map[string]struct {
		phases []besteffort.Phase
		want   state.Status
	}{
		"none runs":                {[]besteffort.Phase{besteffort.Waiting, besteffort.Done}, state.StatusWaiting},
		"one runs":                 {[]besteffort.Phase{besteffort.Waiting, besteffort.Running}, state.StatusRunning},
		"one is suspended":         {[]besteffort.Phase{besteffort.Waiting, besteffort.Suspended}, state.StatusSuspended},
		"all are done":             {[]besteffort.Phase{besteffort.Done, besteffort.Done}, state.StatusDone},
		"one of all that are over": {[]besteffort.Phase{besteffort.Done, besteffort.Failed}, state.StatusFailed},
	} {
		r := state.Request{}
		for _, p := range test.phases {
			r.VMs = append(r.VMs, state.VM{Phase: p})
		}
		if got := r.Status(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if r.Canceled = now; r.Status() != state.StatusCanceled {
			t.Errorf("%s, canceled: %s", name, r.Status())
		}
	}
}
