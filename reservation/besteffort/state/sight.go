// SPDX-License-Identifier: Apache-2.0

package state

import (
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// Server is a server in Nova that carries the mark of best-effort work.
type Server struct {
	ID, Host, Status, Task string
	// VM and Attempt are the mark in its metadata, which its owner can change.
	VM      string
	Attempt int
	Locked  bool
	Created span.Instant
	// UserID is the user who created it, Flavor the name of its flavor, and Image the id of
	// its image.
	UserID, Flavor, Image string
	// Fault is Nova's message about a failure; empty if there was none.
	Fault string
}

// Sight is an observation of a VM in the cloud.
type Sight struct {
	Server *Server // its own; nil if Nova has none
	// Surplus are further servers with the VM's mark, for example one whose creation Nova did not
	// confirm.
	Surplus []Server
	// ByOwner is true if a user of the project deleted the server.
	ByOwner bool
	// Looked is true if Placement was read. Allocated is the server's allocation there, nil if it
	// had none, and Generation its generation.
	Looked     bool
	Allocated  *Held
	Generation int64
}

// clockSkew is the largest difference between the clocks of Nova and of the database, in seconds.
const clockSkew = 60

// Identify distinguishes a VM's own server from other servers with its mark. Any user of the
// project can set the mark, so a server counts only if it was created after the request, by its
// user, with its flavor and from its image.
func Identify(r *Request, v *VM, all []Server) (seen Sight) {
	for i := range all {
		s := &all[i]
		marked := s.VM == v.ID && s.Created >= r.Created.Add(-clockSkew) && s.UserID == r.UserID && s.Flavor == r.Flavor.Name && s.Image == r.Image.ID
		awaited := v.Server == "" && v.Phase == besteffort.Starting && v.Asked != 0 && s.Attempt == v.Attempt
		switch {
		case (s.ID == v.Server || marked && awaited) && seen.Server == nil:
			seen.Server = s
		case marked && s.Attempt <= v.Attempt:
			seen.Surplus = append(seen.Surplus, *s)
		}
	}
	return seen
}

// Idle reports whether Nova has no task in progress for the server.
func (s *Server) Idle() bool { return s.Task == "" }
