// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/chaos"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// witness compares what Nova runs with what is promised, through their APIs.
type witness struct {
	*hours
	who   *tenant             // an admin
	had   map[string][]string // the hosts that each reservation has ever had
	whole map[string]vow      // by host: the promise of all of it
	looks int
	seen  map[string]int // servers by kind

	deleting map[string]time.Time // since when the witness sees that a server is being deleted
	mended   int
}

// vow is the promise of a whole host to a reservation.
type vow struct {
	reservation string
	known       time.Time // since when the witness knows
}

func newWitness(c *hours) *witness {
	return &witness{hours: c, who: c.tenant(labtest.Admin), had: map[string][]string{}, whole: map[string]vow{}, seen: map[string]int{}, deleting: map[string]time.Time{}}
}

// look checks that each server by the hint is on a host of its reservation, and that no other server
// was put on a host that was promised before. It returns the numbers of both; they are 0 while
// something is disturbed.
func (w *witness) look() (live, running int) {
	servers, err := w.servers() // before the reservations, so that their hosts are those of all servers
	if err != nil {
		return 0, 0
	}
	reservations, err := w.reservations()
	if err != nil {
		return 0, 0
	}
	w.looks++
	for _, s := range servers {
		w.seen[s.kind()]++
		if s.Status == "ACTIVE" {
			w.judge(s, reservations)
		}
	}
	w.learn(reservations)
	w.mend(servers)
	return len(reservations), len(servers)
}

// judge judges where a server runs.
func (w *witness) judge(s created, reservations map[string]v1.Reservation) {
	kind, of := s.kind(), strings.TrimPrefix(s.Name, own+" ")
	known, promised := w.whole[s.Host]
	r, live := reservations[known.reservation]
	stays := promised && live && slices.Contains(r.Hosts, s.Host) // since the last look
	switch {
	case kind == own && live && stays && of != r.ID && s.CreatedAt.After(known.known):
		w.t.Errorf("%s runs on %s, which is promised to %s", s.Name, s.Host, r.ID)
	case kind == own:
		if its, there := reservations[of]; there && !slices.Contains(its.Hosts, s.Host) && !slices.Contains(w.had[of], s.Host) {
			w.t.Errorf("%s runs on %s, outside its reservation of %v", s.Name, s.Host, its.Hosts)
		}
	case kind == plain && stays && s.CreatedAt.After(known.known):
		w.t.Errorf("a plain server of %v runs on %s, which has been promised to %s since %v", s.CreatedAt, s.Host, r.ID, known.known)
	}
}

// learn remembers whose the hosts are.
func (w *witness) learn(reservations map[string]v1.Reservation) {
	now, held := time.Now(), map[string]vow{}
	for id, r := range reservations {
		for _, host := range r.Hosts {
			if !slices.Contains(w.had[id], host) {
				w.had[id] = append(w.had[id], host)
			}
			if r.Kind == "instance" {
				continue
			}
			if v := w.whole[host]; v.reservation == id {
				held[host] = v
			} else if r.Status == "active" || held[host].reservation == "" {
				held[host] = vow{id, now}
			}
		}
	}
	w.whole = held
}

// mend does what an operator does about a deletion that goes on for minutes: Nova ignores further
// requests to delete the server, though it lost the message of the first with the broker.
func (w *witness) mend(servers []created) {
	deleting := map[string]time.Time{}
	for _, s := range servers {
		since, seen := w.deleting[s.ID]
		switch {
		case s.Task != "deleting":
		case !seen:
			deleting[s.ID] = time.Now()
		case time.Since(since) <= longestBuild:
			deleting[s.ID] = since
		default:
			w.who.Do(http.MethodPost, "compute", "/servers/"+s.ID+"/action", map[string]any{"os-resetState": map[string]string{"state": "active"}}, nil)
			w.who.Do(http.MethodDelete, "compute", "/servers/"+s.ID, nil, nil)
			w.mended++
		}
	}
	w.deleting = deleting
}

