// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/chaos"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// A tenant books two kinds together or nothing, is told which part cannot be had and what a part cannot do alone, and
// changes and cancels all of the group.
func TestATenantBooksChangesAndCancelsAGroup(t *testing.T) {
	g := built.StartGuarded(t)
	as := func(u labtest.User, want int, says []string, arguments ...string) string {
		t.Helper()
		out, stderr, exit := g.As(u, arguments...)
		built.WantExit(t, strings.Join(arguments, " "), stderr, exit, want, says...)
		return out
	}
	shown := func() (group v1.Group) {
		t.Helper()
		if err := json.Unmarshal([]byte(as(labtest.Demo, 0, nil, "group", "show", "cluster", "-f", "api")), &group); err != nil {
			t.Fatal(err)
		}
		return group
	}
	nodes, workers := `{"quantity": {"min": 2, "max": 4}}`, `{"kind": "instance", "quantity": 20, "resources": {"vcpus": 4}}`
	as(labtest.Demo, 0, nil, "group", "create", "cluster", "--start", "+1d", "--duration", "2h", "--before-end", "10m", "--part", nodes, "--part", workers)
	before := shown()
	if len(before.Reservations) != 2 || before.Reservations[0].Quantity != 4 || before.Reservations[1].Quantity != 20 {
		t.Fatalf("the group is %+v, want 4 hosts and 20 instances", before)
	}

	as(labtest.Demo, 5, []string{"part 2 of 2 (2 hosts): not enough hosts available", "earliest start", "largest quantity: 0"},
		"group", "create", "more", "--start", "+1d", "--duration", "2h", "--part", `{"quantity": 1}`, "--part", `{"quantity": 2}`)
	if left := as(labtest.Demo, 0, nil, "reservation", "list", "--name", "more", "-f", "value") + as(labtest.Demo, 0, nil, "group", "list", "--name", "more", "-f", "value"); left != "" {
		t.Errorf("the refused group leaves %s", left)
	}

	part := before.Reservations[0].ID
	as(labtest.Demo, 5, []string{`one of the 2 parts of group "cluster"`, "almanac group change " + before.ID}, "reservation", "change", part, "--end", "+3d")
	as(labtest.Demo, 5, []string{"almanac group delete " + before.ID}, "reservation", "delete", part, "--dry-run")
	as(labtest.Demo, 5, []string{"almanac group delete " + before.ID}, "reservation", "delete", part, "--yes")
	read := strings.TrimSpace(as(labtest.Demo, 0, nil, "group", "show", "cluster", "-f", "value", "-c", "ETag"))
	as(labtest.Demo, 0, nil, "reservation", "change", part, "--quantity", "3", "--name", "nodes")
	as(labtest.Demo, 5, []string{"the group has changed since it was read"}, "group", "change", "cluster", "--before-end", "1m", "--if-match", read)
	as(labtest.Demo, 5, []string{"the group has changed since it was read"}, "group", "delete", "cluster", "--yes", "--if-match", read)
	as(labtest.Demo, 2, []string{"--start: ", "is not before the end of the group"}, "group", "change", "cluster", "--start", "+2d", "--dry-run")
	as(labtest.Demo, 0, nil, "group", "change", "cluster", "--start", "+2d", "--end", "+2d3h", "--before-end", "5m")
	after := shown()
	for i, r := range after.Reservations {
		if !r.Start.Equal(after.Start) || !r.End.Equal(after.End) || after.End.Sub(after.Start) != 3*time.Hour || r.BeforeEnd != 300 || r.Quantity != []int{3, 20}[i] {
			t.Errorf("after the change of the group, a part is %+v", r)
		}
	}
	if names := as(labtest.Demo, 0, nil, "reservation", "list", "--group", "cluster", "-f", "value", "-c", "Name"); names != "nodes\ncluster\n" && names != "cluster\nnodes\n" {
		t.Errorf("the parts are named %q", names)
	}

	as(labtest.Demo2, 0, nil, "reservation", "create", "all", "--quantity", "10", "--start", "+5d", "--duration", "2h")
	as(labtest.Demo, 5, []string{"part 1 of 2 (3 hosts, reservation " + part + "): not enough hosts available"}, "group", "change", "cluster", "--start", "+5d", "--end", "+5d2h")
	if moved := shown(); !moved.Start.Equal(after.Start) || moved.Reservations[1].Start != after.Reservations[1].Start {
		t.Errorf("a refused change leaves %+v, before it was %+v", moved, after)
	}
	for _, arguments := range [][]string{{"show", after.ID}, {"change", after.ID, "--name", "mine"}, {"delete", after.ID, "--yes"}} {
		as(labtest.Demo2, 3, []string{"there is no group " + after.ID}, append([]string{"group"}, arguments...)...)
	}
	if lease := g.Send(g.Token(labtest.Demo), http.MethodGet, "/v1/leases/"+after.ID, ""); lease.Status != http.StatusOK || !strings.Contains(lease.Text, part) {
		t.Errorf("in Blazar's form the group is %d %s", lease.Status, lease.Text)
	}
	as(labtest.Demo, 0, []string{"is canceled"}, "group", "delete", "cluster", "--yes")
	as(labtest.Demo, 3, []string{`no group has the id or name "cluster"`}, "group", "show", "cluster")
	as(labtest.Demo, 0, nil, "reservation", "create", "again", "--quantity", "10", "--start", "+2d", "--duration", "3h")
}

