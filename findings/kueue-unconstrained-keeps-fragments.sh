#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kueue 0.19.2, with its own scheduler code: an unconstrained PodSet takes the least free hosts first only if no
# host has room for all of it. If one has, the pods go there, and the fragments stay. (Its proposal 2724 says that the
# algorithm selects domains starting from the one with the least free capacity; its example has no host for all.)
# Seen: of hosts with room for 4, 3, 1 and 1, five pods take the 1, 1 and 3, and four pods all of the 4.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'MODULE'
module unconstrained

go 1.26

require sigs.k8s.io/kueue v0.19.2
MODULE
cat > main.go <<'PROGRAM'
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/resources"
)

func main() {
	// the room of each host, and how many pods of each a PodSet takes by the number of its pods
	room := []int64{4, 3, 1, 1}
	for pods, expected := range map[int32][]int32{5: {0, 3, 1, 1}, 4: {4, 0, 0, 0}} {
		taken, err := place(room, pods)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("hosts with room for %v: %d pods take %v\n", room, pods, taken)
		if fmt.Sprint(taken) != fmt.Sprint(expected) {
			log.Fatalf("seen before: %v", expected)
		}
	}
}

func place(room []int64, pods int32) ([]int32, error) {
	ctx, quiet := ctrl.LoggerInto(context.Background(), logr.Discard()), logr.Discard()
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		return nil, err
	}
	none := func(client.Object) []string { return nil }
	cache := scheduler.New(fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&kueue.LocalQueue{}, "spec.clusterQueue", none).
		WithIndex(&kueue.Workload{}, "status.admission.clusterQueue", none).Build())
	cache.AddOrUpdateTopology(quiet, &kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: "hosts"},
		Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: corev1.LabelHostname}}}})
	topology := kueue.TopologyReference("hosts")
	cache.AddOrUpdateResourceFlavor(quiet, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "flavor"},
		Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"pool": "all"}, TopologyName: &topology}})
	for i, cpus := range room {
		name := fmt.Sprint("host-", i)
		cache.TASCache().SyncNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "all", corev1.LabelHostname: name}},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{"cpu": *resource.NewQuantity(cpus, resource.DecimalSI), "pods": resource.MustParse("110")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	quota := kueue.FlavorQuotas{Name: "flavor", Resources: []kueue.ResourceQuota{{Name: "cpu", NominalQuota: resource.MustParse("100")}}}
	err := cache.AddClusterQueue(ctx, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "queue"}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups:    []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu"}, Flavors: []kueue.FlavorQuotas{quota}}},
	}})
	if err != nil {
		return nil, err
	}
	snapshot, err := cache.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	unconstrained := true
	podSet := &kueue.PodSet{Name: "main", Count: pods, TopologyRequest: &kueue.PodSetTopologyRequest{Unconstrained: &unconstrained}}
	result := snapshot.ClusterQueue("queue").FindTopologyAssignmentsForWorkload(ctx, scheduler.WorkloadTASRequests{"flavor": {{
		PodSet: podSet, Count: pods, Flavor: "flavor",
		SinglePodRequests: resources.NewRequestsFromMap(map[corev1.ResourceName]int64{"cpu": 1000}),
	}}})
	if failure := result.Failure(); failure != nil {
		return nil, fmt.Errorf("%s", failure.Reason)
	}
	taken := make([]int32, len(room))
	for _, domain := range result["main"].TopologyAssignment.Domains {
		var i int
		if _, err := fmt.Sscanf(domain.Values[0], "host-%d", &i); err != nil {
			return nil, err
		}
		taken[i] = domain.Count
	}
	return taken, nil
}
PROGRAM
export GOFLAGS="-mod=mod -trimpath"
go mod tidy 2>/dev/null
go run .
