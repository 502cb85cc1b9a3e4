// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

// A refusal names what would be accepted instead.
func ExampleClient_CreateReservation() {
	almanac := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"error": {"kind": "conflict", "message": "not enough hosts available"},
			"refusal": {"constraint": "free_hosts", "matched": 4, "free": 2, "largest_quantity": 2, "earliest_start": "2027-03-01T10:00:00Z"}}`)
	}))
	defer almanac.Close()

	c, err := client.New(client.Options{URL: almanac.URL})
	if err != nil {
		log.Fatal(err)
	}
	quantity, duration := 3, v1.Duration(2*3600)
	_, err = c.CreateReservation(context.Background(), v1.ReservationRequest{Name: "training", Quantity: &quantity, Duration: &duration}, client.CreateOptions{})
	if e, failed := errors.AsType[*client.Error](err); failed && e.Refusal != nil {
		fmt.Println(e.Refusal.Constraint, "- largest quantity:", e.Refusal.LargestQuantity, "- earliest start:", e.Refusal.EarliestStart.Format(time.RFC3339))
	}
	// Output: free_hosts - largest quantity: 2 - earliest start: 2027-03-01T10:00:00Z
}
