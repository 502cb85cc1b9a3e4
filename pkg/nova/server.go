// SPDX-License-Identifier: Apache-2.0

package nova

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// server is a server in Nova's JSON for an admin (nova/api/openstack/compute/views/servers.py).
type server struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Project  string            `json:"tenant_id"`
	User     string            `json:"user_id"`
	Status   string            `json:"status"`
	Task     *string           `json:"OS-EXT-STS:task_state"`
	Host     *string           `json:"OS-EXT-SRV-ATTR:host"`
	Created  instant           `json:"created"`
	Updated  instant           `json:"updated"`
	Launched instant           `json:"OS-SRV-USG:launched_at"`
	Flavor   *flavor           `json:"flavor"`
	Image    image             `json:"image"`
	Metadata map[string]string `json:"metadata"`
	Locked   bool              `json:"locked"`
	Hints    map[string]hint   `json:"scheduler_hints"` // since 2.100
	Fault    *struct {
		Message string `json:"message"`
	} `json:"fault"` // of a server in ERROR
}

// instant is a time, in UTC if it has no zone; null is 0.
type instant span.Instant

// UnmarshalJSON reads a time of Nova in UTC, with or without Z; null leaves 0.
func (i *instant) UnmarshalJSON(raw []byte) error {
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil || text == nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSuffix(*text, "Z")+"Z")
	if err != nil {
		return fmt.Errorf("%q is not a time", *text)
	}
	*i = instant(span.At(at))
	return nil
}

// image is the image of a server: its id, or "" if the root disk is a volume. Anything else is
// unknown.
type image struct {
	id     string
	volume bool
}

// UnmarshalJSON reads the image of a server; "" stands for a server that boots from a volume.
func (i *image) UnmarshalJSON(raw []byte) error {
	var one struct {
		ID string `json:"id"`
	}
	if i.volume = string(raw) == `""`; !i.volume && json.Unmarshal(raw, &one) == nil {
		i.id = one.ID
	}
	return nil
}

// hint is the value of a scheduler hint: usually a list of strings, but Nova allows anything.
// Other values are kept as JSON.
type hint []string

// UnmarshalJSON reads the value of a hint as a list of texts, also if it is a single text or another
// value.
func (h *hint) UnmarshalJSON(raw []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	for _, element := range list {
		var word string
		if json.Unmarshal(element, &word) != nil {
			word = string(element)
		}
		*h = append(*h, word)
	}
	return nil
}

// known returns Nova's server as a Server, and an error if it lacks what each server has.
func (s server) known() (Server, error) {
	if s.ID == "" || s.Project == "" || s.Status == "" || s.Flavor == nil || s.Created == 0 {
		return Server{}, errors.New("a server has no id, project, status, flavor or creation time")
	}
	shape, err := s.Flavor.known(s.Image.volume)
	if err != nil {
		return Server{}, err
	}
	one := Server{Updated: span.Instant(s.Updated), Image: s.Image.id, Instance: inventory.Instance{
		ID: s.ID, Name: s.Name, ProjectID: s.Project, UserID: s.User, Status: s.Status,
		Created: span.Instant(s.Created), Launched: span.Instant(s.Launched), Flavor: shape,
		Metadata: maps.Clone(s.Metadata), Locked: s.Locked,
	}}
	if s.Host != nil {
		one.Host = *s.Host
	}
	if s.Task != nil {
		one.Task = *s.Task
	}
	if s.Fault != nil {
		one.Fault = s.Fault.Message
	}
	if s.Hints != nil {
		one.Hints = make(map[string][]string, len(s.Hints))
		for name, values := range s.Hints {
			one.Hints[name] = values
		}
	}
	return one, nil
}
