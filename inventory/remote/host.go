package remote

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// host is inventory.Host on the wire. null there is nil here.
type host struct {
	Name          string           `json:"name"`
	Capacity      resource.Vector  `json:"capacity"`
	Used          resource.Vector  `json:"used"`
	Zone          string           `json:"zone"`
	Aggregates    []string         `json:"aggregates"`
	Traits        []string         `json:"traits"`
	Properties    map[string]value `json:"properties"`
	Reservable    bool             `json:"reservable"`
	InstanceCount int              `json:"instance_count"`
	Instances     []instance       `json:"instances"`
	Provider      string           `json:"provider"`
	Problem       string           `json:"problem"`
	Power         string           `json:"power"`
	BootSeconds   int64            `json:"boot_seconds"`
	FlopsPerWatt  float            `json:"flops_per_watt"`
}

func hostOf(h *inventory.Host) host {
	out := host{
		Name: h.Name, Capacity: h.Capacity, Used: h.Used, Zone: h.Zone,
		Aggregates: h.Aggregates, Traits: h.Traits, Reservable: h.Reservable, InstanceCount: h.InstanceCount,
		Provider: h.Provider, Problem: h.Problem,
		Power: string(h.Power), BootSeconds: h.BootSeconds, FlopsPerWatt: float(h.FlopsPerWatt),
	}
	if h.Instances != nil {
		out.Instances = make([]instance, len(h.Instances))
		for i := range h.Instances {
			out.Instances[i] = instanceOf(&h.Instances[i])
		}
	}
	if h.Properties != nil {
		out.Properties = make(map[string]value, len(h.Properties))
		for name, v := range h.Properties {
			out.Properties[name] = value{v}
		}
	}
	return out
}

func (h *host) inventory() inventory.Host {
	out := inventory.Host{
		Name: h.Name, Capacity: h.Capacity, Used: h.Used, Zone: h.Zone,
		Aggregates: h.Aggregates, Traits: h.Traits, Reservable: h.Reservable, InstanceCount: h.InstanceCount,
		Provider: h.Provider, Problem: h.Problem,
		Power: inventory.Power(h.Power), BootSeconds: h.BootSeconds, FlopsPerWatt: float64(h.FlopsPerWatt),
	}
	if h.Instances != nil {
		out.Instances = make([]inventory.Instance, len(h.Instances))
		for i := range h.Instances {
			out.Instances[i] = h.Instances[i].inventory()
		}
	}
	if h.Properties != nil {
		out.Properties = make(map[string]inventory.Value, len(h.Properties))
		for name, v := range h.Properties {
			out.Properties[name] = v.Value
		}
	}
	return out
}

// float is encoded as a string, since JSON has no infinite numbers and a hosts file can contain
// one.
type float float64

// MarshalText formats the number.
func (f float) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(f), 'g', -1, 64), nil
}

// UnmarshalText parses the number.
func (f *float) UnmarshalText(text []byte) error {
	number, err := strconv.ParseFloat(string(text), 64)
	*f = float(number)
	return err
}

// value is encoded as the equivalent JSON value.
type value struct{ inventory.Value }

// MarshalJSON encodes the value.
func (v value) MarshalJSON() ([]byte, error) { return json.Marshal(v.Any()) }

// UnmarshalJSON decodes a number, a string, true or false, a list of strings, or null for the
// zero Value.
func (v *value) UnmarshalJSON(raw []byte) error {
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return err
	}
	switch plain := plain.(type) {
	case nil:
		v.Value = inventory.Value{}
	case float64:
		v.Value = inventory.NumberValue(plain)
	case string:
		v.Value = inventory.StringValue(plain)
	case bool:
		v.Value = inventory.BoolValue(plain)
	case []any:
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		v.Value = inventory.ListValue(list)
	default:
		return fmt.Errorf("%s is not a value of a property", raw)
	}
	return nil
}
