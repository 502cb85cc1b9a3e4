// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/chaos"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// For hours without a break users book, change and cancel, owners start servers by the hint, other
// servers come and go, and every few minutes something is killed. The promises of
// docs/reliability.md hold, Nova and Placement agree with them, and nothing grows but what was
// recorded.
//
//make:test-hours
func TestPromisesSurviveHoursOfChurnBesideARealCloudAndNothingGrows(t *testing.T) {
	c := startHours(t, hoursOfChurn(t))
	c.lasts()

	reportGuests(t, c.guests)
	c.clear(plain, preemptible)
	check := chaos.NewChecker(t, "mysql", c.dsn)
	chaos.Settled(t, check)
	chaos.Report(t, c.users, int(chaos.FewestBookings*c.length.Hours()))
	check.Check(vcpusOfHost)
	check.CheckPeaks(c.most)
	c.history.Report(t, c.users, check)
	for _, u := range c.users {
		u.Hold(check)
	}
	chaos.NoneOfItself(t, c.users, check, 0)
	chaos.EverythingTold(t, check, c.heard)
	c.forgets(check)

	c.witness.look()
	c.witness.report()
	c.watchCapacity()()
	c.housed()
	c.clear(own)
	c.unleaked()
	c.within(10*time.Minute, 5*time.Second, "the doctor finds nothing", c.sound)
	c.flat()
}

// hoursOfChurn returns for how long the test runs.
func hoursOfChurn(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("ALMANAC_TEST_HOURS")
	if text == "" {
		t.Skip("make test-hours runs it")
	}
	hours, err := strconv.ParseFloat(text, 64)
	if err != nil || hours < 0.05 {
		t.Fatalf("HOURS is a number of hours such as 4 or 1.5, at least 0.05, not %s", text)
	}
	return time.Duration(hours * float64(time.Hour))
}

// vcpusOfHost is what can be reserved of each host of the lab.
const vcpusOfHost = 10

// The limits after which rows are deleted, in the settings of hours. The jobs that delete them run
// once an hour.
const (
	keysStay      = time.Minute
	decisionsStay = time.Hour
	deletedEvery  = time.Hour
)

// hours is three almanacd in the place of nova-scheduler, and all who use the cloud. Nobody disturbs
// the first almanacd, so that what it holds tells what hours of work add.
type hours struct {
	*beside
	length    time.Duration
	most      int64  // hosts that each of two projects may reserve at one instant: a third of the pool, so that failed ones can be replaced
	dsn       string // of Almanac's database
	chance    *rand.Rand
	replicas  *chaos.Replicas
	clocks    clocks
	history   chaos.Chronicle
	disturbed atomic.Int64 // disturbances so far
	users     []*chaos.User
	guests    []*guest
	witness   *witness
	series    []sample
	csv       *seriesFile

	killService, startService func(name string)
}

// startHours starts the replicas with the default configuration, except for what tests need and for
// the shortest limits of what Almanac keeps.
func startHours(t *testing.T, length time.Duration) *hours {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("ALMANAC_HOURS_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("ALMANAC_HOURS_SEED: %v", err)
		}
	}
	t.Logf("%v of churn with the seed %d: ALMANAC_HOURS_SEED=%d repeats what is drawn", length, seed, seed)
	hosts := labtest.OpenStack(t).Hosts(t)
	c := &hours{length: length, chance: rand.New(rand.NewPCG(seed, 0)), most: int64(len(hosts) / 4)}
	c.beside = besideOpenStack(t, append(built.AtTopic(t, built.Replace, ""),
		"OS_DEFAULT__DEBUG=false", // hours of it would fill the memory of the test
		"OS_INVENTORY__REFRESH_INTERVAL=10",
		"OS_HEALING__GRACE=60",
		// Else a reservation may wait for the servers of others until its end.
		"OS_RESERVATION__FENCE=pool",
		fmt.Sprint("OS_LIMITS__MAX_HOSTS_PER_PROJECT=", c.most),
		fmt.Sprintf("OS_RESERVATION__IDEMPOTENCY_KEY_TTL=%.0f", keysStay.Seconds()),
		fmt.Sprintf("OS_SCHEDULER__DECISION_RETENTION=%.0f", decisionsStay.Seconds()))...)
	built.TakeTopic(t)
	c.killService, c.startService = labtest.Killable(t)
	for _, setting := range c.settings {
		if url, is := strings.CutPrefix(setting, "OS_DATABASE__CONNECTION="); is {
			c.dsn = labtest.DSN(t, url)
		}
	}
	c.replicas = chaos.NewReplicas(t, c.settings, c.settings, c.settings)
	c.replicas.Running[0] = c.Service
	c.replicas.Start(1)
	c.replicas.Start(2)
	c.pool(hosts[len(hosts)/4:]...) // the others are for plain servers
	c.employ(seed)
	c.witness = newWitness(c)
	c.csv = newSeriesFile(t, filepath.Join("../..", "var", "hours", time.Now().UTC().Format("20060102T150405")+".csv"), 3, c.tables())
	return c
}