// reservations returns those that are not over, with their hosts.
func (w *witness) reservations() (map[string]v1.Reservation, error) {
	all := map[string]v1.Reservation{}
	for r, err := range w.who.almanac.ListReservations(w.t.Context(), client.ReservationFilter{
		AllProjects: true, Statuses: []string{"pending", "starting", "active", "ending"},
	}) {
		if err != nil {
			return nil, fmt.Errorf("list the reservations: %w", err)
		}
		all[r.ID] = r
	}
	return all, nil
}

// created is a server with the time of its request, in whole seconds.
type created struct {
	server
	CreatedAt time.Time `json:"created"`
}

func (s created) kind() string {
	kind, _, _ := strings.Cut(s.Name, " ")
	return kind
}

// servers returns all servers of Nova, up to a page of them.
func (w *witness) servers() ([]created, error) {
	var found struct{ Servers []created }
	if status := w.who.Do(http.MethodGet, "compute", "/servers/detail?all_tenants=1&limit=1000", nil, &found); status != http.StatusOK {
		return nil, fmt.Errorf("list the servers: status %d", status)
	}
	return found.Servers, nil
}

// report logs what the witness has seen, which must be something.
func (w *witness) report() {
	w.t.Helper()
	w.t.Logf("the witness has looked %d times, at servers %v; Nova forgot the deletion of %d", w.looks, w.seen, w.mended)
	if w.looks == 0 || w.seen[own] == 0 || w.seen[plain] == 0 {
		w.t.Error("the witness has seen too little")
	}
}

// sampleAll takes a sample each minute, or forty in all of a shorter churn, writes it into the file,
// and logs progress every ten minutes, until ctx ends.
func (c *hours) sampleAll(ctx context.Context) {
	db, err := sql.Open("mysql", c.dsn)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer db.Close()
	every := min(time.Minute, c.length/40)
	told, begun := time.Now(), time.Now()
	for chaos.Pass(ctx, every) {
		s := c.sample(ctx, db)
		c.series = append(c.series, s)
		c.csv.add(c.t, s)
		if time.Since(told) >= min(10*time.Minute, c.length/6) {
			told = time.Now()
			c.t.Logf("after %v: %d bookings and builds, %d reservations, %d servers, %.0f MB resident, %.0f goroutines, %.0f descriptors, %d disturbances%s",
				time.Since(begun).Round(time.Second), s.recorded, s.live, s.servers,
				s.replicas[0].memory/1e6, s.replicas[0].goroutines, s.replicas[0].descriptors, c.disturbed.Load(), load())
		}
	}
}

func (c *hours) sample(ctx context.Context, db *sql.DB) sample {
	s := sample{at: time.Now()}
	for i := range c.replicas.Running {
		s.replicas = append(s.replicas, c.vitals(ctx, i))
	}
	s.rows = c.rows(ctx, db)
	s.live, s.servers = c.witness.look()
	s.took, s.calm = c.clocks.take()
	s.recorded = c.clocks.recorded.Load()
	return s
}

// vitals reads a replica's metrics.
func (c *hours) vitals(ctx context.Context, i int) (v vitals) {
	s := c.replicas.At(i)
	if s == nil {
		return v
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		c.t.Error(err)
		return v
	}
	answer, err := c.replicas.HTTP.Do(ask)
	if err != nil {
		return v // it is being killed
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		for name, value := range map[string]*float64{
			"process_resident_memory_bytes": &v.memory, "go_goroutines": &v.goroutines, "process_open_fds": &v.descriptors,
		} {
			if text, is := strings.CutPrefix(lines.Text(), name+" "); is {
				_, _ = fmt.Sscan(text, value) // 0 shows that there is no number
			}
		}
	}
	return v
}

// tables returns the tables of Almanac's database.
func (c *hours) tables() (names []string) {
	c.t.Helper()
	chaos.NewChecker(c.t, "mysql", c.dsn).Each("SHOW TABLES", func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	})
	return names
}

// rows returns the number of rows of each table, or nil while the database is down.
func (c *hours) rows(ctx context.Context, db *sql.DB) map[string]int64 {
	rows := map[string]int64{}
	for _, table := range c.csv.tables {
		var n int64
		if db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&n) != nil {
			return nil
		}
		rows[table] = n
	}
	return rows
}
