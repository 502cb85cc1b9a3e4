// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/chaos"
)

// The kinds of servers; the name of a server begins with its kind.
const (
	own         = "own" // by the hint; its reservation follows in the name
	plain       = "plain"
	preemptible = "preemptible"
)

// guest is a tenant whose servers come and go.
type guest struct {
	*hours
	kind, flavor, image string
	who                 *tenant
	most                int // servers at one time
	chance              *rand.Rand
	alive               []string
	inside              map[string]int // servers requested so far, by reservation; nobody else requests servers in those of its project

	asked, ran, stuck, evicted, open int            // open: not yet decided when the churn ended
	faults                           map[string]int // failures, by their message
}

// comeAndGo creates servers and deletes them until ctx ends.
func (g *guest) comeAndGo(ctx context.Context) {
	for chaos.Pass(ctx, 5*time.Second+below(g.chance, 10*time.Second)) {
		if len(g.alive) >= g.most {
			g.delete(g.alive[0])
			g.alive = g.alive[1:]
		}
		if id, asked := g.requests(ctx); id != "" {
			g.alive = append(g.alive, id)
			g.watch(ctx, id, asked)
		}
	}
}

// requests requests a server; an owner's is one by the hint, in any reservation with time left.
func (g *guest) requests(ctx context.Context) (id string, asked time.Time) {
	wanted := map[string]any{"name": g.kind, "flavorRef": g.flavor, "imageRef": g.image, "networks": "none"}
	body := map[string]any{"server": wanted}
	if g.kind == own {
		r := g.reservation(ctx)
		if r == "" {
			return "", asked
		}
		wanted["name"], body["os:scheduler_hints"] = own+" "+r, map[string]any{"reservation": r}
	}
	asked = time.Now()
	var made struct{ Server struct{ ID string } }
	g.asked++
	if status := g.who.Do(http.MethodPost, "compute", "/servers", body, &made); status != http.StatusAccepted {
		g.faults[fmt.Sprintf("Nova answers %d", status)]++
	}
	return made.Server.ID, asked
}

// reservation returns one that is active for at least another minute and has room, or "".
func (g *guest) reservation(ctx context.Context) string {
	var list []string
	for r, err := range g.who.almanac.ListReservations(ctx, client.ReservationFilter{Statuses: []string{"active"}}) {
		if err != nil {
			return "" // a disturbance
		}
		if time.Until(r.End) > time.Minute && (r.Kind != "instance" || g.inside[r.ID] < r.Quantity) {
			list = append(list, r.ID)
		}
	}
	if len(list) == 0 {
		return ""
	}
	chosen := list[g.chance.IntN(len(list))]
	g.inside[chosen]++
	return chosen
}

// longestBuild is how long a guest waits for a server. Nova never completes one whose conductor was
// killed.
const longestBuild = 2 * time.Minute

// watch waits until a server runs or has failed.
func (g *guest) watch(ctx context.Context, id string, asked time.Time) {
	for chaos.Pass(ctx, 500*time.Millisecond) {
		var found struct{ Server server }
		status := g.who.Do(http.MethodGet, "compute", "/servers/"+id, nil, &found)
		switch s := found.Server; {
		case status == http.StatusNotFound || s.Status == "DELETED":
			g.evicted++
			return
		case s.Status == "ACTIVE" && s.Task == "":
			g.ran++
			g.clocks.done(aBuild, asked)
			return
		case s.Status == "ERROR":
			g.faults[faultOf(s)]++
			return
		case time.Since(asked) > longestBuild:
			g.stuck++
			g.delete(id)
			return
		}
	}
	g.open++
}

// faultOf returns the message of a failure without what differs from server to server.
func faultOf(s server) string {
	var words []string
	for word := range strings.FieldsSeq(s.Fault.Message) {
		if strings.ContainsAny(word, "0123456789") {
			word = "…"
		}
		words = append(words, word)
	}
	text := []rune(strings.Join(words, " "))
	return string(text[:min(len(text), 160)])
}

// delete requests the deletion of a server, which may be gone.
func (g *guest) delete(id string) {
	if status := g.who.Do(http.MethodDelete, "compute", "/servers/"+id, nil, nil); status != http.StatusNoContent && status != http.StatusNotFound {
		g.faults[fmt.Sprintf("Nova answers a deletion with %d", status)]++
	}
}

// clear deletes the servers of these kinds and returns when they are gone.
func (c *hours) clear(kinds ...string) {
	c.t.Helper()
	left := func() []created {
		all, err := c.witness.servers()
		if err != nil {
			c.t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(s created) bool { return !slices.Contains(kinds, s.kind()) })
	}
	for _, s := range left() {
		c.admin.Do(http.MethodDelete, "compute", "/servers/"+s.ID, nil, nil) // it may just have gone
	}
	c.await("the servers are gone", func() bool {
		list := left()
		c.witness.mend(list)
		return len(list) == 0
	})
}

// reportGuests logs what became of the servers. Of those that nobody may evict at least half must
// run.
func reportGuests(t *testing.T, guests []*guest) {
	t.Helper()
	ran, decided := 0, 0
	for _, g := range guests {
		t.Logf("of %d %s servers %d ran, %d were evicted while they started, %d never started, %d were not yet decided; failures: %v",
			g.asked, g.kind, g.ran, g.evicted, g.stuck, g.open, g.faults)
		if g.kind != preemptible {
			ran, decided = ran+g.ran, decided+g.asked-g.open
		}
	}
	if ran == 0 || 2*ran < decided {
		t.Errorf("only %d of %d servers ran", ran, decided)
	}
}

// read asks for a page of reservations and for the calendar of an hour, in turn, until ctx ends.
func (c *hours) read(ctx context.Context, u *chaos.User) {
	for n := 0; chaos.Pass(ctx, time.Second); n++ {
		to := c.replicas.ClientWith(u.Token, n%3)
		if to == nil {
			continue
		}
		var err error
		asked := time.Now()
		if n%2 == 0 {
			for _, err = range to.ListReservations(c.t.Context(), client.ReservationFilter{PageSize: 100}) {
				break // of the first page
			}
		} else {
			_, err = to.Calendar(c.t.Context(), client.CalendarQuery{Start: asked, End: asked.Add(time.Hour)})
		}
		if err != nil {
			u.Answered(err)
			continue
		}
		c.clocks.done(aRead, asked)
	}
}