// steady are the habits of users beside a cloud, where a start and an end take a second of Nova's
// time each.
var steady = chaos.Habits{
	Pause: 20 * time.Second, Early: chaos.Seconds{Least: 30, Below: 180}, Lasts: chaos.Seconds{Least: 240, Below: 600},
	Part: func(*rand.Rand) v1.Resources { return v1.Resources{VCPUs: 1, MemoryMB: 512, DiskGB: 1} },
}

// employ engages four users and six tenants with servers, two of them owners.
func (c *hours) employ(seed uint64) {
	token := func(who labtest.User) func(context.Context) (string, error) {
		text := c.cloud.Token(c.t, who) // it is valid for a day
		return func(context.Context) (string, error) { return text, nil }
	}
	for i := range uint64(4) {
		u := chaos.NewUser(c.t, c.replicas, i)
		u.Chance, u.Habits = rand.New(rand.NewPCG(seed, 1+i)), steady
		u.Token = token([]labtest.User{labtest.Demo, labtest.Demo2}[i%2])
		u.Forgets = true
		u.Took = func(took time.Duration) { c.clocks.done(aBooking, time.Now().Add(-took)) }
		c.users = append(c.users, u)
	}
	spot := c.sized("spot", 1, map[string]string{"almanac:preemptible": "true"})
	image := c.image()
	for i := range uint64(6) {
		kind := []string{own, plain, preemptible}[i%3]
		g := &guest{
			hours: c, kind: kind, who: []*tenant{c.demo, c.demo2}[i/3], flavor: tiny, image: image, most: 10,
			chance: rand.New(rand.NewPCG(seed, 11+i)), faults: map[string]int{}, inside: map[string]int{},
		}
		if kind == preemptible {
			g.flavor = spot
		}
		c.guests = append(c.guests, g)
	}
}

// lasts lets all work, disturbs them, and returns after the time of the churn, when all is whole.
func (c *hours) lasts() {
	ctx, stop := context.WithTimeout(c.t.Context(), c.length)
	defer stop()
	var working sync.WaitGroup
	defer working.Wait()
	for _, u := range c.users {
		working.Go(func() { u.Work(ctx) })
	}
	for _, g := range c.guests {
		working.Go(func() { g.comeAndGo(ctx) })
	}
	reader := chaos.NewUser(c.t, c.replicas, 21)
	reader.Token = c.users[0].Token
	working.Go(func() { c.read(ctx, reader) })
	working.Go(func() { c.sampleAll(ctx) })

	gap := min(3*time.Minute, c.length/10)
	all := c.disturbances()
	var next []int
	for chaos.Pass(ctx, gap/2+below(c.chance, gap)) {
		if len(next) == 0 {
			next = c.chance.Perm(len(all))
		}
		one := all[next[0]]
		next = next[1:]
		c.clocks.shaken.Store(time.Now().Add(24 * time.Hour).UnixNano())
		c.history.Note(one.what)
		c.disturbed.Add(1)
		one.do(ctx)
		c.clocks.shaken.Store(time.Now().Add(gap / 3).UnixNano())
	}
}

