// SPDX-License-Identifier: Apache-2.0

package notice_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// Consumers of Blazar's notifications are Python programs with oslo.messaging, so this test
// uses one.
func TestAPythonConsumerReadsBothFormatsFromRabbitMQ(t *testing.T) {
	url := labtest.RabbitMQ(t)
	where, err := oslo.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := amqp.Open(where, amqp.Options{Name: t.Name(), NewID: oslotest.NewID, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	n := notifier(t, oslo.NewNotifier(transport, oslo.NotifierOptions{Exchange: "almanac", NewID: oslotest.NewID, Now: time.Now}))
	change := changeOf(booked(), reservation.ActionCreate)
	if err := n.Notify(ctx, change); err != nil {
		t.Fatal(err)
	}
	got := listen(ctx, t, url, 2)
	// The listener has threads: on a busy machine it may report the second notification first.
	slices.SortFunc(got, func(a, b map[string]any) int {
		return strings.Compare(a["publisher_id"].(string), b["publisher_id"].(string))
	})
	for i, want := range told(t, change) {
		var payload map[string]any
		if err := json.Unmarshal(want.Payload, &payload); err != nil {
			t.Fatal(err)
		}
		heard := map[string]any{
			"publisher_id": want.PublisherID, "event_type": want.EventType, "message_id": want.ID,
			"request_id": "req-1", "payload": payload,
		}
		if diff := cmp.Diff(heard, got[i]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// listen returns the first count notifications that a Python listener receives.
func listen(ctx context.Context, t *testing.T, url string, count int) []map[string]any {
	t.Helper()
	// Debian's Python has oslo.messaging.
	command := exec.CommandContext(ctx, "/usr/bin/python3", "../../pkg/oslo/testdata/peer.py", "listen", url)
	command.Stderr = t.Output()
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer command.Wait()
	defer in.Close()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	var heard []map[string]any
	for len(heard) < count && lines.Scan() {
		if lines.Text() != "ready" {
			heard = append(heard, parsed(t, lines.Text()))
		}
	}
	if len(heard) < count {
		t.Fatalf("the listener ended after %d notifications", len(heard))
	}
	return heard
}