// halves asks for ten hosts in two parts.
func halves(start time.Time, first int) v1.GroupRequest {
	lasts := v1.Duration(600)
	return v1.GroupRequest{Name: "halves", StartTime: &start, Duration: &lasts, Parts: []v1.GroupPart{
		{Quantity: &v1.QuantityRange{Min: first, Max: first}}, {Quantity: &v1.QuantityRange{Min: 10 - first, Max: 10 - first}},
	}}
}

// Twenty groups at once want the same ten hosts at two replicas. Exactly one has them, and no part of another stays.
func TestOfTwentyGroupsForTheSameHostsAtTwoReplicasOneWinsWhole(t *testing.T) {
	connection := labtest.Database(t)
	built.Migrate(t, connection)
	settings := append(unhurried(), "OS_DATABASE__CONNECTION="+connection)
	r := chaos.StartReplicas(t, settings, settings)
	const rounds = 5
	for round := range rounds {
		begin := time.Now().Add(time.Duration(1+round) * time.Hour).Truncate(time.Second)
		var clients sync.WaitGroup
		var won atomic.Int64
		for i := range 20 {
			to := r.Client(i)
			clients.Go(func() {
				_, err := to.CreateGroup(t.Context(), halves(begin, 1+i%9))
				if err == nil {
					won.Add(1)
				} else if answer, ok := errors.AsType[*client.Error](err); !ok || answer.Refusal == nil || answer.Refusal.Constraint != "free_hosts" {
					t.Errorf("the loser got %v, want a refusal", err)
				}
			})
		}
		clients.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d groups got the hosts, want 1", won.Load())
		}
	}
	c := chaos.NewChecker(t, "mysql", labtest.DSN(t, connection))
	c.Check(16)
	if n, parts := c.Number("SELECT COUNT(*) FROM lease_groups"), c.Number("SELECT COUNT(*) FROM reservations"); n != rounds || parts != 2*rounds {
		t.Errorf("after %d rounds, %d groups and %d reservations are stored", rounds, n, parts)
	}
	wholeGroups(t, c)
}

// wholeGroups reads the groups without Almanac's code: each has its two parts with its times, which are canceled if it is.
func wholeGroups(t *testing.T, c *chaos.Checker) (whole map[string][]string) {
	t.Helper()
	whole = make(map[string][]string)
	c.Each(`SELECT r.lease_id, COALESCE(g.removed_at, -1), g.start_at = r.start_at AND g.end_at = r.end_at, r.status FROM reservations r
		LEFT JOIN lease_groups g ON g.id = r.lease_id WHERE r.lease_id <> '' ORDER BY r.lease_id, r.id`, func(rows *sql.Rows) error {
		var id, status string
		var removed int64
		var same sql.NullBool
		if err := rows.Scan(&id, &removed, &same, &status); err != nil {
			return err
		}
		if removed < 0 || !same.Bool || (removed > 0) != (status == "canceled") {
			t.Errorf("a part of group %s is %s; the group is there: %t, deleted: %t, with the same times: %t", id, status, removed >= 0, removed > 0, same.Bool)
		}
		whole[id] = append(whole[id], status)
		return nil
	})
	for id, parts := range whole {
		if len(parts) != 2 || parts[0] != parts[1] {
			t.Errorf("the parts of group %s are %v, want two alike", id, parts)
		}
	}
	if n := c.Number("SELECT COUNT(*) FROM lease_groups"); int(n) != len(whole) {
		t.Errorf("%d groups are stored, %d have parts", n, len(whole))
	}
	return whole
}