// below draws a duration below most.
func below(chance *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(chance.Int64N(int64(most)))
}

// disturbance is something that goes wrong, and is whole again when do returns.
type disturbance struct {
	what string
	do   func(ctx context.Context)
}

func (c *hours) disturbances() []disturbance {
	// killed keeps a service away for some seconds.
	killed := func(what, service string, away time.Duration) disturbance {
		return disturbance{"kill -9 of " + what, func(ctx context.Context) {
			c.killService(service)
			chaos.Pass(ctx, away)
			c.startService(service)
		}}
	}
	return []disturbance{
		killed("RabbitMQ", "rabbitmq", time.Second),
		killed("MariaDB", "mariadb", time.Second),
		killed("a nova-compute for 20 s", c.cloud.LastCompute(c.t), 20*time.Second),
		killed("a nova-compute until its host is replaced", c.cloud.LastCompute(c.t), 90*time.Second),
		killed("nova-conductor", "nova-conductor", time.Second),
		{"kill -9 of an almanacd", func(context.Context) {
			i := 1 + c.chance.IntN(2)
			c.replicas.Kill(i)
			c.replicas.Start(i)
		}},
		{"restart of two almanacd, one after the other", func(context.Context) {
			for i := 1; i < 3; i++ {
				c.replicas.Stop(i)
				c.replicas.Start(i)
			}
		}},
	}
}

// forgets checks that no row has stayed longer than its limit and the time until the next deletion.
func (c *hours) forgets(check *chaos.Checker) {
	c.t.Helper()
	for _, f := range forgetful {
		oldest := check.Number("SELECT COALESCE(MIN(" + f.column + "), 0) FROM " + f.table)
		rows := check.Number("SELECT COUNT(*) FROM " + f.table)
		age := time.Since(time.Unix(oldest, 0)).Round(time.Second)
		if oldest == 0 {
			age = 0
		}
		c.t.Logf("%s: %d rows, the oldest of %v", f.table, rows, age)
		if most := f.stays + deletedEvery + time.Minute; age > most {
			c.t.Errorf("%s has a row of %v, at most %v is right", f.table, age, most)
		}
	}
}

// forgetful are the tables whose rows are deleted by their age.
var forgetful = []struct {
	table, column string
	stays         time.Duration
}{
	{"idempotency_keys", "created_at", keysStay},
	{"decisions", "decided_at", decisionsStay},
	{"decision_subjects", "decided_at", decisionsStay},
}

// flat fails the test if a figure has grown by more than its bound.
func (c *hours) flat() {
	c.t.Helper()
	var left []string
	for _, f := range forgetful {
		left = append(left, f.table)
	}
	figures, tooMuch := grown(c.series, c.length, left)
	c.t.Logf("the series is in %s; its quarters:\n%s", c.csv.path, strings.Join(figures, "\n"))
	if len(tooMuch) > 0 {
		c.t.Errorf("more than the bound:\n%s", strings.Join(tooMuch, "\n"))
	}
}

// housed checks that each running server has allocations on its host and nowhere else.
func (c *hours) housed() {
	c.t.Helper()
	var providers struct {
		All []struct{ UUID, Name string } `json:"resource_providers"`
	}
	c.admin.Must("GET", "placement", "/resource_providers", nil, &providers)
	name := map[string]string{}
	for _, p := range providers.All {
		name[p.UUID] = strings.TrimPrefix(p.Name, "almanac_") // the provider of a host's parts
	}
	servers, err := c.witness.servers()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, s := range servers {
		var found struct{ Allocations map[string]any }
		c.admin.Must("GET", "placement", "/allocations/"+s.ID, nil, &found)
		var on []string
		for uuid := range found.Allocations {
			on = append(on, name[uuid])
		}
		slices.Sort(on)
		if s.Status == "ACTIVE" && !slices.Equal(slices.Compact(on), []string{s.Host}) {
			c.t.Errorf("server %s runs on %s and has allocations on %v", s.Name, s.Host, on)
		}
	}
	c.t.Logf("%d servers have their allocations", len(servers))
}
