// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// Conductor calls the servers of Nova's topic `scheduler` as nova-conductor does
// (nova/scheduler/rpcapi.py). Its methods are safe for concurrent use.
type Conductor struct {
	t         testing.TB
	transport *amqp.Transport
	client    *oslo.Client
}

// callTimeout and callMonitor are Nova's long_rpc_timeout and rpc_response_timeout.
const (
	callTimeout = 30 * time.Minute
	callMonitor = time.Minute
)

// NewConductor returns a Conductor on the virtual host of a transport_url, whose query has the
// options of Nova's queues there. The end of the test closes it.
func NewConductor(t testing.TB, transportURL string) *Conductor {
	t.Helper()
	return NewPatientConductor(t, transportURL, callMonitor)
}

// NewPatientConductor returns one that waits that many whole seconds for a sign of life.
func NewPatientConductor(t testing.TB, transportURL string, patience time.Duration) *Conductor {
	t.Helper()
	u, err := oslo.ParseURL(transportURL)
	if err != nil {
		t.Fatal(err)
	}
	queues, err := u.Queues(oslo.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	transport, err := amqp.Open(u, amqp.Options{
		Name: "nova-conductor of " + t.Name(), NewID: oslotest.NewID, Now: time.Now,
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &Conductor{t: t, transport: transport, client: oslo.NewClient(transport, oslo.ClientOptions{
		Queues: queues, Timeout: callTimeout, Monitor: patience, NewID: oslotest.NewID, Now: time.Now,
	})}
	t.Cleanup(func() {
		c.client.Close()
		if err := transport.Close(); err != nil {
			t.Errorf("close the transport of a conductor: %v", err)
		}
	})
	return c
}

// Die ends it as a SIGKILL would: its queue for replies stays for a while, without a reader.
func (c *Conductor) Die() {
	c.t.Helper()
	if err := c.transport.Close(); err != nil {
		c.t.Errorf("end a conductor: %v", err)
	}
}

// Waiting returns how many requests of the topic no server has received.
func (c *Conductor) Waiting() int {
	c.t.Helper()
	queue, err := c.transport.Inspect(c.t.Context(), "scheduler")
	if err != nil {
		c.t.Fatal(err)
	}
	return queue.Messages
}

// scheduler returns the target of calls; server is one of its servers, "" any.
func scheduler(server, namespace, version string) oslo.Target {
	return oslo.Target{Exchange: "nova", Topic: "scheduler", Server: server, Namespace: namespace, Version: version}
}

// AwaitScheduler waits until a server serves the topic.
func (c *Conductor) AwaitScheduler() {
	c.t.Helper()
	c.await("")
}

// await waits until a server answers a ping (nova/baserpc.py), even with an exception. It may run
// in a cleanup.
func (c *Conductor) await(server string) {
	c.t.Helper()
	err := await(patience, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), 2*time.Second)
		defer cancel()
		err := c.client.Call(ctx, scheduler(server, "baseapi", "1.0"), "ping", map[string]string{"arg": "labtest"}, nil)
		if _, answered := errors.AsType[*oslo.RemoteError](err); answered {
			return nil
		}
		return err
	})
	if err != nil {
		c.t.Fatalf("nobody serves the topic scheduler: %v", err)
	}
}

// RequestSpec is the part of a request for instances that a test sets. All other fields are those
// that Nova sends for a server of the flavor m1.tiny without hints and networks.
type RequestSpec struct {
	ProjectID, UserID       string
	VCPUs, MemoryMB, RootGB int // of the flavor
	ExtraSpecs              map[string]string
	Hints                   map[string][]string
	// Fields are further fields of the object's data, encoded as Nova does.
	Fields map[string]any
}

//go:embed testdata/request_spec.json
var plainSpec []byte

