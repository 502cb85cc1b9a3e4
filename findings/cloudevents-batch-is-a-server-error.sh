#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Go SDK of CloudEvents 2.16.2: a receiver answers a batch of events with 500 and no text, and calls no function of its owner.
# A sender takes 500 for a passing trouble and sends the batch again and again. Content of an unknown type is answered with 415.
# Seen: 200 for one event, 415 for other JSON, 500 for a batch with the same event.
set -euo pipefail

folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'MODULE'
module receiver

go 1.26

require github.com/cloudevents/sdk-go/v2 v2.16.2
MODULE
cat > main.go <<'PROGRAM'
package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/client"
)

func main() {
	handled := 0
	protocol, err := cloudevents.NewHTTP()
	if err != nil {
		panic(err)
	}
	receiver, err := client.NewHTTPReceiveHandler(context.Background(), protocol, func(cloudevents.Event) { handled++ })
	if err != nil {
		panic(err)
	}
	const event = `{"specversion":"1.0","id":"1","source":"/reservations","type":"reservation.start","data":{"name":"course"}}`
	for _, sent := range []struct{ form, body string }{
		{"application/cloudevents+json", event},
		{"application/json", event},
		{"application/cloudevents-batch+json", "[" + event + "]"},
	} {
		request := httptest.NewRequest("POST", "/", strings.NewReader(sent.body))
		request.Header.Set("Content-Type", sent.form)
		answer := httptest.NewRecorder()
		receiver.ServeHTTP(answer, request)
		fmt.Printf("%s: %d %q, %d handled\n", sent.form, answer.Code, answer.Body, handled)
	}
}
PROGRAM
GOFLAGS=-mod=mod go mod tidy > /dev/null 2>&1
go run . 2> log | tee seen
diff - seen <<'EXPECTED'
application/cloudevents+json: 200 "", 1 handled
application/json: 415 "", 1 handled
application/cloudevents-batch+json: 500 "", 1 handled
EXPECTED
