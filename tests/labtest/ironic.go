// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"fmt"
	"net/http"
	"testing"
)

// IronicNode is a node of the lab's Ironic that is the test's own. Its hardware is fake, except for
// its power if it has a BMC.
//
// The lab's nodes cmp-001, … stand for its compute hosts: see Hardware.
type IronicNode struct {
	Name, ID string

	t    testing.TB
	rest *REST
}

// NewIronicNode creates a node that is available and on. driverInfo, unless nil, is how Ironic's
// power interface ipmitool reaches its BMC: ipmi_address and so on. The end of the test deletes the
// node.
func NewIronicNode(t testing.TB, driverInfo map[string]any) *IronicNode {
	t.Helper()
	port(t, "ironic")
	n := &IronicNode{Name: unique("node-"), t: t, rest: Keystone(t).REST(t, Admin)}
	made := map[string]any{"name": n.Name, "driver": "fake-hardware"}
	if driverInfo != nil {
		made["power_interface"], made["driver_info"] = "ipmitool", driverInfo
	}
	var body struct{ UUID string }
	n.rest.Must("POST", "baremetal", "/v1/nodes", made, &body)
	n.ID = body.UUID
	t.Cleanup(n.delete)
	n.Store(map[string]any{"provision_state": "available", "power_state": "power on"}) // Ironic itself takes longer for this
	return n
}

// delete removes the node, in any state that the test has left it in.
func (n *IronicNode) delete() {
	n.Store(map[string]any{"reservation": nil, "provision_state": "manageable", "protected": false,
		"target_power_state": nil, "maintenance": false, "instance_uuid": nil})
	if status := n.rest.Do("DELETE", "baremetal", n.path(""), nil, nil); status != http.StatusNoContent {
		n.t.Errorf("delete node %s: status %d", n.Name, status)
	}
}

func (n *IronicNode) path(rest string) string { return "/v1/nodes/" + n.ID + rest }

// Show returns the node as Ironic writes it.
func (n *IronicNode) Show() map[string]any {
	n.t.Helper()
	var body map[string]any
	n.rest.Must("GET", "baremetal", n.path(""), nil, &body)
	return body
}

// Set changes fields of the node as an operator does.
func (n *IronicNode) Set(fields map[string]any) {
	n.t.Helper()
	var patch []map[string]any
	for field, value := range fields {
		patch = append(patch, map[string]any{"op": "replace", "path": "/" + field, "value": value})
	}
	n.rest.Must("PATCH", "baremetal", n.path(""), patch, nil)
}

// Maintain sets the node in maintenance.
func (n *IronicNode) Maintain(reason string) {
	n.t.Helper()
	n.rest.Must("PUT", "baremetal", n.path("/maintenance"), map[string]any{"reason": reason}, nil)
}

// Order orders Ironic to bring the node to a power state.
func (n *IronicNode) Order(power string) {
	n.t.Helper()
	n.rest.Must("PUT", "baremetal", n.path("/states/power"), map[string]any{"target": power}, nil)
}

// Provision sends an order such as manage, provide or active, and waits until the node has the
// provision state.
func (n *IronicNode) Provision(order, state string) {
	n.t.Helper()
	n.rest.Must("PUT", "baremetal", n.path("/states/provision"), map[string]any{"target": order}, nil)
	n.Await("provision_state", state)
}

// Await waits until a field of the node has the value.
func (n *IronicNode) Await(field string, value any) {
	n.t.Helper()
	err := await(patience, func() error {
		if node := n.Show(); node[field] != value {
			return fmt.Errorf("it is %v; the node's last error: %v", node[field], node["last_error"])
		}
		return nil
	})
	if err != nil {
		n.t.Fatalf("wait until %s of node %s is %v: %v", field, n.Name, value, err)
	}
}

// Store writes fields of the node into Ironic's database, as its conductor does while it works: a
// lock (reservation), a transient provision_state.
func (n *IronicNode) Store(fields map[string]any) {
	n.t.Helper()
	store(n.t, "ironic", "nodes", n.ID, fields)
}
