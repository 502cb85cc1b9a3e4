package booking

import (
	"context"

	"github.com/almanac-cloud/almanac/reservation"
)

// Records keeps reservations where a crash does not reach them, for any number of
// desks.
type Records interface {
	// Commit stores a change whole or not at all. It fails with
	// reservation.ErrStale where the records are not as the decision knew them, and
	// with reservation.ErrKeyUsed where the project has used the key before. After
	// any other error the change may have been stored all the same.
	Commit(ctx context.Context, c Commit) error
	// Recall gives what is asked for, all as it stood at one moment.
	Recall(ctx context.Context, q Recall) (Recalled, error)
}

// Commit is a change of one reservation and what its decision was made on.
type Commit struct {
	// Reservation is what shall be stored. The records hold its Version less one;
	// Version 1 is a new reservation.
	Reservation reservation.Reservation
	// Key is the use of the idempotency key that a new reservation came with; nil
	// is none.
	Key *reservation.Key
	// Hosts are the hosts on which time is claimed that was not claimed before, by
	// name, with the versions that the decision knew. Each grows by one. One name that no
	// host has stands for the images of all reservations.
	Hosts []HostVersion
	Usage Usage
	Cause reservation.Cause
}

// HostVersion counts the commits that claimed time on a host; 0 is none yet.
type HostVersion struct {
	Host    string
	Version int64
}

// ProjectVersion counts the commits with Usage.Raises of a project; 0 is none yet.
type ProjectVersion struct {
	Project string
	Version int64
}

// Usage is what a commit changes of what its project holds.
type Usage struct {
	// Hosts and HostSeconds are added to the sums over the live reservations; they may be
	// negative. The sum of the hosts is for the version before this one, which has a limit
	// on it.
	Hosts       int
	HostSeconds int64
	// MostHostSeconds is the most that the sum may be afterwards where HostSeconds raises
	// it; 0 is no limit.
	MostHostSeconds int64
	// Raises reports that the project holds more hosts at some instant than before. The
	// version of the project grows by one.
	Raises bool
	// Known is the version of the project that the decision knew; nil is any. It is there
	// only where Raises is true.
	Known *int64
}

// Recall asks for stored state. The log is always read; All wins over the other
// fields.
type Recall struct {
	// Since is a place in the log; what lies behind it is given.
	Since int64
	// All asks for every live reservation and every host, beside IDs.
	All bool
	// IDs, Hosts and Project ask for reservations, for the live ones with claims on
	// the hosts, and for the live ones of the project, where it is not empty.
	IDs, Hosts []string
	Project    string
	// Projects returns the version of a project that the asker has. Nil asks for none.
	Projects func(project string) int64
	// Known gives the version of a reservation that the asker has, 0 for none. What
	// is known already is left out of the answer. Nil knows nothing.
	Known func(id string) int64
}

// Recalled is stored state of one moment.
type Recalled struct {
	// Log has what lies behind Since, in order; of All, its last entry only.
	Log []LogEntry
	// Reservations are those that the log and the question name and the asker does
	// not know in their version, live or over.
	Reservations []reservation.Reservation
	// Gone are those of the IDs of which there is nothing stored.
	Gone []string
	// Hosts has the versions of the hosts asked for, and of those on which one of
	// the reservations that the log or IDs name has claims. Of these hosts,
	// Reservations has every live reservation that the asker does not know.
	Hosts []HostVersion
	// Projects has, where the question has Projects, the versions of Project, of the
	// projects of all Reservations, and for All of every project: those of which the asker
	// has an older one, by name. Of these projects, Reservations has every live reservation
	// that the asker does not know.
	Projects []ProjectVersion
}

// LogEntry says that a reservation came to a version. Places grow, but an entry
// may become visible after one with a larger place, and places may be left out.
type LogEntry struct {
	Place   int64
	ID      string
	Version int64
}

// Keys remembers idempotency keys.
type Keys interface {
	// Key gives the use of a key by a project; ok is false where there is none.
	Key(ctx context.Context, projectID, key string) (use reservation.Key, ok bool, err error)
}
