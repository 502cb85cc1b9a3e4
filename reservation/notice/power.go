package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// Moment is one of an operation: its start, its end, or that it has failed.
type Moment string

// The moments.
const (
	Start  Moment = "start"
	End    Moment = "end"
	Failed Moment = "error"
)

// Power is that Almanac switches the machine of a host.
type Power struct {
	Host   string
	To     energy.State // Off and Standby are a power_off, On is a power_on
	Moment Moment
	// Reason says why it is switched, and of one that has failed why.
	Reason string
	// Operation joins what is told of one going to sleep and waking up, as in the audit.
	Operation string
	// Urgent: an operator has ordered it, or a reservation needs it.
	Urgent bool
	// Since is when the host was first told to, At when this was settled.
	Since, At time.Time
}

// Alarm is that an alarm of the energy controller begins, or that it is over.
type Alarm struct {
	energy.Alarm
	Over bool
	At   time.Time // when this was settled
}

// powered is what the notification of a Power says.
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

// alarmed is what the notification of an Alarm says; host is empty where it is about all.
type alarmed struct {
	Version string    `json:"version"`
	Host    string    `json:"host"`
	Kind    string    `json:"kind"`
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
	At      time.Time `json:"at"`
}

// Power sends energy.host.power_off.start, .end or .error, or energy.host.power_on with
// the same, and returns when it is safe, whatever the formats: Blazar has no word for it. A
// call with the same Power sends the same message id.
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
