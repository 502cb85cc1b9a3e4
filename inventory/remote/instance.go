package remote

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// instance is inventory.Instance on the wire. null there is nil here, and absent is empty.
type instance struct {
	ID          string              `json:"id"`
	Name        string              `json:"name,omitempty"`
	ProjectID   string              `json:"project_id,omitempty"`
	UserID      string              `json:"user_id,omitempty"`
	Host        string              `json:"host,omitempty"`
	Status      string              `json:"status,omitempty"`
	Task        string              `json:"task,omitempty"`
	Created     span.Instant        `json:"created,omitempty"`
	Launched    span.Instant        `json:"launched,omitempty"`
	Flavor      flavor              `json:"flavor"`
	Metadata    map[string]string   `json:"metadata"`
	Hints       map[string][]string `json:"hints"`
	Locked      bool                `json:"locked,omitempty"`
	Preemptible bool                `json:"preemptible,omitempty"`
	Protected   bool                `json:"protected,omitempty"`
	Holds       map[string]int64    `json:"holds"`
	Reservation string              `json:"reservation,omitempty"`
}

// flavor is inventory.Flavor on the wire.
type flavor struct {
	ID         string            `json:"id,omitempty"`
	Name       string            `json:"name,omitempty"`
	Resources  resource.Vector   `json:"resources"`
	ExtraSpecs map[string]string `json:"extra_specs"`
	Public     bool              `json:"public,omitempty"`
}

func instanceOf(i *inventory.Instance) instance {
	return instance{
		ID: i.ID, Name: i.Name, ProjectID: i.ProjectID, UserID: i.UserID, Host: i.Host, Status: i.Status, Task: i.Task,
		Created: i.Created, Launched: i.Launched,
		Flavor: flavor{
			ID: i.Flavor.ID, Name: i.Flavor.Name, Resources: i.Flavor.Resources,
			ExtraSpecs: i.Flavor.ExtraSpecs, Public: i.Flavor.Public,
		},
		Metadata: i.Metadata, Hints: i.Hints, Locked: i.Locked, Preemptible: i.Preemptible, Protected: i.Protected,
		Holds: i.Holds, Reservation: i.Reservation,
	}
}

func (i *instance) inventory() inventory.Instance {
	return inventory.Instance{
		ID: i.ID, Name: i.Name, ProjectID: i.ProjectID, UserID: i.UserID, Host: i.Host, Status: i.Status, Task: i.Task,
		Created: i.Created, Launched: i.Launched,
		Flavor: inventory.Flavor{
			ID: i.Flavor.ID, Name: i.Flavor.Name, Resources: i.Flavor.Resources,
			ExtraSpecs: i.Flavor.ExtraSpecs, Public: i.Flavor.Public,
		},
		Metadata: i.Metadata, Hints: i.Hints, Locked: i.Locked, Preemptible: i.Preemptible, Protected: i.Protected,
		Holds: i.Holds, Reservation: i.Reservation,
	}
}