// groupLedger records what clients know of their groups.
type groupLedger struct {
	mu       sync.Mutex
	status   map[string]string // acknowledged
	doubtful map[string]bool   // a change was sent without an answer
}

func (l *groupLedger) know(id, status string, doubtful bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if status != "" {
		l.status[id] = status
	}
	l.doubtful[id] = doubtful
}

func (l *groupLedger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.status)
}

// work books groups of hosts and instances, moves some and cancels some, until the service is gone.
func (l *groupLedger) work(ctx context.Context, t *testing.T, c *client.Client, begin time.Time, random *rand.Rand) {
	for {
		start, lasts, hosts := begin.Add(time.Duration(random.IntN(200))*time.Hour), v1.Duration(3600*(1+random.IntN(6))), 1+random.IntN(4)
		g, err := c.CreateGroup(ctx, v1.GroupRequest{Name: "g", StartTime: &start, Duration: &lasts, Parts: []v1.GroupPart{
			{Quantity: &v1.QuantityRange{Min: 1, Max: hosts}},
			{Kind: "instance", Quantity: &v1.QuantityRange{Min: 1, Max: 8}, Resources: &v1.Resources{VCPUs: 4}},
		}})
		if err == nil {
			l.know(g.ID, "pending", false)
			switch random.IntN(3) {
			case 0:
				l.know(g.ID, "", true)
				from, to := g.Start.Add(time.Hour), g.End.Add(time.Hour)
				if _, err = c.ChangeGroup(ctx, g.ID, v1.GroupChange{StartTime: &from, EndTime: &to}); err == nil || refused(err) {
					l.know(g.ID, "", false)
				}
			case 1:
				l.know(g.ID, "", true)
				if err = c.DeleteGroup(ctx, g.ID); err == nil {
					l.know(g.ID, "canceled", false)
				}
			}
		}
		if err != nil && gone(err) {
			return
		} else if err != nil && !refused(err) && !busy(err) {
			t.Errorf("unexpected answer: %v", err)
			return
		}
	}
}

func refused(err error) bool {
	answer, is := errors.AsType[*client.Error](err)
	return is && answer.Refusal != nil
}

// busy reports whether the answer is that the request may be sent again.
func busy(err error) bool {
	answer, is := errors.AsType[*client.Error](err)
	return is && answer.Status == http.StatusServiceUnavailable
}

// gone reports whether a request got no answer.
func gone(err error) bool {
	answer, is := errors.AsType[*client.Error](err)
	return !is || answer.Status == 0
}

// Six clients book, move and cancel groups while almanacd is killed again and again: each group is whole, with all that was
// acknowledged.
func TestOnlyWholeGroupsAreThereWhenTheServiceIsKilled(t *testing.T) {
	connection := labtest.Database(t)
	built.Migrate(t, connection)
	c := chaos.NewChecker(t, "mysql", labtest.DSN(t, connection))
	kept := &groupLedger{status: make(map[string]string), doubtful: make(map[string]bool)}
	begin := time.Now().Add(time.Hour).Truncate(time.Second)
	for round := range uint64(12) {
		s := built.StartOn(t, built.TenHosts, append(unhurried(), "OS_DATABASE__CONNECTION="+connection)...)
		var clients sync.WaitGroup
		for i := range uint64(6) {
			random := rand.New(rand.NewPCG(round, i))
			clients.Go(func() { kept.work(t.Context(), t, s.Client(t), begin, random) })
		}
		built.Eventually(t, "no 8 groups in a round", func() bool { return kept.count() >= 8*(int(round)+1) })
		s.Kill()
		clients.Wait()
		c.Check(16)
		stored := wholeGroups(t, c)
		for id, told := range kept.status {
			if parts := stored[id]; len(parts) == 0 || !kept.doubtful[id] && !slices.Equal(parts, []string{told, told}) {
				t.Errorf("group %s is acknowledged as %s, and stored as %v", id, told, parts)
			}
		}
	}
	stored, listed := wholeGroups(t, c), 0
	for g, err := range built.StartOn(t, built.TenHosts, append(unhurried(), "OS_DATABASE__CONNECTION="+connection)...).Client(t).ListGroups(t.Context(), client.GroupFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if listed++; len(g.Reservations) != 2 || stored[g.ID][0] == "canceled" {
			t.Errorf("listed is %+v, stored %v", g, stored[g.ID])
		}
	}
	t.Logf("%d groups are acknowledged, %d stored, %d listed", kept.count(), len(stored), listed)
}
