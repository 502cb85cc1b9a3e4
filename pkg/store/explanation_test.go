package store

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/placing"
)

// What is stored outlives this version: a field of it keeps its name.
func TestTheFormOfAStoredDecisionStays(t *testing.T) {
	rows, _, err := decisionRows([]placing.Decision{{
		Took: 7, Instances: []string{"i"}, Placements: []placing.Placement{{Instance: "i", Host: "a", Node: "b", Alternates: []string{"c"}}},
		Reason: "none", Considered: 3, Filters: []placing.FilterCount{{Filter: "F", Left: 2}},
		Refused: []placing.RefusedHost{{Host: "d", Filter: "F", Reason: "down"}},
		Ranked:  []placing.RankedHost{{Host: "a", Weight: 1.5, Parts: map[string]float64{"W": 1.5}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	unpack, err := gzip.NewReader(bytes.NewReader(rows[0].Explanation))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpack)
	const want = `{"took":7,"instances":["i"],"placements":[{"instance":"i","host":"a","node":"b","alternates":["c"]}],"reason":"none",` +
		`"considered":3,"filters":[{"filter":"F","left":2}],"refused":[{"host":"d","filter":"F","reason":"down"}],` +
		`"ranked":[{"host":"a","weight":1.5,"parts":{"W":1.5}}]}`
	if err != nil || string(text) != want {
		t.Errorf("got  %s (%v)\nwant %s", text, err, want)
	}
}
