// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Capabilities are the properties that a host was given through Blazar's API, where every value is a
// text.
type Capabilities struct {
	// Texts are the values as they were given, by the name of the property.
	Texts map[string]string
	// Created is when the host got its first capability or was added to the pool through Blazar's
	// API, Updated when its capabilities last changed after that; 0 means never.
	Created, Updated span.Instant
}

func (c Capabilities) equal(other Capabilities) bool {
	return c.Created == other.Created && c.Updated == other.Updated && maps.Equal(c.Texts, other.Texts)
}

// typed returns the value that a text stands for by itself: a number if it is a whole number in its
// usual spelling, true or false, otherwise the text.
func typed(text string) Value {
	const exact = 1 << 53 // larger whole numbers are not all float64s
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && -exact <= n && n <= exact && strconv.FormatInt(n, 10) == text {
		return NumberValue(float64(n))
	}
	switch text {
	case "true", "True":
		return BoolValue(true)
	case "false", "False":
		return BoolValue(false)
	}
	return StringValue(text)
}

// Spelling returns how true is spelled where text stands for a truth value: "true" or "True".
func Spelling(text string) string {
	if text == strings.ToLower(text) {
		return "true"
	}
	return "True"
}

// Text returns the text for a value: numbers without an exponent, True and False as in Python, and
// lists as JSON. It is empty for the zero Value.
func (v Value) Text() string {
	switch v.kind {
	case KindNumber:
		return strconv.FormatFloat(v.number, 'f', -1, 64)
	case KindBool:
		if v.number == 1 {
			return "True"
		}
		return "False"
	case KindList:
		text, _ := json.Marshal(v.Any()) // a list of strings always has a JSON form
		return string(text)
	default:
		return v.text
	}
}

// Text returns the text of a property of the host, as it was given through Blazar's API if it was;
// empty for a property that the host does not have.
func (h *Host) Text(property string) string {
	if text, given := h.Capabilities.Texts[property]; given {
		return text
	}
	return h.Properties[property].Text()
}

// capabilityKinds returns the type of each property that a host has as a capability. If all hosts
// with the property have numbers, it is a number. If all have truth values of one spelling, it is a
// bool. Otherwise it is a string on all hosts. Lists do not count.
func capabilityKinds(hosts []Host, overrides map[string]Override) map[string]Kind {
	kinds, spellings := make(map[string]Kind), make(map[string]string)
	for i := range hosts {
		for name := range overrides[hosts[i].Name].texts() {
			kinds[name] = ""
		}
	}
	for i := range hosts {
		o := overrides[hosts[i].Name]
		for name, known := range kinds {
			value, spelled := o.value(name, hosts[i].Properties[name])
			if value.kind == "" || value.kind == KindList {
				continue
			}
			if other := spellings[name]; spelled != "" && other != "" && spelled != other || known != "" && known != value.kind {
				kinds[name] = KindString
				continue
			}
			kinds[name] = value.kind
			spellings[name] = cmp.Or(spellings[name], spelled)
		}
	}
	return kinds
}

// value returns the value that a property has on a host by itself, if its source has the value
// source, and the spelling of a truth value that was given as a text.
func (o Override) value(name string, source Value) (_ Value, spelled string) {
	if text, given := o.texts()[name]; given {
		value := typed(text)
		if value.kind == KindBool {
			spelled = Spelling(text)
		}
		return value, spelled
	}
	if set, known := o.Properties[name]; known {
		if set == nil {
			return Value{}, ""
		}
		return *set, ""
	}
	return source, ""
}

// without returns c without the capabilities that are among properties; nil for nil.
func (c *Capabilities) without(properties map[string]*Value) *Capabilities {
	if c == nil {
		return nil
	}
	texts := maps.Clone(c.Texts)
	maps.DeleteFunc(texts, func(name, _ string) bool { _, set := properties[name]; return set })
	return &Capabilities{Texts: texts, Created: c.Created, Updated: c.Updated}
}

// texts returns the values as the admin's client has sent them, by the name of the property; nil if none
// were kept.
func (o Override) texts() map[string]string {
	if o.Capabilities == nil {
		return nil
	}
	return o.Capabilities.Texts
}

// withCapabilities sets the capabilities of h, whose properties have the types kinds.
func (o Override) withCapabilities(h *Host, kinds map[string]Kind) {
	if o.Capabilities != nil {
		h.Capabilities = *o.Capabilities
	}
	var properties map[string]Value // a copy, once there is a change
	set := func(name string, value Value) {
		if properties == nil {
			properties = make(map[string]Value, len(h.Properties)+len(h.Capabilities.Texts))
			maps.Copy(properties, h.Properties)
		}
		properties[name] = value
	}
	for name, text := range h.Capabilities.Texts {
		value := typed(text)
		if kinds[name] == KindString {
			value = StringValue(text)
		}
		set(name, value)
	}
	for name, value := range h.Properties {
		_, given := h.Capabilities.Texts[name]
		if scalar := value.kind == KindNumber || value.kind == KindBool; scalar && !given && kinds[name] == KindString {
			set(name, StringValue(value.Text()))
		}
	}
	if properties != nil {
		h.Properties = properties
	}
}
