package controller

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// Limits bound what is waited for, in seconds.
type Limits struct {
	// Build is how long a server may take until it is ACTIVE, Order how long a suspension or
	// a resumption may take beyond what was expected.
	Build, Order int64
	// Doubt is how long after a server was asked for without an answer it may yet appear: no
	// shorter than a call to Nova may take.
	Doubt int64
	// Retries is how often a VM is begun anew that has failed, Backoff the time before the
	// first of them; it doubles.
	Retries int
	Backoff int64

	// alone says that there is but one host: then no other can be tried.
	alone bool
}

// longestBackoff is the most that lies between two tries, in seconds.
const longestBackoff = 3600

func (l Limits) backoff(failures int) int64 {
	return min(longestBackoff, l.Backoff<<min(max(failures-1, 0), 12))
}

// sight is what was seen of a VM in the cloud.
type sight struct {
	server *Server // its own; nil where Nova has none
	// surplus are servers with its mark that it has not, as one whose creation nobody heard
	// the answer of.
	surplus []Server
	// byOwner says that somebody of its project has deleted its server.
	byOwner bool
	// looked says that Placement was asked, and has is what it said.
	looked     bool
	has        *Held
	generation int64 // of has
}

// idle says that Nova is busy with nothing of it.
func (s *Server) idle() bool { return s.Task == "" }

// look tells a VM's own server from others with its mark.
// Anybody of the project can write the mark: what was not made after the request, by its
// user, with its flavor and from its image, is not of it.
func look(r *Request, v *VM, all []Server) (seen sight) {
	for i := range all {
		s := &all[i]
		marked := s.VM == v.ID && s.Created >= r.Created.Add(-clockSkew) && s.UserID == r.UserID && s.Flavor == r.Flavor.Name && s.Image == r.Image.ID
		awaited := v.Server == "" && v.Phase == besteffort.Starting && v.Asked != 0 && s.Attempt == v.Attempt
		switch {
		case (s.ID == v.Server || marked && awaited) && seen.server == nil:
			seen.server = s
		case marked && s.Attempt <= v.Attempt:
			seen.surplus = append(seen.surplus, *s)
		}
	}
	return seen
}

// clockSkew is by how many seconds the clocks of Nova and of the database may differ.
const clockSkew = 60

// advance brings what is recorded of a VM up to what was seen of it. It gives no order.
func (v *VM) advance(r *Request, seen sight, now span.Instant, l Limits) {
	switch {
	case v.over():
		return
	case v.Phase == besteffort.Stopping:
		if r.Cancelled != 0 {
			v.Then = besteffort.Done
		}
		v.stopped(seen, now)
		return
	case v.Phase == besteffort.Waiting:
		if r.Cancelled != 0 {
			v.enter(besteffort.Done, now, cancelled)
		}
		return
	case seen.server == nil:
		v.missing(r, seen, now, l)
		return
	}
	if v.Server = seen.server.ID; seen.server.Host != "" && seen.server.Host != v.Node {
		if v.Node = seen.server.Host; v.Phase == besteffort.Running {
			v.Held, v.Released = nil, true // what it had elsewhere
		}
	}
	if r.Cancelled != 0 {
		v.remove(besteffort.Done, now, cancelled)
		return
	}
	if v.ended(seen.server, now, l) {
		return
	}
	switch v.Phase {
	case besteffort.Starting:
		v.starting(r, seen.server, now, l)
	case besteffort.Running:
		if now >= v.Since.Add(steady) && v.Failures > 0 {
			v.Failures, v.Avoids = 0, nil
		}
		if now >= v.Until {
			v.remove(besteffort.Done, now, "its time was up")
		}
	case besteffort.Suspending:
		v.suspending(seen, now, l)
	case besteffort.Suspended:
		v.suspended(seen, now, l)
	case besteffort.Resuming:
		v.resuming(r, seen.server, now, l)
	}
}

// steady is after how many seconds of running earlier failures count no more.
const steady = 600

const cancelled = "its request was cancelled"

// stopped takes note of a deleted server.
func (v *VM) stopped(seen sight, now span.Instant) {
	if seen.server != nil {
		return
	}
	if v.Then == besteffort.Waiting {
		v.again(now, v.Reason)
		return
	}
	then, reason := v.Then, v.Reason
	v.enter(then, now, reason)
	v.Held, v.Then = nil, ""
}

// missing takes note that Nova has no server of the VM, which had one, or was to get one.
func (v *VM) missing(r *Request, seen sight, now span.Instant, l Limits) {
	switch {
	case v.Server == "" && v.Asked == 0 && r.Cancelled != 0:
		v.enter(besteffort.Done, now, cancelled)
	case v.Server == "" && (v.Asked == 0 || now < v.Asked.Add(l.Doubt)):
		// It has not been asked for, or may yet come.
	case r.Cancelled != 0:
		v.enter(besteffort.Done, now, cancelled)
	case v.Server == "":
		v.putOff(now, "Nova did not answer when its server was asked for", l.Backoff)
	case seen.byOwner:
		v.Ran = v.used(now)
		v.enter(besteffort.Done, now, "its server was deleted by somebody of its project")
		v.Held = nil
	default:
		v.again(now, "its server was taken away, and it begins anew")
	}
}

