// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// bareBooking is the transaction of a booking without Almanac: the statements of a real one, with
// another id and host each time. They go to a database of their own with the same rows, on the same
// server, since Almanac would refuse to work with the double bookings.
type bareBooking struct {
	db         *sql.DB
	statements []string // in a transaction; with {id} and {host}
}

// newBareBooking records the transaction of a booking.
func newBareBooking(b *testing.B, s *built.Service, database *labtest.MariaDB, hosts, reservations int) *bareBooking {
	b.Helper()
	book := booker(b, s, 99)
	book() // the first of its project, which takes more statements
	var transaction []string
	for _, statements := range database.Record(b, func() { book() }) {
		if i := slices.IndexFunc(statements, reserves.MatchString); i >= 0 {
			begin := i
			for statements[begin-1] != "START TRANSACTION" {
				begin--
			}
			transaction = statements[begin : i+slices.Index(statements[i:], "COMMIT")]
		}
	}
	if len(transaction) == 0 {
		b.Fatal("a booking has sent no transaction that inserts a reservation")
	}
	text := strings.Join(transaction, separator)
	text = strings.ReplaceAll(text, reserves.FindStringSubmatch(text)[1], "{id}")
	text = regexp.MustCompile(`host-\d+`).ReplaceAllString(text, "{host}")
	text = regexp.MustCompile("AND `version` = \\d+").ReplaceAllString(text, "AND `version` > 0")
	built.Migrate(b, database.URL("bare"))
	seedReservations(b, database.DSN("bare"), hosts, reservations)
	db, err := sql.Open("mysql", database.DSN("bare"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	db.SetMaxIdleConns(100)
	return &bareBooking{db, strings.Split(text, separator)}
}

// separator stands between two statements of a text.
const separator = "\n;\n"

// reserves matches the statement that inserts a reservation, and its id.
var reserves = regexp.MustCompile("INSERT INTO `reservations`.*VALUES \\('([0-9a-f-]+)'")

// run sends the transaction, for one of the first hundred hosts.
func (bare *bareBooking) run(ctx context.Context) error {
	tx, err := bare.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	values := strings.NewReplacer("{id}", uuid.NewString(), "{host}", fmt.Sprintf("host-%05d", 1+rand.IntN(100)))
	for _, statement := range bare.statements {
		if _, err := tx.Exec(values.Replace(statement)); err != nil {
			return fmt.Errorf("%w; roll back: %w", err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// benchmarkBesideBare alternates between clients who book and as many who send the bare
// transaction.
func benchmarkBesideBare(b *testing.B, s *built.Service, bare *bareBooking, database *labtest.MariaDB, clients int) {
	const each = 20 // requests of a client in one round
	var books []func() time.Duration
	for i := range clients {
		books = append(books, booker(b, s, uint64(2+i)))
	}
	var booked, sent []time.Duration
	var booking, sending time.Duration
	var statements int64
	rounds := max(1, b.N/(clients*each))
	for range rounds {
		before := database.Questions(b)
		took, times := inParallel(clients, each, func(i int) { books[i]() })
		statements += database.Questions(b) - before
		booking, booked = booking+took, append(booked, times...)
		took, times = inParallel(clients, each, func(int) {
			if err := bare.run(b.Context()); err != nil {
				b.Error(err)
			}
		})
		sending, sent = sending+took, append(sent, times...)
	}
	all := float64(rounds * clients * each)
	b.ReportMetric(all/booking.Seconds(), "bookings/s")
	b.ReportMetric(all/sending.Seconds(), "bare-transactions/s")
	b.ReportMetric(sending.Seconds()/booking.Seconds(), "bookings/bare")
	b.ReportMetric(float64(statements)/all, "statements/booking")
	reportSpread(b, booked, "")
	reportSpread(b, sent, "bare-")
}

// inParallel lets callers call do at the same time, each of them a number of times one after the other,
// and returns how long all of them took, and the times of the calls.
func inParallel(callers, each int, do func(caller int)) (took time.Duration, times []time.Duration) {
	var all sync.WaitGroup
	var mu sync.Mutex
	begun := time.Now()
	for i := range callers {
		all.Go(func() {
			for range each {
				sent := time.Now()
				do(i)
				one := time.Since(sent)
				mu.Lock()
				times = append(times, one)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return time.Since(begun), times
}

// reportSpread reports the median and the 99th percentile of times.
func reportSpread(b *testing.B, times []time.Duration, of string) {
	slices.Sort(times)
	b.ReportMetric(milliseconds(times[len(times)/2]), of+"p50-ms")
	b.ReportMetric(milliseconds(times[len(times)*99/100]), of+"p99-ms")
}

// BenchmarkBesideSlurm books hosts at an almanacd on MariaDB and nodes at Slurm's controller in
// turn: 1,000 of each, with 3,000 reservations of an hour to a day in the next 90 days before. Slurm's
// command line reads all commands of a client from its standard input, so no command starts a process.
func BenchmarkBesideSlurm(b *testing.B) {
	const hosts, before, each = 1_000, 3_000, 25
	database := labtest.StartMariaDB(b)
	connection := database.URL("almanac")
	built.Migrate(b, connection)
	seedReservations(b, database.DSN("almanac"), hosts, before)
	s := built.StartOn(b, hostsFile(hosts), "OS_DATABASE__CONNECTION="+connection)
	slurm := labtest.StartSlurm(b, hosts)
	slurm.Control(slurmReservations(before)...)
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprintf("%d clients", clients), func(b *testing.B) {
			var books []func() time.Duration
			for i := range clients {
				books = append(books, booker(b, s, uint64(1+i)))
			}
			var ours, theirs time.Duration
			for b.Loop() {
				took, _ := inParallel(clients, each, func(i int) { books[i]() })
				ours += took
				took, _ = inParallel(clients, 1, func(int) { slurm.Control(slurmReservations(each)...) })
				theirs += took
			}
			all := float64(b.N * clients * each)
			b.ReportMetric(all/ours.Seconds(), "bookings/s")
			b.ReportMetric(all/theirs.Seconds(), "Slurm-reservations/s")
			b.ReportMetric(theirs.Seconds()/ours.Seconds(), "times-faster")
		})
	}
}

// slurmReservations returns the commands that create reservations of one node at random times.
func slurmReservations(n int) (commands []string) {
	for range n {
		start := time.Now().Add(time.Hour + time.Duration(rand.IntN(90*24*3600))*time.Second)
		commands = append(commands, fmt.Sprintf("create reservation StartTime=%s Duration=%d Users=root NodeCnt=1",
			start.Format("2006-01-02T15:04:05"), 60*(1+rand.IntN(24))))
	}
	return commands
}
