// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
)

// columns maps the columns of Blazar's table of hosts to the properties of Almanac that are the
// same. Other columns have the name of a property, or are not for queries.
var columns = map[string]string{
	"service_name":      "name",
	"local_gb":          "disk_gb",
	"availability_zone": "zone",
}

// unqueried are the columns that a query may not use: they say nothing about a host that an owner
// can want, and one of them is a secret of Blazar's.
var unqueried = map[string]bool{"status": true, "trust_id": true, "created_at": true, "updated_at": true}

// reservableColumn is the column of the hosts that can be reserved: all hosts of the pool.
const reservableColumn = "reservable"

// property is a property that a query names.
type property struct {
	name       string // with $
	kind       inventory.Kind
	reservable bool // it is the column of that name
	// truth is how true is spelled in the texts of a capability that is true or false: "True" or
	// "true"; empty if either is.
	truth string
}

// property returns the property that a query names by $ and its name.
func (q queries) property(written any) (property, error) {
	text, _ := written.(string)
	name, ok := strings.CutPrefix(text, "$")
	if !ok || name == "" {
		return property{}, unreadable("%s is not the name of a property, such as $vcpus", show(written))
	}
	if unqueried[name] {
		return property{}, unreadable("$%s is not for queries", name)
	}
	kind := q.hosts.KindOf(name, q.seesHidden)
	if kind == "" && name == reservableColumn {
		return property{name: text, kind: inventory.KindBool, reservable: true}, nil
	}
	if kind == "" && columns[name] != "" {
		name = columns[name]
		kind = q.hosts.KindOf(name, q.seesHidden)
	}
	if kind == "" {
		return property{}, unreadable("no host has the property %s", shorten(name))
	}
	p := property{name: "$" + name, kind: kind}
	if kind == inventory.KindBool {
		p.truth = q.truth(name)
	}
	return p, nil
}

// truth returns property.truth of a property that is true or false.
func (q queries) truth(name string) string {
	for _, h := range q.hosts.Hosts() {
		if text, given := h.Capabilities.Texts[name]; given {
			return inventory.Spelling(text)
		}
	}
	return ""
}

// constant returns a value of a query as a value of the kind of p; fits is false if it cannot be one.
func (p property) constant(written any) (value any, fits bool, err error) {
	text := ""
	switch written := written.(type) {
	case string:
		text = written
	case json.Number:
		text = written.String()
	case bool:
		if p.kind == inventory.KindBool {
			return written, true, nil
		}
		text = inventory.BoolValue(written).Text()
	default:
		return nil, false, unreadable("%s is not a value: a text, a number, true or false", show(written))
	}
	if strings.HasPrefix(text, "$") {
		return nil, false, unreadable("%s is a name; a query compares a property with a value", show(written))
	}
	switch p.kind {
	case inventory.KindNumber:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !json.Valid([]byte(text)) {
			return nil, false, nil // not even a number that JSON can write
		}
		return n, true, nil
	case inventory.KindBool:
		value, fits := p.isTrue(text)
		return value, fits, nil
	}
	return text, true, nil
}

// isTrue returns the truth value that a text stands for; fits is false if it stands for none.
func (p property) isTrue(text string) (value, fits bool) {
	switch text {
	case "True", "False", "true", "false":
		return strings.EqualFold(text, "true"), p.truth == "" || p.truth == inventory.Spelling(text)
	case "1", "0": // as Blazar stores that column
		return text == "1", p.reservable
	}
	return false, false
}
