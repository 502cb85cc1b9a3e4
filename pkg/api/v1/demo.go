// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// DemoServerRequest is the body of POST /v1/demo/servers: a server of the simulated cloud. An empty
// ProjectID is the caller's project.
type DemoServerRequest struct {
	Name        string            `json:"name"`
	Flavor      string            `json:"flavor"` // id or name
	Image       string            `json:"image"`  // id or name
	ProjectID   string            `json:"project_id,omitempty"`
	Hints       map[string]string `json:"hints,omitempty"` // scheduler hints
	Preemptible bool              `json:"preemptible,omitempty"`
}

// DemoServers is the answer to GET /v1/demo/servers. Flavors and Images are the names of those that
// every project may use.
type DemoServers struct {
	Servers []DemoServer `json:"servers"`
	Flavors []string     `json:"flavors"`
	Images  []string     `json:"images"`
}

// DemoServer is a server of the simulated cloud, with Nova's words for its status and task.
type DemoServer struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	ProjectID     string    `json:"project_id"`
	Status        string    `json:"status"`
	Task          string    `json:"task,omitempty"`
	Host          string    `json:"host,omitempty"`
	Flavor        string    `json:"flavor"`
	Image         string    `json:"image"`
	Preemptible   bool      `json:"preemptible"`
	ReservationID string    `json:"reservation_id,omitempty"`
	Fault         string    `json:"fault,omitempty"` // why its status is ERROR
	CreatedAt     time.Time `json:"created_at"`
}