// putOff has the VM wait for some seconds before it is begun anew.
func (v *VM) putOff(now span.Instant, reason string, seconds int64) {
	v.again(now, reason)
	v.RetryAt = now.Add(seconds)
}

// fail has the VM begun anew later, or gives it up where it has failed too often. The
// first host on which it fails may be the one to blame.
func (v *VM) fail(now span.Instant, reason string, l Limits) {
	if first := v.Node != "" && v.Failures == 0 && len(v.Avoids) == 0; !first || l.alone {
		v.Failures++
	}
	if v.Node != "" && !slices.Contains(v.Avoids, v.Node) {
		v.Avoids = append(slices.Clone(v.Avoids), v.Node)
	}
	v.RetryAt = now.Add(l.backoff(v.Failures))
	then := besteffort.Waiting
	if v.Failures > l.Retries {
		then = besteffort.Failed
	}
	switch {
	case v.Server != "":
		v.remove(then, now, reason)
	case then == besteffort.Waiting:
		v.again(now, reason)
	default:
		v.enter(then, now, reason)
	}
}

// ended takes note of a server that is of no more use.
func (v *VM) ended(s *Server, now span.Instant, l Limits) bool {
	switch {
	case s.Status == "ERROR":
		reason := "its server is in ERROR"
		if s.Fault != "" {
			reason += ": " + strings.TrimSuffix(s.Fault, ".")
		}
		v.fail(now, reason, l)
	case s.Status == "SHUTOFF" && s.idle():
		v.remove(besteffort.Done, now, "its guest has shut down")
	case s.Status == "SOFT_DELETED":
		v.remove(besteffort.Done, now, "its server was deleted by somebody of its project")
	default:
		return false
	}
	return true
}

func (v *VM) starting(r *Request, s *Server, now span.Instant, l Limits) {
	switch {
	case s.Status != "BUILD" && s.idle():
		v.runs(r, now)
	case now >= max(v.Since, v.Asked).Add(l.Build):
		v.fail(now, fmt.Sprintf("its server was not ACTIVE within %d s", l.Build), l)
	}
}

// runs begins or goes on to count the VM's time.
func (v *VM) runs(r *Request, now span.Instant) {
	v.enter(besteffort.Running, now, "")
	v.Until = now.Add(r.Duration - v.Ran)
}

// suspending takes note of how far a suspension is. One that is late while the server stands
// still already is not given up: it takes but a call to have its room.
func (v *VM) suspending(seen sight, now span.Instant, l Limits) {
	s, deadline := seen.server, v.Deadline
	if s.Status == "SUSPENDED" && s.idle() && seen.looked {
		deadline = deadline.Add(l.Order)
		if seen.has == nil {
			v.enter(besteffort.Suspended, now, "")
			return
		}
		v.Held = seen.has
	}
	if now > deadline {
		v.remove(besteffort.Waiting, now, "it could not be suspended in time for a reservation, and begins anew")
	}
}

func (v *VM) suspended(seen sight, now span.Instant, l Limits) {
	s := seen.server
	switch {
	case s.idle() && s.Status != "SUSPENDED":
		v.enter(besteffort.Suspending, now, "somebody has resumed it")
		v.Deadline = now.Add(l.Order)
	case seen.looked && seen.has != nil: // somebody has given it room, as heal_allocations does
		v.Held = seen.has
	}
}

func (v *VM) resuming(r *Request, s *Server, now span.Instant, l Limits) {
	switch {
	case s.Status == "ACTIVE" && s.idle():
		v.runs(r, now)
	case now >= max(v.Since, v.Until).Add(l.Order):
		v.fail(now, "its server could not be resumed", l)
	}
}

// together keeps the VMs of a parallel request together: where one begins anew they all
// do, and where one is given up they all are.
func (r *Request) together(now span.Instant) {
	if !r.Parallel {
		return
	}
	anew, failed := false, false
	for i := range r.VMs {
		v := &r.VMs[i]
		anew = anew || v.Phase == besteffort.Stopping && v.Then == besteffort.Waiting || v.Phase == besteffort.Waiting && v.Attempt > 0
		failed = failed || v.Phase == besteffort.Stopping && v.Then == besteffort.Failed || v.Phase == besteffort.Failed
	}
	for i := range r.VMs {
		v := &r.VMs[i]
		switch {
		case v.over():
		case failed && v.Phase == besteffort.Stopping && v.Then == besteffort.Waiting:
			v.Then = besteffort.Failed
		case failed && v.Phase == besteffort.Waiting:
			v.enter(besteffort.Failed, now, "another of its request has failed")
		case v.Phase == besteffort.Stopping || v.Phase == besteffort.Waiting || v.Server == "":
		case failed:
			v.remove(besteffort.Failed, now, "another of its request has failed")
		case anew:
			v.remove(besteffort.Waiting, now, "another of its request begins anew, and they run together")
		}
	}
}
