// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
)

// A client that asks and does not read the answers loses its connection some seconds after the time of a request
// ([api] request_timeout), without a token too.
func TestAClientThatDoesNotReadLosesItsConnection(t *testing.T) {
	t.Parallel() // it waits most of the time
	a := opened(t, map[string]string{"OS_API__REQUEST_TIMEOUT": "1s"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	connection, err := net.Dial("tcp", strings.TrimPrefix(a.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	// The service stops to read when nobody reads its answers, and so the requests stop too, until it closes the connection.
	for err == nil {
		_, err = fmt.Fprintf(connection, "GET /v1/openapi.yaml HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
}