// encode returns the primitive of the object for the instances.
func (s RequestSpec) encode(instances []string) (map[string]any, error) {
	var object map[string]any
	if err := json.Unmarshal(plainSpec, &object); err != nil {
		return nil, err
	}
	data := dataOf(object)
	flavor := dataOf(data["flavor"])
	for key, value := range map[string]int{"vcpus": s.VCPUs, "memory_mb": s.MemoryMB, "root_gb": s.RootGB} {
		if value != 0 {
			flavor[key] = value
		}
	}
	if s.ExtraSpecs != nil {
		flavor["extra_specs"] = s.ExtraSpecs
	}
	for key, value := range map[string]string{"project_id": s.ProjectID, "user_id": s.UserID} {
		if value != "" {
			data[key] = value
		}
	}
	if s.Hints != nil {
		data["scheduler_hints"] = s.Hints
	}
	data["num_instances"], data["instance_uuid"] = len(instances), instances[0]
	for key, value := range s.Fields {
		data[key] = value
	}
	return object, nil
}

// dataOf returns the data of an object's primitive.
func dataOf(object any) map[string]any {
	return object.(map[string]any)["nova_object.data"].(map[string]any)
}

// Selection is a host that was chosen (nova/objects/selection.py).
type Selection struct {
	Host, Node, Zone, Cell string
	ComputeNode            string // UUID
	AllocationRequest      string // JSON
	AllocationVersion      string // the microversion that the request is for
}

// SelectDestinations requests a host for each instance and returns, for each, the host and its
// alternates. Without objects the answer has only hosts and nodes, and no alternates. Exceptions
// are *oslo.RemoteError.
func (c *Conductor) SelectDestinations(ctx context.Context, spec RequestSpec, instances []string, objects, alternates bool) ([][]Selection, error) {
	result, err := c.call(ctx, scheduler("", "", "4.5"), spec, instances, objects, alternates)
	if err != nil {
		return nil, err
	}
	if objects {
		return decodeObjects(result)
	}
	return decodeHosts(result)
}

// call calls select_destinations at a target.
func (c *Conductor) call(ctx context.Context, to oslo.Target, spec RequestSpec, instances []string, objects, alternates bool) (result json.RawMessage, err error) {
	encoded, err := spec.encode(instances)
	if err != nil {
		return nil, fmt.Errorf("encode the RequestSpec: %w", err)
	}
	data := dataOf(encoded)
	asked := oslo.NewRequestContext("req-"+oslotest.NewID(), "")
	for key, value := range map[string]any{
		"user_id": data["user_id"], "project_id": data["project_id"], "user": data["user_id"], "project": data["project_id"],
		// No timestamp: for an old one Almanac would look up the instances in Nova, which does not know them.
		"is_admin": false, "roles": []string{"member", "reader"}, "read_deleted": "no",
	} {
		if asked[key], err = json.Marshal(value); err != nil {
			return nil, fmt.Errorf("encode the context: %w", err)
		}
	}
	err = c.client.Call(oslo.WithContext(ctx, asked), to, "select_destinations", map[string]any{
		"spec_obj": encoded, "instance_uuids": instances, "return_objects": objects, "return_alternates": alternates,
	}, &result)
	return result, err
}

func decodeObjects(result []byte) (all [][]Selection, err error) {
	var primitives [][]struct {
		Data struct {
			Host              string `json:"service_host"`
			Node              string `json:"nodename"`
			Zone              string `json:"availability_zone"`
			Cell              string `json:"cell_uuid"`
			ComputeNode       string `json:"compute_node_uuid"`
			AllocationRequest string `json:"allocation_request"`
			AllocationVersion string `json:"allocation_request_version"`
		} `json:"nova_object.data"`
	}
	if err := json.Unmarshal(result, &primitives); err != nil {
		return nil, fmt.Errorf("read the selections: %w", err)
	}
	for _, list := range primitives {
		var selections []Selection
		for _, one := range list {
			selections = append(selections, Selection(one.Data))
		}
		all = append(all, selections)
	}
	return all, nil
}

func decodeHosts(result []byte) (all [][]Selection, err error) {
	var hosts []struct {
		Host string
		Node string `json:"nodename"`
	}
	if err := json.Unmarshal(result, &hosts); err != nil {
		return nil, fmt.Errorf("read the hosts: %w", err)
	}
	for _, one := range hosts {
		all = append(all, []Selection{{Host: one.Host, Node: one.Node}})
	}
	return all, nil
}
