// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// route is a row of the table of routes. A row does not name its columns, so that the compiler refuses one that lacks
// a column; no column may have its zero value.
type route struct {
	method, path string
	who          access
	turn         turn
	largest      length
	keeps        cache
	// steps answer the request, one after the other, until one of them has refused it.
	steps []gin.HandlerFunc
}

// access states who may make a call.
type access struct {
	// caller is who that is, in a few words.
	caller string
	// rules are the rules of the policy that decide about the call as a whole.
	rules []string
	// admit identifies the caller, before its turn.
	admit []gin.HandlerFunc
	// check applies the rules, in the caller's turn, and loads what they are about.
	check []gin.HandlerFunc
}

// turn states in whose turn a request is answered, and so which limits it has.
type turn string

const (
	// atOnce is for answers that take the same time however large the cloud is and however much is reserved.
	atOnce turn = "at once"
	// ahead is for answers that Nova or an operator's monitor waits for: no limit applies.
	ahead turn = "ahead of all"
	// shared is for an answer that all requests of a second share.
	shared turn = "shared for a second"
	// streaming is for streams: they last too long to be one of the requests that a project may have at once, and have
	// limits of their own.
	streaming turn = "a stream"
	// inLine is for requests of a project: so many in a time, and so many at once.
	inLine turn = "the project's line"
	// inTurn is inLine for answers whose computing grows with the cloud or with what is reserved: that part of the
	// work waits for the project's turn too.
	inTurn turn = "the project's turn"
	// ofAddress is for callers that have no project yet: so many requests of their address at once.
	ofAddress turn = "the address's line"
)

// length is the largest number of bytes of an answer, without its header.
type length int64

const (
	// brief is for answers without lists that grow.
	brief length = 64 << 10
	// fixedText is for documents that do not change.
	fixedText length = 512 << 10
	// oneThing is for one reservation, lease or host, with its hosts or instances.
	oneThing length = 4 << 20
	// onePage is for a page: at most 1,000 entries, or 50,000 claims.
	onePage length = 32 << 20
	// wholeList is for a list without pages.
	wholeList length = 64 << 20
)

// cache states which caches may keep an answer.
type cache struct {
	// control is the header Cache-Control, and vary are the values of the header Vary.
	control string
	vary    []string
}

var (
	byAnybody    = cache{"public, max-age=300", nil}
	byAnybodyNew = cache{"no-cache", nil} // and only if the service confirms it
	byHolder     = cache{"private, no-cache", nil}
	byCaller     = cache{"private, no-cache", []string{"X-Auth-Token, Cookie"}}
	byNobody     = cache{"no-store", []string{"X-Auth-Token, Cookie"}}
	// The answers in Blazar's form depend on the microversion too.
	byBlazarsCaller = cache{byCaller.control, append([]string{microversionHeader}, byCaller.vary...)}
	byNobodyBlazar  = cache{byNobody.control, append([]string{microversionHeader}, byNobody.vary...)}
)

// tell writes the header of the answer; a handler may replace it.
func (k cache) tell(c *gin.Context) {
	c.Header("Cache-Control", k.control)
	for _, value := range k.vary {
		c.Writer.Header().Add("Vary", value)
	}
}

// openToAll lets everybody in, without a token.
func openToAll() access { return access{caller: "everybody"} }

// rule admits callers that the rule allows to act on resources of their own project, or on resources without a
// project.
func (s *server) rule(name string) access {
	return access{"a token", []string{name}, []gin.HandlerFunc{s.authenticate}, []gin.HandlerFunc{s.require(name)}}
}

// rules admits callers with a token; the call itself applies one of the rules.
func (s *server) rules(names ...string) access {
	return access{"a token", names, []gin.HandlerFunc{s.authenticate}, nil}
}

// ofReservation admits callers that may act on the reservation in the path, and loads it; see find.
func (s *server) ofReservation(rule string) access {
	return access{"a token", ownAndOthers(rule), []gin.HandlerFunc{s.authenticate}, []gin.HandlerFunc{s.find(rule)}}
}

// ofBestEffort is ofReservation for a best-effort request.
func (s *server) ofBestEffort(rule string) access {
	return access{"a token", ownAndOthers(rule), []gin.HandlerFunc{s.authenticate}, []gin.HandlerFunc{s.findBestEffort(rule)}}
}

// ownAndOthers returns the rule about what belongs to the caller's project, and the one about what belongs to others.
func ownAndOthers(rule string) []string { return []string{rule, rule + "_all_projects"} }

// blazarRule is rule for a call in Blazar's form.
func (s *server) blazarRule(name string) access {
	return access{"a token", []string{name}, []gin.HandlerFunc{s.microversion, s.authenticate}, []gin.HandlerFunc{s.allowed(name)}}
}

// ofLease admits callers that may act on the lease in the path, and loads it.
func (s *server) ofLease(rule string) access {
	return access{"a token", []string{rule}, []gin.HandlerFunc{s.microversion, s.authenticate}, []gin.HandlerFunc{s.findLease(rule)}}
}

