// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the checker reads the database without Almanac's code
)

// record is a reservation as it is in the database.
type record struct {
	id, project, kind, status string
	quantity, vcpus           int64
	start, end, version       int64
	claims                    []claim
	events                    []event
}

type claim struct {
	host              string
	start, end, count int64
}

type event struct {
	kind, state string
	due, done   int64
}

func (r *record) live() bool {
	return slices.Contains([]string{"pending", "starting", "active", "ending"}, r.status)
}

// Checker reads promises with its own SQL.
type Checker struct {
	t  *testing.T
	db *sql.DB
	// from is db, or the transaction in which check sees a single state of it.
	from interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
	records map[string]*record
}

// NewChecker returns a checker of the database, which may still be in use.
func NewChecker(t *testing.T, driver, dsn string) *Checker {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &Checker{t: t, db: db, from: db}
}

// Each calls scan for every row of a query.
func (c *Checker) Each(query string, scan func(rows *sql.Rows) error) {
	c.t.Helper()
	rows, err := c.from.QueryContext(c.t.Context(), query)
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		c.t.Fatal(err)
	}
}

// Number returns the single number that a query selects.
func (c *Checker) Number(query string, args ...any) (n int64) {
	c.t.Helper()
	if err := c.db.QueryRowContext(c.t.Context(), query, args...).Scan(&n); err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
	return n
}

func (c *Checker) load() {
	c.t.Helper()
	c.records = make(map[string]*record)
	c.Each(`SELECT id, project_id, kind, status, quantity, vcpus, start_at, end_at, version FROM reservations`, func(rows *sql.Rows) error {
		var r record
		err := rows.Scan(&r.id, &r.project, &r.kind, &r.status, &r.quantity, &r.vcpus, &r.start, &r.end, &r.version)
		c.records[r.id] = &r
		return err
	})
	c.Each(`SELECT reservation_id, host, start_at, end_at, slices FROM claims ORDER BY reservation_id, seq`, func(rows *sql.Rows) error {
		var id string
		var k claim
		err := rows.Scan(&id, &k.host, &k.start, &k.end, &k.count)
		c.of(id).claims = append(c.of(id).claims, k)
		return err
	})
	c.Each(`SELECT reservation_id, type, state, due_at, done_at FROM events ORDER BY reservation_id, seq`, func(rows *sql.Rows) error {
		var id string
		var e event
		err := rows.Scan(&id, &e.kind, &e.state, &e.due, &e.done)
		c.of(id).events = append(c.of(id).events, e)
		return err
	})
}

// of returns the record of a claim or an event.
func (c *Checker) of(id string) *record {
	c.t.Helper()
	r, ok := c.records[id]
	if !ok {
		c.t.Fatalf("a claim or an event belongs to %s, which does not exist", id)
	}
	return r
}

// Check reads a single state of the database and checks every promise against every other.
// Each host has that many vCPUs.
func (c *Checker) Check(vcpus int64) {
	c.t.Helper()
	moment, err := c.db.BeginTx(c.t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		c.t.Fatal(err)
	}
	defer moment.Rollback()
	c.from = moment
	defer func() { c.from = c.db }()
	c.load()
	c.checkHosts(vcpus)
	for _, r := range c.records {
		c.checkWhole(r)
		c.checkEvents(r)
	}
	c.checkUsage()
	c.checkLog()
}

// checkHosts checks that at no instant a host is promised twice, or more of it than it has.
func (c *Checker) checkHosts(vcpus int64) {
	type edge struct {
		at          int64
		whole, part int64
	}
	edges := make(map[string][]edge)
	for _, r := range c.records {
		if !r.live() {
			continue
		}
		for _, k := range r.claims {
			whole, part := int64(1), int64(0)
			if r.kind == "instance" {
				whole, part = 0, r.vcpus*k.count
			}
			edges[k.host] = append(edges[k.host], edge{k.start, whole, part}, edge{k.end, -whole, -part})
		}
	}
	for host, list := range edges {
		slices.SortFunc(list, func(a, b edge) int { // ends come before starts
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return int(a.whole + a.part - b.whole - b.part)
		})
		whole, part := int64(0), int64(0)
		for _, e := range list {
			whole, part = whole+e.whole, part+e.part
			if whole > 1 || whole == 1 && part > 0 || part > vcpus {
				c.t.Errorf("%s is promised %d times as a whole and %d vCPUs of it at %d", host, whole, part, e.at)
			}
		}
	}
}

