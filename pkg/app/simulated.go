// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/pkg/resource"
	simulated "github.com/almanac-cloud/almanac/pkg/sim/cloud"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// simulates reports whether the cloud is simulated.
func simulates(c config.Config) bool { return c.Inventory.Source == config.SourceSimulated }

// onCloud reports whether the hosts are those of a cloud, simulated or not.
func onCloud(c config.Config) bool { return onOpenStack(c) || simulates(c) }

// checkSimulated refuses settings that a simulated cloud cannot have.
func checkSimulated(c config.Config) error {
	if !simulates(c) {
		return nil
	}
	switch {
	case !has(c, config.RoleAPI) || !has(c, config.RoleInventory):
		return fault.Field("[inventory] source", "is simulated, which requires the roles api and inventory in the same process: the cloud is in its memory")
	case c.Scheduler.Mode != config.ModeReplace:
		return fault.Field("[scheduler] mode", "must be replace with [inventory] source = simulated: no nova-scheduler chooses hosts there")
	case c.Nova.Notifications:
		return fault.Field("[nova] notifications", "must be off with [inventory] source = simulated: there is no Nova that sends them")
	case c.Packing.CPUNeed == rebalance.OfDiagnostics:
		return fault.Field("[packing] cpu_need", "must be flavor with [inventory] source = simulated: its servers use no CPU that could be measured")
	case c.Enforcement.Service.KeystoneToken:
		return fault.Field("[enforcement] external_service_keystone_token", "must be off with [inventory] source = simulated: there is no service user")
	}
	return nil
}

// simulatedRatio is the cpu_allocation_ratio of the simulated cloud: Nova's default.
const simulatedRatio = 4

// simulatedTimes are how long the tasks of servers take in the simulated cloud.
var simulatedTimes = simulated.Times{
	Boot: 4 * time.Second, Delete: 2 * time.Second, Stop: 2 * time.Second, Shelve: 3 * time.Second, Suspend: 3 * time.Second,
	Resume: 2 * time.Second, Migrate: 4 * time.Second, Snapshot: 4 * time.Second,
}

// simulatedFlavors are the flavors of the simulated cloud, simulatedImages its images.
var (
	simulatedFlavors = []inventory.Flavor{
		{ID: "1", Name: "small", Resources: resource.Vector{VCPUs: 2, MemoryMB: 8192, DiskGB: 20}},
		{ID: "2", Name: "medium", Resources: resource.Vector{VCPUs: 4, MemoryMB: 16384, DiskGB: 40}},
		{ID: "3", Name: "large", Resources: resource.Vector{VCPUs: 8, MemoryMB: 32768, DiskGB: 80}},
		{ID: "4", Name: "gpu", Resources: resource.Vector{VCPUs: 8, MemoryMB: 32768, DiskGB: 80, Custom: map[string]int64{"CUSTOM_GPU": 1}}},
	}
	simulatedImages = []simulated.Image{
		{ID: "0d1c9a52-6f0e-4b6e-9b5f-6a1f2f7c0001", Name: "debian-13", Bytes: 400_000_000},
		{ID: "0d1c9a52-6f0e-4b6e-9b5f-6a1f2f7c0002", Name: "cuda-12", Bytes: 4_000_000_000},
		{ID: "0d1c9a52-6f0e-4b6e-9b5f-6a1f2f7c0003", Name: "genomes", Bytes: 12_000_000_000},
	}
)

// newSimulated returns a simulated cloud on the hosts of the hosts file.
func newSimulated(p process) *simulated.Cloud {
	p.log.Warn("the cloud is simulated: its servers, machines and images exist in the memory of this process only", "hosts_file", p.config.Inventory.HostsFile)
	return simulated.New(simulated.Options{
		Hosts: inventory.FileSource(p.config.Inventory.HostsFile), Flavors: simulatedFlavors, Images: simulatedImages, Ratio: simulatedRatio,
		Times: simulatedTimes, Rate: p.config.Staging.Rules.Rate, Preemptible: preemptibleRule(p.config),
		NewID: uuid.NewString, Now: p.pace.Now, Log: p.logOf("simulated cloud"),
	})
}

// simulatedEvery is how often the simulated cloud is brought to the present. Every use of it does
// that too.
const simulatedEvery = time.Second

// simulatedJob returns the job that brings the simulated cloud to the present, and reports the
// images that have reached their hosts; hear is nil if none are staged.
func simulatedJob(c *simulated.Cloud, hear func(controller.Word)) job.Job {
	images := simulated.ImageStore{Cloud: c}
	return job.Job{Name: "simulated cloud", Every: simulatedEvery, Step: func(context.Context) error {
		for _, word := range images.Words() {
			if hear != nil {
				hear(word)
			}
		}
		return nil
	}}
}