// withLink admits whoever knows the link to a feed.
func (s *server) withLink() access {
	return access{caller: "the feed's link", admit: []gin.HandlerFunc{s.signedLink}}
}

// signedInOrNot admits visitors of the page, and identifies those that have signed in; the requests of the others are
// those of their address.
func (s *server) signedInOrNot() access {
	return access{caller: "everybody, or a token", admit: []gin.HandlerFunc{func(c *gin.Context) {
		if s.SignIn == nil || c.GetHeader("X-Auth-Token") != "" {
			s.authenticate(c)
		} else {
			s.fromAddress(c)
		}
	}}}
}

// signedIn admits visitors of the page that have signed in.
func (s *server) signedIn() access {
	return access{caller: "a token", admit: []gin.HandlerFunc{s.authenticate}}
}

// callerKey is the key of the name under which the requests of a caller without a token are counted.
const callerKey = "caller"

const addressPrefix = "address "

// fromAddress counts a request as one of its address.
func (s *server) fromAddress(c *gin.Context) { c.Set(callerKey, addressPrefix+s.senderOf(c).address) }

// isAddress reports whether a caller is an address, which has sent no token.
func isAddress(caller string) bool { return strings.HasPrefix(caller, addressPrefix) }

// callerIn returns the name under which a request is counted; empty for an admin, whose requests are not limited.
func (s *server) callerIn(c *gin.Context) string {
	if name := c.GetString(callerKey); name != "" {
		return name
	}
	by, known := c.Get(askerKey)
	if !known || by.(*asker).may("context_is_admin", by.(*asker).ProjectID) {
		return ""
	}
	return callerOf(by.(*asker))
}

// register registers the routes. gin accepts no path below one that ends with a wildcard, so there the handler of the
// wildcard finds those that have a route of their own.
func (s *server) register(engine *gin.Engine, table []route) {
	var wild []string
	exact := make(map[string]gin.HandlerFunc, len(table))
	for _, r := range table {
		exact[r.name()] = s.serve(r)
		if prefix, _, is := strings.Cut(r.name(), "*"); is {
			wild = append(wild, prefix)
		}
	}
	for _, r := range table {
		handler := exact[r.name()]
		below := func(prefix string) bool { return strings.HasPrefix(r.name(), prefix) }
		switch {
		case strings.Contains(r.path, "*"):
			engine.Handle(r.method, r.path, func(c *gin.Context) {
				if own, is := exact[r.method+" "+c.Request.URL.Path]; is {
					own(c)
					return
				}
				handler(c)
			})
		case !slices.ContainsFunc(wild, below):
			engine.Handle(r.method, r.path, handler)
		}
	}
}

// name returns the method and the path.
func (r route) name() string { return r.method + " " + r.path }

// serve returns the handler of a route.
func (s *server) serve(r route) gin.HandlerFunc {
	return func(c *gin.Context) {
		r.keeps.tell(c)
		if r.turn == ofAddress {
			s.fromAddress(c)
		}
		if !run(c, r.who.admit) {
			return
		}
		answer := func() { _ = run(c, r.who.check) && run(c, r.steps) }
		switch r.turn {
		case streaming:
			if s.limit(c); !c.IsAborted() {
				answer()
			}
		case inLine, inTurn:
			if s.limit(c); !c.IsAborted() {
				s.inLine(c, answer)
			}
		case ofAddress: // only wrong attempts are limited in number
			s.inLine(c, answer)
		default:
			answer()
		}
	}
}

// run calls the handlers one after the other, and reports whether none has ended the request.
func run(c *gin.Context, handlers []gin.HandlerFunc) bool {
	for _, handler := range handlers {
		if handler(c); c.IsAborted() {
			return false
		}
	}
	return true
}

// steps returns handlers as a list.
func steps(handlers ...gin.HandlerFunc) []gin.HandlerFunc { return handlers }

// later computes an answer that a call has read the data for. It runs in the project's turn, and so does the writing of
// its JSON, so that large answers leave a processor for others. It must not read what may be slow, nor decide, since
// decisions wait for the turn themselves.
type later func() (answer any, err error)

// computed returns the handler of a call that has its data in memory, and is as a whole what later is.
func (s *server) computed(call func(c *gin.Context) (answer any, err error)) gin.HandlerFunc {
	return s.json(func(c *gin.Context) (any, error) {
		return later(func() (any, error) { return call(c) }), nil
	})
}

// inItsTurn runs do in the turn of the caller's project.
func (s *server) inItsTurn(c *gin.Context, do func()) error {
	return s.Booking.InTurn(c.Request.Context(), asking(c).ProjectID, do)
}

// there returns a step that refuses a call unless what it is about is there.
func (s *server) there(is bool, otherwise *fault.Error) gin.HandlerFunc {
	return func(c *gin.Context) {
		if !is {
			s.fail(c, otherwise)
		}
	}
}
