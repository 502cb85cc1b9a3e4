package main

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"

	"github.com/google/uuid"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// find gives the reservation with an id, or the one with a name. Of several with
// the name it is the one that is not over yet.
func find(ctx context.Context, c *client.Client, what string) (v1.Reservation, error) {
	found, err := c.GetReservation(ctx, what)
	if failed, ok := errors.AsType[*client.Error](err); !ok || failed.Status != http.StatusNotFound {
		return found, err
	}
	if _, isID := uuid.Parse(what); isID == nil {
		return v1.Reservation{}, err
	}
	all, err := collect(c.ListReservations(ctx, client.ReservationFilter{Name: what}), 0)
	if err != nil {
		return v1.Reservation{}, err
	}
	var live []v1.Reservation
	for _, r := range all {
		if reservation.Status(r.Status).Live() {
			live = append(live, r)
		}
	}
	if len(live) == 0 {
		live = all
	}
	switch len(live) {
	case 0:
		return v1.Reservation{}, fault.New(fault.NotFound, "there is no reservation with the id or name %q; 'almanac reservation list' lists yours", what)
	case 1:
		return live[0], nil
	default:
		ids := each(live, func(r v1.Reservation) string { return r.ID })
		return v1.Reservation{}, fault.New(fault.Invalid, "%d reservations have the name %q; give the id of one: %s", len(ids), what, strings.Join(ids, ", "))
	}
}

// collect gives the first elements of a list, at most limit; 0 is all.
func collect[T any](list iter.Seq2[T, error], limit int) ([]T, error) {
	elements := []T{}
	for element, err := range list {
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
		if len(elements) == limit {
			break
		}
	}
	return elements, nil
}
