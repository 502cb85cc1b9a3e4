// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The kinds of work whose time is measured.
const (
	aBooking = "booking"
	aRead    = "read"
	aBuild   = "build"
)

var kinds = []string{aBooking, aRead, aBuild}

// vitals are what a process holds; they are zero while it is down.
type vitals struct{ memory, goroutines, descriptors float64 }

// sample is one row of a series.
type sample struct {
	at            time.Time
	replicas      []vitals
	took          map[string][]time.Duration // by kind, since the last sample
	calm          map[string][]time.Duration // those of took that no disturbance made longer
	rows          map[string]int64           // by table; nil while the database is down
	live, servers int                        // reservations and servers that exist
	recorded      int64                      // reservations and servers so far
}

// clocks measures work, also of several goroutines.
type clocks struct {
	shaken   atomic.Int64 // nanoseconds of Unix time: work that began before it does not count as calm
	recorded atomic.Int64 // bookings and builds so far

	mu         sync.Mutex
	took, calm map[string][]time.Duration
}

// done records work of a kind that began at asked and has just been done.
func (c *clocks) done(kind string, asked time.Time) {
	took := time.Since(asked)
	if kind != aRead {
		c.recorded.Add(1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.took == nil {
		c.took, c.calm = map[string][]time.Duration{}, map[string][]time.Duration{}
	}
	c.took[kind] = append(c.took[kind], took)
	if asked.UnixNano() > c.shaken.Load() {
		c.calm[kind] = append(c.calm[kind], took)
	}
}

// take returns what was recorded since the last call.
func (c *clocks) take() (took, calm map[string][]time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	took, calm = c.took, c.calm
	c.took, c.calm = map[string][]time.Duration{}, map[string][]time.Duration{}
	return took, calm
}

// seriesFile is the CSV file of a series, with a line for each sample.
type seriesFile struct {
	path   string
	lines  *csv.Writer
	tables []string
	begun  time.Time
}

// newSeriesFile creates the file with its heading. The end of the test closes it.
func newSeriesFile(t *testing.T, path string, replicas int, tables []string) *seriesFile {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	f := &seriesFile{path: path, lines: csv.NewWriter(file), tables: tables, begun: time.Now()}
	heading := []string{"second"}
	for i := range replicas {
		heading = append(heading, fmt.Sprint("resident_bytes_", i), fmt.Sprint("goroutines_", i), fmt.Sprint("descriptors_", i))
	}
	for _, kind := range kinds {
		heading = append(heading, kind+"s", kind+"_p50_ms", kind+"_p99_ms")
	}
	f.write(t, append(append(heading, "reservations_live", "servers"), tables...))
	return f
}

func (f *seriesFile) write(t *testing.T, line []string) {
	if err := f.lines.Write(line); err != nil {
		t.Error(err)
	}
	if f.lines.Flush(); f.lines.Error() != nil {
		t.Error(f.lines.Error())
	}
}

// add writes a sample. What is not known is empty.
func (f *seriesFile) add(t *testing.T, s sample) {
	line := []string{fmt.Sprint(int(s.at.Sub(f.begun).Seconds()))}
	for _, v := range s.replicas {
		for _, value := range []float64{v.memory, v.goroutines, v.descriptors} {
			line = append(line, fmt.Sprintf("%.0f", value))
		}
	}
	for _, kind := range kinds {
		took := s.took[kind]
		line = append(line, fmt.Sprint(len(took)), fmt.Sprint(percentile(took, 50).Milliseconds()), fmt.Sprint(percentile(took, 99).Milliseconds()))
	}
	line = append(line, fmt.Sprint(s.live), fmt.Sprint(s.servers))
	for _, table := range f.tables {
		text := ""
		if s.rows != nil {
			text = fmt.Sprint(s.rows[table])
		}
		line = append(line, text)
	}
	f.write(t, line)
}

// The bounds of growth from the second quarter of a series to the last. The second one begins after
// caches and pools are filled.
const (
	mostGrowth      = 1.25 // of memory, goroutines and descriptors, as medians of the quarter
	moreMemory      = 16e6 // bytes that memory may grow beside it
	moreThings      = 20   // goroutines or descriptors
	mostRowsGrowth  = 2.0  // of the rows for each booking and build
	moreRows        = 200
	mostMedian      = 3.0 // of a calm latency
	mostPercentile  = 10.0
	leastPercentile = time.Second // a 99th percentile below it is never too high
	leastMedian     = 200 * time.Millisecond
)

// grown returns a sentence for each figure of a series, and those of the figures that have grown by
// more than their bound. Vitals are those of the first replica, which runs throughout; tables that
// forget their old rows are left out.
func grown(series []sample, length time.Duration, forgetful []string) (figures, tooMuch []string) {
	if len(series) < 8 {
		return nil, []string{fmt.Sprintf("%d samples are too few to show anything", len(series))}
	}
	begun := series[0].at
	quarter := func(n int) []sample {
		return slices.DeleteFunc(slices.Clone(series), func(s sample) bool { return int(4*s.at.Sub(begun)/length) != n })
	}
	second, last := quarter(1), quarter(3)
	judge := func(what string, was, is, most float64) {
		said := fmt.Sprintf("%s: %.4g in the second quarter, %.4g in the last, at most %.4g", what, was, is, most)
		figures = append(figures, said)
		if is > most {
			tooMuch = append(tooMuch, said)
		}
	}
	for _, v := range []struct {
		name string
		more float64
		of   func(vitals) float64
	}{
		{"resident bytes", moreMemory, func(v vitals) float64 { return v.memory }},
		{"goroutines", moreThings, func(v vitals) float64 { return v.goroutines }},
		{"descriptors", moreThings, func(v vitals) float64 { return v.descriptors }},
	} {
		was, is := median(second, v.of), median(last, v.of)
		judge(v.name, was, is, mostGrowth*was+v.more)
	}
	for _, kind := range kinds {
		was, is := calmOf(second, kind), calmOf(last, kind)
		judge("median of a "+kind+" in s", percentile(was, 50).Seconds(), percentile(is, 50).Seconds(),
			mostMedian*max(percentile(was, 50), leastMedian).Seconds())
		judge("99th percentile of a "+kind+" in s", percentile(was, 99).Seconds(), percentile(is, 99).Seconds(),
			mostPercentile*max(percentile(was, 99), leastPercentile).Seconds())
	}
	rowsWere, recordedThen := added(second)
	rowsAre, recordedNow := added(last)
	for _, table := range slices.Sorted(maps.Keys(rowsAre)) {
		if !slices.Contains(forgetful, table) && (rowsAre[table] != 0 || rowsWere[table] != 0) {
			judge("rows added to "+table, float64(rowsWere[table]), float64(rowsAre[table]),
				mostRowsGrowth*max(float64(rowsWere[table]), 0)*float64(recordedNow)/float64(max(recordedThen, 1))+moreRows)
		}
	}
	return figures, tooMuch
}

// median returns the median of a figure of the first replica.
func median(of []sample, figure func(vitals) float64) float64 {
	var list []float64
	for _, s := range of {
		if s.replicas[0] != (vitals{}) {
			list = append(list, figure(s.replicas[0]))
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

func calmOf(list []sample, kind string) (all []time.Duration) {
	for _, s := range list {
		all = append(all, s.calm[kind]...)
	}
	return all
}

// added returns how many rows the tables got, and what was recorded at the same time.
func added(list []sample) (rows map[string]int64, recorded int64) {
	list = slices.DeleteFunc(slices.Clone(list), func(s sample) bool { return s.rows == nil })
	if len(list) == 0 {
		return nil, 0
	}
	first, last := list[0], list[len(list)-1]
	rows = map[string]int64{}
	for table, n := range last.rows {
		rows[table] = n - first.rows[table]
	}
	return rows, last.recorded - first.recorded
}

func TestASeriesMayGrowByItsBoundsAndNoMore(t *testing.T) {
	begun := time.Unix(0, 0)
	// series returns a sample for each of 40 minutes, after change has altered it.
	series := func(change func(minute int, s *sample)) (all []sample) {
		for minute := range 40 {
			s := sample{
				at: begun.Add(time.Duration(minute) * time.Minute), replicas: []vitals{{memory: 60e6, goroutines: 100, descriptors: 40}},
				calm: map[string][]time.Duration{aBooking: {time.Second}, aRead: {time.Second}, aBuild: {3 * time.Second}},
				rows: map[string]int64{"changes": int64(100 * minute), "decisions": int64(100 * minute * minute)}, recorded: int64(30 * minute),
			}
			change(minute, &s)
			all = append(all, s)
		}
		return all
	}
	for name, c := range map[string]struct {
		change func(minute int, s *sample)
		want   string
	}{
		"steady":                     {func(int, *sample) {}, ""},
		"before it is warm":          {func(minute int, s *sample) { s.replicas[0].memory = min(60e6, 6e6*float64(minute)) }, ""},
		"a leak of memory":           {func(minute int, s *sample) { s.replicas[0].memory += 4e6 * float64(minute) }, "resident bytes"},
		"a leak of goroutines":       {func(minute int, s *sample) { s.replicas[0].goroutines += 10 * float64(minute) }, "goroutines"},
		"a leak of descriptors":      {func(minute int, s *sample) { s.replicas[0].descriptors += 4 * float64(minute) }, "descriptors"},
		"slower and slower":          {func(minute int, s *sample) { s.calm[aRead][0] *= time.Duration(1 + minute) }, ""},
		"much slower in the end":     {func(minute int, s *sample) { s.calm[aRead][0] *= time.Duration(1 + minute/30*3) }, "median of a read"},
		"rows without work":          {func(minute int, s *sample) { s.rows["changes"] += int64(20 * minute * minute) }, "rows added to changes"},
		"rows for more work":         {func(minute int, s *sample) { s.rows["changes"] *= int64(minute); s.recorded *= int64(minute) }, ""},
		"a database that is away":    {func(minute int, s *sample) { s.rows = map[bool]map[string]int64{true: s.rows}[minute%3 > 0] }, ""},
		"a replica that was sampled": {func(minute int, s *sample) { s.replicas[0] = map[bool]vitals{true: s.replicas[0]}[minute%3 > 0] }, ""},
	} {
		_, tooMuch := grown(series(c.change), 40*time.Minute, []string{"decisions"})
		if got := strings.Join(tooMuch, "\n"); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: too much is %q, want %q", name, got, c.want)
		}
	}
}