// checkWhole checks that a reservation that holds claims holds everything that it promises.
func (c *Checker) checkWhole(r *record) {
	if !r.live() {
		return
	}
	held := int64(0)
	for _, k := range r.claims {
		held += max(k.count, 1)
		if k.start > r.end || k.end != r.end {
			c.t.Errorf("%s holds %s from %d to %d, but lasts from %d to %d", r.id, k.host, k.start, k.end, r.start, r.end)
		}
	}
	if held != r.quantity {
		c.t.Errorf("%s (%s, version %d) holds %d of %d", r.id, r.status, r.version, held, r.quantity)
	}
}

// checkEvents checks that start and end are in the log once, and done if the status requires it.
func (c *Checker) checkEvents(r *record) {
	states := make(map[string][]string)
	for _, e := range r.events {
		states[e.kind] = append(states[e.kind], e.state)
	}
	started, ended := []string{"done"}, []string{"done"}
	switch r.status {
	case "waiting":
		started, ended = nil, nil
	case "pending":
		started, ended = []string{"pending"}, []string{"pending"}
	case "starting": // a cloud takes its time
		started, ended = states["start"], []string{"pending"}
	case "active":
		ended = []string{"pending"}
	case "ending":
		ended = states["end"]
	case "canceled": // before or after the start
		started, ended = states["start"], nil
	}
	if !slices.Equal(states["start"], started) || len(started) > 1 || !slices.Equal(states["end"], ended) || len(ended) > 1 || len(states["created"]) != 1 {
		c.t.Errorf("%s is %s, but has the events %v", r.id, r.status, r.events)
	}
}

// checkUsage checks that the usage of each project is the sum of its reservations.
func (c *Checker) checkUsage() {
	type usage struct{ hosts, seconds int64 }
	want, got := make(map[string]usage), make(map[string]usage)
	for _, r := range c.records {
		if !r.live() {
			continue
		}
		u := want[r.project]
		u.hosts += r.quantity
		for _, k := range r.claims {
			u.seconds += (k.end - k.start) * max(k.count, 1)
		}
		want[r.project] = u
	}
	c.Each(`SELECT project_id, hosts, host_seconds FROM project_usage WHERE hosts <> 0 OR host_seconds <> 0`, func(rows *sql.Rows) error {
		var project string
		var u usage
		err := rows.Scan(&project, &u.hosts, &u.seconds)
		got[project] = u
		return err
	})
	if fmt.Sprint(want) != fmt.Sprint(got) {
		c.t.Errorf("projects hold %v; the stored usage is %v", want, got)
	}
}

// CheckPeaks checks that at no instant a project holds more than most hosts.
func (c *Checker) CheckPeaks(most int64) {
	changes := make(map[string]map[int64]int64)
	for _, r := range c.records {
		if !r.live() {
			continue
		}
		if changes[r.project] == nil {
			changes[r.project] = make(map[int64]int64)
		}
		for _, k := range r.claims {
			changes[r.project][k.start] += max(k.count, 1)
			changes[r.project][k.end] -= max(k.count, 1)
		}
	}
	for project, at := range changes {
		held := int64(0)
		for _, t := range slices.Sorted(maps.Keys(at)) {
			if held += at[t]; held > most {
				c.t.Errorf("%q holds %d hosts of %d at %d", project, held, most, t)
			}
		}
	}
}

// checkLog checks that the log has every version of every reservation once, and no event twice.
func (c *Checker) checkLog() {
	versions, happened := make(map[string]int64), make(map[string]int)
	c.Each(`SELECT reservation_id, version, action FROM changes ORDER BY reservation_id, version`, func(rows *sql.Rows) error {
		var id, action string
		var version int64
		err := rows.Scan(&id, &version, &action)
		if versions[id]++; versions[id] != version {
			c.t.Errorf("the log of %s has version %d in place %d", id, version, versions[id])
		}
		if action == "start" || action == "end" || action == "create" || action == "cancel" {
			if happened[id+" "+action]++; happened[id+" "+action] > 1 {
				c.t.Errorf("%s happened twice to %s", action, id)
			}
		}
		return err
	})
	for id, r := range c.records {
		if versions[id] != r.version {
			c.t.Errorf("%s has version %d, but its log ends with version %d", id, r.version, versions[id])
		}
	}
}
