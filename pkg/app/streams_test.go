// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A client that follows the events does not keep the process from stopping.
func TestAStopDoesNotWaitForStreams(t *testing.T) {
	a := opened(t, map[string]string{"OS_DEFAULT__GRACEFUL_SHUTDOWN_TIMEOUT": "600"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	stream, err := http.Get(a.URL() + "/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	begun := lines.Scan()
	booked, err := http.Post(a.URL()+"/v1/reservations", "application/json", strings.NewReader(`{"name": "r", "duration": "1h"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer booked.Body.Close()
	if !begun || booked.StatusCode != http.StatusCreated {
		t.Fatalf("the stream begins: %v, the booking is answered with %s", begun, booked.Status)
	}
	told := false
	for !told && lines.Scan() {
		told = strings.HasPrefix(lines.Text(), "data: ") && strings.Contains(lines.Text(), `"change":"created"`)
	}
	if !told {
		t.Errorf("the stream ended without the booking: %v", lines.Err())
	}
	begin := time.Now()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 5*time.Minute {
		t.Errorf("the stop waited %v for the stream", took)
	}
}
