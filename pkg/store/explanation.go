package store

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// explanation is what a decision has beside the columns of its row.
type explanation struct {
	Took       int64         `json:"took"` // in microseconds
	Instances  []string      `json:"instances,omitempty"`
	Placements []placement   `json:"placements,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	Considered int           `json:"considered"`
	Filters    []filterCount `json:"filters,omitempty"`
	Refused    []refusedHost `json:"refused,omitempty"`
	Ranked     []rankedHost  `json:"ranked,omitempty"`
}

type placement struct {
	Instance   string   `json:"instance"`
	Host       string   `json:"host"`
	Node       string   `json:"node"`
	Alternates []string `json:"alternates,omitempty"`
	Victims    []victim `json:"victims,omitempty"`
}

type victim struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Project string `json:"project"`
	Cost    int64  `json:"cost"`
	Unit    string `json:"unit"`
}

type filterCount struct {
	Filter string `json:"filter"`
	Left   int    `json:"left"`
}

type refusedHost struct {
	Host   string `json:"host"`
	Filter string `json:"filter"`
	Reason string `json:"reason"`
}

type rankedHost struct {
	Host   string             `json:"host"`
	Weight float64            `json:"weight"`
	Parts  map[string]float64 `json:"parts,omitempty"`
}

// decisionRows gives the rows of decisions, and those that lead to them.
func decisionRows(list []placing.Decision) (rows []decisionRow, subjects []subjectRow, err error) {
	pack, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range list {
		row := decisionRow{
			RequestID: fitting(d.RequestID, 255), ProjectID: fitting(d.ProjectID, 255), Reservation: fitting(d.Reservation, 255),
			Way: fitting(d.HandledBy, 16), At: int64(d.At),
		}
		text, err := json.Marshal(explain(d))
		if err != nil {
			return nil, nil, fmt.Errorf("encode the decision in request %s: %w", d.RequestID, err)
		}
		whole := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d %s", row.RequestID, row.ProjectID, row.Reservation, row.Way, row.At, text))
		row.Hash = hex.EncodeToString(whole[:16])
		if row.Explanation, err = compressed(pack, text); err != nil {
			return nil, nil, fmt.Errorf("compress the decision in request %s: %w", d.RequestID, err)
		}
		rows = append(rows, row)
		for _, id := range slices.Compact(slices.Sorted(slices.Values(concerned(d)))) {
			if id != "" {
				subjects = append(subjects, subjectRow{Subject: fitting(id, 255), At: row.At, Decision: row.Hash})
			}
		}
	}
	return rows, subjects, nil
}

// concerned are the ids by which a decision is found: of the request, its instances, and
// those that had to leave for them.
func concerned(d placing.Decision) []string {
	ids := append([]string{d.RequestID}, d.Instances...)
	for _, p := range d.Placements {
		for _, v := range p.Victims {
			ids = append(ids, v.ID)
		}
	}
	return ids
}

func compressed(pack *gzip.Writer, text []byte) ([]byte, error) {
	var out bytes.Buffer
	pack.Reset(&out)
	if _, err := pack.Write(text); err != nil {
		return nil, err
	}
	if err := pack.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (row *decisionRow) decision() (placing.Decision, error) {
	var e explanation
	unpack, err := gzip.NewReader(bytes.NewReader(row.Explanation))
	if err != nil {
		return placing.Decision{}, err
	}
	if err := json.NewDecoder(unpack).Decode(&e); err != nil {
		return placing.Decision{}, err
	}
	return placing.Decision{
		RequestID: row.RequestID, ProjectID: row.ProjectID, Reservation: row.Reservation, HandledBy: row.Way, At: span.Instant(row.At),
		Instances: e.Instances, Took: e.Took, Reason: e.Reason, Considered: e.Considered,
		Placements: converted(e.Placements, placement.placing),
		Filters:    converted(e.Filters, func(f filterCount) placing.FilterCount { return placing.FilterCount(f) }),
		Refused:    converted(e.Refused, func(r refusedHost) placing.RefusedHost { return placing.RefusedHost(r) }),
		Ranked:     converted(e.Ranked, func(r rankedHost) placing.RankedHost { return placing.RankedHost(r) }),
	}, nil
}

func explain(d placing.Decision) explanation {
	return explanation{
		Took: d.Took, Instances: d.Instances, Reason: d.Reason, Considered: d.Considered,
		Placements: converted(d.Placements, placementOf),
		Filters:    converted(d.Filters, func(f placing.FilterCount) filterCount { return filterCount(f) }),
		Refused:    converted(d.Refused, func(r placing.RefusedHost) refusedHost { return refusedHost(r) }),
		Ranked:     converted(d.Ranked, finiteRank),
	}
}

func placementOf(p placing.Placement) placement {
	return placement{p.Instance, p.Host, p.Node, p.Alternates, converted(p.Victims, func(v placing.Victim) victim {
		return victim{v.ID, v.Name, v.ProjectID, v.Cost, v.Unit}
	})}
}

func (p placement) placing() placing.Placement {
	return placing.Placement{Instance: p.Instance, Host: p.Host, Node: p.Node, Alternates: p.Alternates, Victims: converted(p.Victims, func(v victim) placing.Victim {
		return placing.Victim{ID: v.ID, Name: v.Name, ProjectID: v.Project, Cost: v.Cost, Unit: v.Unit}
	})}
}

// finiteRank has no numbers that JSON cannot write.
func finiteRank(r placing.RankedHost) rankedHost {
	out := rankedHost{Host: r.Host, Weight: finite(r.Weight), Parts: maps.Clone(r.Parts)}
	for name, part := range out.Parts {
		out.Parts[name] = finite(part)
	}
	return out
}

// finite gives the number nearest to x that is one, and 0 for none.
func finite(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return min(max(x, -math.MaxFloat64), math.MaxFloat64)
}

// fitting cuts a text that has more than so many characters.
func fitting(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

func converted[A, B any](list []A, convert func(A) B) []B {
	var out []B
	for _, element := range list {
		out = append(out, convert(element))
	}
	return out
}
