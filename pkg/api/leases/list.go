// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// keptLeases is how many leases texts keeps, each of at most largestKept bytes.
const (
	keptLeases  = 20_000
	largestKept = 4 << 10
)

// texts keeps the JSON of leases as long as nothing of them changes, so that a list of thousands
// of leases reads only their states and those that changed.
type texts struct {
	kept *lru.Cache[leaseTextKey, leaseText]
}

// leaseTextKey names the text of a lease; extended is true at microversion 1.1.
type leaseTextKey struct {
	id       string
	extended bool
}

// leaseText is the JSON of a lease, with the status, since a list may select by it. The text is empty
// if the lease was deleted while the list was read.
type leaseText struct {
	state  reservation.LeaseState
	status string
	text   string
}

func newTexts() *texts {
	kept, err := lru.New[leaseTextKey, leaseText](keptLeases)
	if err != nil {
		panic(err) // the size is positive
	}
	return &texts{kept}
}

// list reads the leases that q selects, as they are at now; extended is true at microversion 1.1. The list has all texts
// after write, which computes those that are not kept.
func (t *texts) list(
	ctx context.Context, from reservation.LeaseReader, q reservation.LeaseQuery, extended bool, now span.Instant,
) (list []leaseText, write func(), err error) {
	states, err := from.LeaseStates(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	list = make([]leaseText, len(states))
	at := make(map[string]int) // the places of the leases that have to be read
	var ids []string
	for i, state := range states {
		kept, ok := t.kept.Get(leaseTextKey{state.ID, extended})
		if ok && kept.state == state {
			list[i] = kept
			continue
		}
		list[i].state, at[state.ID] = state, i
		ids = append(ids, state.ID)
	}
	read, err := from.LeasesOf(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	return list, func() {
		for i := range read {
			list[at[read[i].ID]] = t.written(&read[i], extended, now)
		}
	}, nil
}

// written returns the JSON of a lease and keeps it. The status of a lease without reservations follows
// from the clock, so it is not kept.
func (t *texts) written(l *reservation.LeaseRecord, extended bool, now span.Instant) leaseText {
	text := leaseText{state: l.State(), status: blazar.Status(l, now), text: blazar.JSON(leaseForm(extended)(l, now))}
	if len(l.Reservations) > 0 && len(text.text) <= largestKept {
		t.kept.Add(leaseTextKey{l.ID, extended}, text)
	}
	return text
}

// link is a link in an answer.
type link struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

// leasesAnswer returns the body of a list. encoding/json would check the text of each lease again.
func leasesAnswer(list []leaseText, links []link) []byte {
	texts := make([]string, 0, len(list))
	for i := range list {
		if list[i].text != "" {
			texts = append(texts, list[i].text)
		}
	}
	rest := "]}"
	if len(links) > 0 {
		rest = `],"leases_links":` + blazar.JSON(links) + "}"
	}
	return []byte(`{"leases":[` + strings.Join(texts, ",") + rest)
}
