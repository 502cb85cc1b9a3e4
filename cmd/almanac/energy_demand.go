package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// measured is what was in use, in the order of time, and the rows of a file that do not
// say so.
type measured struct {
	series    []energy.Demand
	rows      int
	unused    []notUsed
	synthetic bool
}

// mostSamples bounds the time that a back-test takes.
const mostSamples = 5_000_000

// Why rows of measurements are not used.
const (
	negativeUse = "in_use under 0"
	outOfOrder  = "not after the row before"
)

// reasons counts the rows that are not used.
func (m *measured) reasons() map[string]int {
	count := map[string]int{}
	for _, row := range m.unused {
		count[row.Reason]++
	}
	return count
}

// readDemand reads a file of measurements or of reservations and gives what was in use
// every step seconds.
func readDemand(content []byte, step int64) (m measured, err error) {
	text, err := expand(content)
	if err != nil {
		return m, err
	}
	header := ""
	for line := range dataLines(text) {
		header = strings.ReplaceAll(line, " ", "")
		break
	}
	if header == "time,in_use" || header == "in_use,time" {
		m.readMeasurements(text, strings.HasPrefix(header, "in_use"))
	} else if err := m.readReservations(content); err != nil {
		return m, err
	}
	m.series, err = sampled(m.series, step)
	return m, err
}

// readMeasurements reads lines of a time and how many hosts were in use.
func (m *measured) readMeasurements(text string, swapped bool) {
	reader := csv.NewReader(strings.NewReader(text))
	reader.Comment, reader.FieldsPerRecord, reader.TrimLeadingSpace = '#', -1, true
	_, _ = reader.Read() // the header
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		m.rows++
		problem := unreadable
		if err == nil && len(record) == 2 {
			if swapped {
				slices.Reverse(record)
			}
			problem = m.measurement(record[0], record[1])
		}
		if problem != "" {
			m.unused = append(m.unused, notUsed{strconv.Itoa(m.rows), problem})
		}
	}
}

// measurement adds one, or says what is wrong with it.
func (m *measured) measurement(time, inUse string) string {
	at, timeErr := epochOrTime(time)
	count, countErr := strconv.ParseInt(strings.TrimSpace(inUse), 10, 32)
	switch n := len(m.series); {
	case errors.Join(timeErr, countErr) != nil:
		return unreadable
	case count < 0:
		return negativeUse
	case n > 0 && span.Instant(at) <= m.series[n-1].At:
		return outOfOrder
	}
	m.series = append(m.series, energy.Demand{At: span.Instant(at), InUse: int(count)})
	return ""
}

// readReservations counts the hosts of the reservations that run, at each start and end.
func (m *measured) readReservations(content []byte) error {
	load, err := readWorkload(content, "", 0)
	if err != nil {
		return err
	}
	m.rows, m.synthetic = len(load.rows), load.synthetic
	type change struct {
		at span.Instant
		by int
	}
	var changes []change
	for _, r := range load.rows {
		if r.problem != "" {
			m.unused = append(m.unused, notUsed{r.id, r.problem})
			continue
		}
		changes = append(changes, change{span.Instant(r.start), r.quantity}, change{span.Instant(r.end), -r.quantity})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	inUse := 0
	for i, c := range changes {
		if inUse += c.by; i+1 == len(changes) || changes[i+1].at != c.at {
			m.series = append(m.series, energy.Demand{At: c.at, InUse: inUse})
		}
	}
	return nil
}

// sampled gives the series at every step seconds: what held then.
func sampled(series []energy.Demand, step int64) ([]energy.Demand, error) {
	if len(series) == 0 {
		return nil, nil
	}
	first, last := series[0].At, series[len(series)-1].At
	if int64(last-first)/step >= mostSamples {
		return nil, fault.Field("--step", "gives more than %d samples from %v to %v: take a longer one", mostSamples, first, last)
	}
	samples := make([]energy.Demand, 0, int64(last-first)/step+1)
	held := 0
	for at := first; at <= last; at = at.Add(step) {
		for held+1 < len(series) && series[held+1].At <= at {
			held++
		}
		sample := series[held]
		sample.At = at
		samples = append(samples, sample)
	}
	return samples, nil
}
