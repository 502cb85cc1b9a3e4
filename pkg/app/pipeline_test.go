// SPDX-License-Identifier: Apache-2.0

package app

import (
	"maps"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/tests/repository"
	"github.com/almanac-cloud/almanac/weighers"
)

// notBeside names the weighers of ours that do not count beside a nova-scheduler with the plugin, and why.
var notBeside = map[string]string{
	"OvercommitWeigher":       "nova-scheduler evicts nothing",
	"PeriodWeigher":           "nova-scheduler evicts nothing",
	"PreemptibleCountWeigher": "nova-scheduler evicts nothing",
	"PreemptionCostWeigher":   "nova-scheduler evicts nothing",
}

func TestAWeigherOfOursCountsBesideThePluginOrHasAReason(t *testing.T) {
	beside, err := ownWeighers(config.Config{}, weighers.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	counts, unused := map[string]bool{}, maps.Clone(notBeside)
	for _, w := range beside {
		counts[w.Name()] = true
	}
	for _, name := range repository.OwnWeighers {
		if counts[name] == (unused[name] != "") {
			t.Errorf("%s counts beside the plugin: %v; either it is in ownWeighers, or notBeside states why not", name, counts[name])
		}
		delete(unused, name)
	}
	for name := range unused {
		t.Errorf("notBeside names %s, which does not exist", name)
	}
}
