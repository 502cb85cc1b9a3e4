// SPDX-License-Identifier: Apache-2.0

package serving

// Turn states in whose turn a request is answered, and so which limits it has.
type Turn string

const (
	// AtOnce is for answers that take the same time however large the cloud is and however much is reserved.
	AtOnce Turn = "at once"
	// Ahead is for answers that Nova or an operator's monitor waits for: no limit applies.
	Ahead Turn = "ahead of all"
	// Shared is for an answer that all requests of a second share.
	Shared Turn = "shared for a second"
	// Streaming is for streams: they last too long to be one of the requests that a project may have at once, and have
	// limits of their own.
	Streaming Turn = "a stream"
	// InLine is for requests of a project: so many in a time, and so many at once.
	InLine Turn = "the project's line"
	// InTurn is InLine for answers whose computing grows with the cloud or with what is reserved: that part of the
	// work waits for the project's turn too.
	InTurn Turn = "the project's turn"
	// OfAddress is for callers that have no project yet: so many requests of their address at once.
	OfAddress Turn = "the address's line"
)

// Length is the largest number of bytes of an answer, without its header.
type Length int64

const (
	// Brief is for answers without lists that grow.
	Brief Length = 64 << 10
	// FixedText is for documents that do not change.
	FixedText Length = 512 << 10
	// OneThing is for one reservation, lease or host, with its hosts or instances.
	OneThing Length = 4 << 20
	// OnePage is for a page: at most 1,000 entries, or 50,000 claims.
	OnePage Length = 32 << 20
	// WholeList is for a list without pages.
	WholeList Length = 64 << 20
)

// Cache states which caches may keep an answer, and how a client tells whether it has changed.
type Cache struct {
	// Control is the header Cache-Control, and Vary are the values of the header Vary.
	Control string
	Vary    []string
	// Tag is true if a call is about one object that can be changed: an answer that shows it has its tag, a reader sends
	// it in If-None-Match, and a changer in If-Match.
	Tag bool
}

// The caches that may keep an answer: those of anybody, those of the caller, or none. ByAnybodyNew and ByHolder are for
// answers that a cache uses only if the service confirms them; a holder is whoever knows the link.
var (
	ByAnybody    = Cache{Control: "public, max-age=300"}
	ByAnybodyNew = Cache{Control: "no-cache"}
	ByHolder     = Cache{Control: "private, no-cache"}
	ByCaller     = Cache{Control: "private, no-cache", Vary: []string{"X-Auth-Token, Cookie"}}
	ByNobody     = Cache{Control: "no-store", Vary: []string{"X-Auth-Token, Cookie"}}
)

// Varying returns the same for answers that depend on one more header of the request.
func (k Cache) Varying(header string) Cache {
	k.Vary = append([]string{header}, k.Vary...)
	return k
}

// Tagged returns the same for calls about one object that can be changed.
func (k Cache) Tagged() Cache {
	k.Tag = true
	return k
}
