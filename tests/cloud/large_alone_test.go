// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// callsOfStarts returns the calls of the starts of prepared reservations, in their order: for each
// host the reading of what is on it, and for each reservation, at last, the deletion of the extra
// spec that keeps its flavor closed. Other calls of almanacd since start are left out.
func callsOfStarts(start time.Time, nova, placement *labtest.Meddler) []labtest.Arrival {
	calls := append(nova.Since(start), placement.Since(start)...)
	slices.SortFunc(calls, func(a, b labtest.Arrival) int { return a.At.Compare(b.At) })
	opened := map[string]bool{} // by path
	calls = slices.DeleteFunc(calls, func(call labtest.Arrival) bool {
		if opens(call) {
			again := opened[call.URL.Path] // after an answer that was lost, or late
			opened[call.URL.Path] = true
			return again
		}
		reads := strings.HasSuffix(call.URL.Path, "/allocations") || call.URL.Query().Get("host") != ""
		return call.Method != http.MethodGet || !reads
	})
	last := 0
	for i, call := range calls {
		if opens(call) {
			last = i
		}
	}
	return calls[:min(last+1, len(calls))]
}

// tellCalls logs how long the calls of the starts took, when the first and the last arrived, and how
// many others arrived before the last one.
func (l *large) tellCalls(start time.Time, calls []labtest.Arrival, services ...*labtest.Meddler) {
	l.t.Helper()
	if len(calls) == 0 {
		l.t.Fatal("the starts called nothing")
	}
	last, others := calls[len(calls)-1].At, -len(calls)
	for _, service := range services {
		for _, call := range service.Since(start) {
			if !call.At.After(last) {
				others++
			}
		}
	}
	var opened, read []time.Duration
	for _, call := range calls {
		if took := call.Answered.Sub(call.At); opens(call) {
			opened = append(opened, took)
		} else {
			read = append(read, took)
		}
	}
	l.tell("reading what is on a host, in the starts", read)
	l.tell("opening a flavor, in the starts", opened)
	l.t.Logf("the first call of the starts came %v after their time, the last one %v; %d other calls came before it",
		calls[0].At.Sub(start), last.Sub(start), others)
}

// opens reports whether the call opens a flavor.
func opens(call labtest.Arrival) bool {
	return call.Method == http.MethodDelete && strings.Contains(call.URL.Path, "/os-extra_specs/")
}

// alone closes the flavors and sends the calls again, sixteen at once and as fast as they are
// answered. It returns how long after the first call each flavor is open.
func (l *large) alone(calls []labtest.Arrival) (open []time.Duration) {
	l.t.Helper()
	for _, call := range calls {
		if opens(call) {
			specs, key := path.Split(strings.TrimPrefix(call.URL.Path, "/v2.1"))
			l.admin.Must(http.MethodPost, "compute", strings.TrimSuffix(specs, "/"), map[string]any{"extra_specs": map[string]string{key: "required"}}, nil)
		}
	}
	line := make(chan labtest.Arrival, len(calls))
	for _, call := range calls {
		line <- call
	}
	close(line)
	const atOnce = 16
	sender := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	defer sender.CloseIdleConnections()
	var mu sync.Mutex // of the durations
	var opened, read []time.Duration
	var senders sync.WaitGroup
	begun := time.Now()
	for range atOnce {
		senders.Go(func() {
			for call := range line {
				sent := time.Now()
				status, err := l.send(sender, call)
				if err != nil || status >= http.StatusBadRequest {
					l.t.Errorf("%s %s again: status %d, %v", call.Method, call.URL, status, err)
				}
				mu.Lock()
				if opens(call) {
					open, opened = append(open, time.Since(begun)), append(opened, time.Since(sent))
				} else {
					read = append(read, time.Since(sent))
				}
				mu.Unlock()
			}
		})
	}
	senders.Wait()
	l.tell("reading what is on a host, alone", read)
	l.tell("opening a flavor, alone", opened)
	return open
}

func (l *large) send(sender *http.Client, call labtest.Arrival) (status int, err error) {
	answer, err := sender.Do(call.WithContext(l.t.Context()))
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, cmp.Or(err, answer.Body.Close())
}

func medianTime(took []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(took))[(len(took)-1)/2]
}

func quotient(a, b time.Duration) float64 { return a.Seconds() / b.Seconds() }
