// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"strings"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	simulated "github.com/almanac-cloud/almanac/pkg/sim/cloud"
)

// demo is the simulated cloud as the API shows it.
type demo struct {
	cloud           *simulated.Cloud
	instances       instanceReader
	preemptibleHint string // empty means that no hint makes a server preemptible
}

// Servers implements instances.Cloud.
func (d demo) Servers(ctx context.Context) (v1.DemoServers, error) {
	all := v1.DemoServers{Servers: []v1.DemoServer{}, Flavors: []string{}, Images: []string{}}
	for _, s := range d.cloud.Servers(func(*simulated.Server) bool { return true }) {
		one, err := d.shown(ctx, s)
		if fault.Is(err, fault.NotFound) {
			continue // it was deleted just now
		}
		if err != nil {
			return all, err
		}
		all.Servers = append(all.Servers, one)
	}
	for _, f := range simulatedFlavors {
		all.Flavors = append(all.Flavors, f.Name)
	}
	for _, i := range d.cloud.Images() {
		all.Images = append(all.Images, i.Name)
	}
	return all, nil
}

// shown returns a server in the form of the API.
func (d demo) shown(ctx context.Context, s simulated.Server) (v1.DemoServer, error) {
	known, err := d.instances.Server(ctx, s.ID)
	if err != nil {
		return v1.DemoServer{}, err
	}
	image := s.Image
	for _, i := range d.cloud.Images() {
		if i.ID == s.Image {
			image = i.Name
		}
	}
	return v1.DemoServer{
		ID: s.ID, Name: s.Name, ProjectID: s.ProjectID, Status: s.Status, Task: s.Task, Host: s.Host, Flavor: s.Flavor.Name, Image: image,
		Preemptible: known.Preemptible, ReservationID: known.ReservationID(), Fault: s.Fault, CreatedAt: s.Created.Time(),
	}, nil
}

// Create implements instances.Cloud.
func (d demo) Create(ctx context.Context, user string, r v1.DemoServerRequest) (v1.DemoServer, error) {
	hints := map[string][]string{}
	for name, value := range r.Hints {
		if strings.EqualFold(name, placing.BestEffortHint) {
			return v1.DemoServer{}, fault.Field("hints", "%s is reserved for servers that Almanac creates", placing.BestEffortHint)
		}
		hints[name] = []string{value}
	}
	switch {
	case r.Preemptible && d.preemptibleHint == "":
		return v1.DemoServer{}, fault.Field("preemptible", "requires a scheduler hint in [preemptible] hint")
	case r.Preemptible:
		hints[d.preemptibleHint] = []string{"true"}
	}
	made, err := d.cloud.Create(ctx, simulated.ServerRequest{
		Name: r.Name, ProjectID: r.ProjectID, UserID: user, Flavor: r.Flavor, Image: r.Image, Hints: hints,
	})
	if err != nil {
		return v1.DemoServer{}, err
	}
	if made, err = d.cloud.Placed(ctx, made.ID); err != nil {
		return v1.DemoServer{}, err
	}
	return d.shown(ctx, made)
}

// Delete implements instances.Cloud.
func (d demo) Delete(ctx context.Context, id string) error {
	s, err := d.cloud.Server(ctx, id)
	if err != nil {
		return err
	}
	return d.cloud.Delete(ctx, id, s.ProjectID)
}
