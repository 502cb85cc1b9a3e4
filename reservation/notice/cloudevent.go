// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/reservation"
)

// Types returns the event types of changes in Almanac's format, sorted.
func Types() []string { return slices.Sorted(maps.Values(eventTypes)) }

// TypeOf returns the event type of a change; told is false if nobody is told of it.
func TypeOf(change reservation.Change) (eventType string, told bool) {
	eventType, told = eventTypes[change.Action]
	return eventType, told
}

// ContentType is the media type of a CloudEvent.
const ContentType = "application/cloudevents+json"

// CloudEvent is a change in the structured form of CloudEvents 1.0.
type CloudEvent struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id"` // the same each time
	Source      string    `json:"source"`
	Type        string    `json:"type"`
	Subject     string    `json:"subject"` // the id of the reservation
	Time        time.Time `json:"time"`
	DataType    string    `json:"datacontenttype"`
	Data        payload   `json:"data"`
}

// Sight states what the receiver of a CloudEvent may see.
type Sight struct {
	// Hosts is true for the names of the hosts. Without them there are no claims, and no detail of what happened to hosts.
	Hosts bool
}

// CloudEventOf returns the CloudEvent of a change, encoded, and its id; source is the service that tells it. It fails for a change
// that nobody is told about.
func CloudEventOf(change reservation.Change, source string, sight Sight) (id string, body []byte, err error) {
	eventType, told := TypeOf(change)
	if !told {
		return "", nil, fmt.Errorf("nobody is told of %s of a reservation", change.Action)
	}
	id = messageID(change, eventType)
	data := payloadOf(change)
	if !sight.Hosts {
		data.Hosts, data.Claims = []string{}, []claim{}
		if slices.Contains(aboutHosts, change.Action) {
			data.Detail = ""
		}
	}
	body, err = json.Marshal(CloudEvent{
		SpecVersion: "1.0", ID: id, Source: source, Type: eventType, Subject: change.Reservation.ID, Time: change.At.Time(),
		DataType: "application/json", Data: data,
	})
	if err != nil {
		return "", nil, fmt.Errorf("encode the CloudEvent of %s: %w", eventType, err)
	}
	return id, body, nil
}

// aboutHosts are the actions whose detail may name hosts.
var aboutHosts = []reservation.Action{reservation.ActionHeal, reservation.ActionDegrade, reservation.ActionRestore, reservation.ActionRemark}

// HostsAreFinal reports whether the hosts of a reservation can no longer change before its start, so that its owner may see them.
func HostsAreFinal(r *reservation.Reservation) bool {
	return r.Status != reservation.Pending && r.Status != reservation.Starting
}
