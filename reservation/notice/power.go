// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// Moment is a point of an operation: its start, its end, or its failure.
type Moment string

// The moments.
const (
	Start  Moment = "start"
	End    Moment = "end"
	Failed Moment = "error"
)

// Power is the content of the notification that Almanac switches the machine of a host.
type Power struct {
	Host   string
	To     energy.State // Off and Standby send a power_off, On a power_on
	Moment Moment
	// Reason is why the machine is switched, or why that failed.
	Reason string
	// Operation is the same for all notifications from going to sleep to waking up, as in
	// the audit trail.
	Operation string
	// Urgent is true if an operator ordered it, or a reservation needs the host.
	Urgent bool
	// Since is when the host was first ordered to switch; At is when this was decided.
	Since, At time.Time
}

// Alarm is the content of the notification that an alarm of the energy controller has begun or
// ended.
type Alarm struct {
	energy.Alarm
	Over bool
	At   time.Time // when this was decided
}

// powered is the payload of a Power.
type powered struct {
	Version   string    `json:"version"`
	Host      string    `json:"host"`
	Kind      string    `json:"kind"` // the state: on, standby or off
	Reason    string    `json:"reason"`
	Operation string    `json:"operation"`
	Urgent    bool      `json:"urgent"`
	Since     time.Time `json:"since"`
	At        time.Time `json:"at"`
}

// alarmed is the payload of an Alarm; host is empty if the alarm concerns no single host.
type alarmed struct {
	Version string    `json:"version"`
	Host    string    `json:"host"`
	Kind    string    `json:"kind"`
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
	At      time.Time `json:"at"`
}

// Power sends energy.host.power_off.start, .end or .error, or energy.host.power_on with the same
// suffixes, and returns when the broker has stored it. The formats of the Options do not apply,
// since Blazar has no such notification. A call with the same Power uses the same message id.
func (n *Notifier) Power(ctx context.Context, p Power) error {
	eventType := "energy.host.power_off." + string(p.Moment)
	if p.To == energy.On {
		eventType = "energy.host.power_on." + string(p.Moment)
	}
	priority := oslo.Info
	if p.Moment == Failed {
		priority = oslo.Error
	}
	return n.energy(ctx, eventType, priority, p.Host+"/"+p.Operation, p.At, powered{
		payloadVersion, p.Host, string(p.To), p.Reason, p.Operation, p.Urgent, p.Since.UTC(), p.At.UTC(),
	})
}

// Alarm sends energy.alarm.begin or energy.alarm.end, as Power does.
func (n *Notifier) Alarm(ctx context.Context, a Alarm) error {
	eventType, priority := "energy.alarm.begin", oslo.Warn
	if a.Over {
		eventType, priority = "energy.alarm.end", oslo.Info
	}
	return n.energy(ctx, eventType, priority, fmt.Sprintf("%s%s/%s/%d", a.Host, a.Agent, a.Kind, int64(a.Since)), a.At, alarmed{
		payloadVersion, a.Host, string(a.Kind), a.Text, a.Since.Time(), a.At.UTC(),
	})
}

// energy stores a notification about the power of a host.
func (n *Notifier) energy(ctx context.Context, eventType string, priority oslo.Priority, about string, at time.Time, payload any) error {
	encoded, err := json.Marshal(payload)
	if err != nil {
		return fmt.Errorf("encode the payload of %s: %w", eventType, err)
	}
	return n.sender.Notify(ctx, oslo.Notification{
		ID:          nameID(fmt.Sprintf("almanac:%s/%d/%s", about, at.UnixNano(), eventType)),
		PublisherID: "almanac." + n.host, EventType: eventType, Priority: priority,
		Payload: encoded, Time: at, Context: oslo.NewRequestContext("", ""),
	})
}
