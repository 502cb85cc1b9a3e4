package state

import (
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// Server is a server in Nova that carries the mark of best-effort work.
type Server struct {
	ID, Host, Status, Task string
	// VM and Attempt are what the mark in its metadata states. Its owner can change them.
	VM      string
	Attempt int
	Locked  bool
	Created span.Instant
	// UserID is the user who created it, Flavor the name of its flavor, and Image the id of
	// its image.
	UserID, Flavor, Image string
	// Fault is Nova's message about what went wrong; empty where nothing did.
	Fault string
}

// Sight is what was seen of a VM in the cloud.
type Sight struct {
	Server *Server // its own; nil where Nova has none
	// Surplus are other servers with its mark, such as one whose creation Nova did not
	// confirm.
	Surplus []Server
	// ByOwner reports whether a user of its project deleted its server.
	ByOwner bool
	// Looked reports whether Placement was read, Allocated what it had for the server (nil:
	// nothing), and Generation which version of that it was.
	Looked     bool
	Allocated  *Held
	Generation int64
}

// clockSkew is by how many seconds the clocks of Nova and of the database may differ.
const clockSkew = 60

// Identify tells a VM's own server from others with its mark. Any user of the project can set
// the mark, so a server counts only if it was created after the request, by its user, with
// its flavor and from its image.
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

// Idle reports whether Nova is doing nothing with the server.
func (s *Server) Idle() bool { return s.Task == "" }
