// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/whatif"
)

// snapshot is one of four tables of paper 001, section 4.4: hosts with the minutes that their
// instances have run, and the victims of a request. The paper's tables have lost their numbers;
// these are its third to sixth.
type snapshot struct {
	name    string
	request string // small, medium or large
	hosts   []string
	// paper is the paper's choice of victims, with their host.
	paper victims
	// costs are the minutes that the cheapest victims of each host cost by the paper's rule.
	costs []string
}

// victims are the instances of one host that are evicted.
type victims struct {
	host, ids string
}

// snapshots are in the order of the paper. An instance is written as its name, its size unless it
// is medium, and its minutes. The second letter P marks preemptible ones.
var snapshots = []snapshot{
	{"T3", "M", []string{
		"A1 272 A2 172 AP1 96 AP2 207", "B1 136 B2 200 BP1 71 BP2 91", "C1 97 C2 275 CP1 210 CP2 215", "D1 16 DP1 85 DP2 199 DP3 152",
	}, victims{"host-B", "BP1"}, []string{"27", "11", "30", "19"}},
	{"T4", "M", []string{
		"AP1 247 AP2 463 AP3 403 AP4 410", "B1 388 B2 103 BP1 344 BP2 476", "C1 481 C2 177 CP1 181 CP2 160", "D1 173 DP1 384 DP2 168 DP3 232",
	}, victims{"host-C", "CP1"}, []string{"7", "44", "1", "24"}},
	{"T5", "L", []string{
		"AP1 L 298 AP2 278 AP3 S 190 AP4 S 187", "B1 L 494 BP1 L 178", "CP1 L 297 CP2 296 CP3 S 296", "D1 176 D2 200 D3 L 116",
	}, victims{"host-A", "AP2 AP3 AP4"}, []string{"55", "58", "57", ""}},
	{"T6", "M", []string{
		"A1 L 234 A2 122 AP1 172", "BP1 L 272 BP2 212 BP3 S 380", "C1 S 182 C2 120 C3 L 116", "DP1 L 232 DP2 S 213 DP3 324 DP4 S 314",
	}, victims{"host-B", "BP3"}, []string{"52", "20", "", "24"}},
}

// sizes returns the resources of a size, as in Table 2 of the paper.
func sizes(letter string) v1.Resources {
	n := map[string]int64{"S": 1, "M": 2, "L": 4}[letter]
	return v1.Resources{VCPUs: n, MemoryMB: 2000 * n, DiskGB: 20 * n}
}

// question returns the table as a question for `almanac whatif schedule`, with the hosts that have
// these indexes.
func (s snapshot) question(hosts ...int) (q whatif.ScheduleQuestion, err error) {
	for _, n := range hosts {
		host := whatif.ScheduleHost{
			Name: "host-" + string(rune('A'+n)), Capacity: &v1.Resources{VCPUs: paperHost.VCPUs, MemoryMB: paperHost.MemoryMB, DiskGB: paperHost.DiskGB},
		}
		words := strings.Fields(s.hosts[n])
		for len(words) > 0 {
			one := whatif.ScheduleInstance{ID: words[0], Preemptible: words[0][1] == 'P', Resources: sizes("M")}
			if words = words[1:]; len(words[0]) == 1 && words[0] > "9" {
				one.Resources, words = sizes(words[0]), words[1:]
			}
			if one.RunningMinutes, err = strconv.ParseInt(words[0], 10, 64); err != nil {
				return q, fmt.Errorf("table %s, instance %s: %w", s.name, one.ID, err)
			}
			host.Instances, words = append(host.Instances, one), words[1:]
		}
		q.Hosts = append(q.Hosts, host)
	}
	asked := sizes(s.request)
	q.Request.Resources = &asked
	return q, nil
}

// ask returns the answer of `almanac whatif schedule`. weigher is the only weigher in use; if it is
// empty, the default ones are.
func (s snapshot) ask(weigher string, hosts ...int) (whatif.ScheduleAnswer, error) {
	q, err := s.question(hosts...)
	if err != nil {
		return whatif.ScheduleAnswer{}, err
	}
	if weigher != "" {
		q.Weighers = map[string]float64{weigher: 1}
	}
	raw, err := json.Marshal(q)
	if err != nil {
		return whatif.ScheduleAnswer{}, fmt.Errorf("write table %s as a question: %w", s.name, err)
	}
	a, err := whatif.Schedule(bytes.NewReader(raw), func(seed int64) func(n int) int { return sim.Chance(uint64(seed)).IntN })
	if err != nil {
		return a, fmt.Errorf("schedule table %s: %w", s.name, err)
	}
	return a, nil
}

// chosen returns the host of the request with the victims there, and the minutes that they cost.
func chosen(a whatif.ScheduleAnswer) (v victims, minutes int64) {
	if len(a.Placements) == 0 {
		return victims{"none", ""}, 0
	}
	p := a.Placements[0]
	return victims{p.Host, strings.Join(p.Victims, " ")}, p.CostMinutes
}

// found contains the scheduler's answers to a table.
type found struct {
	snapshot
	// cheapest are the cheapest victims on each host, and minutes their costs; both are empty for a
	// host on which not even they would make room.
	cheapest, minutes []string
	ours              victims
	// period is the choice of Algorithm 4 as printed, count the choice by the number of victims.
	period, count victims
}

// agrees reports whether the scheduler's choice and costs equal those of the paper.
func (f found) agrees() bool { return f.ours == f.paper && slices.Equal(f.minutes, f.costs) }

// recompute returns the scheduler's answers to all tables.
func recompute() ([]found, error) {
	var all []found
	for _, s := range snapshots {
		f := found{snapshot: s}
		for host := range s.hosts {
			a, err := s.ask("", host)
			if err != nil {
				return nil, err
			}
			who, minutes := chosen(a)
			f.cheapest, f.minutes = append(f.cheapest, who.ids), append(f.minutes, strconv.FormatInt(minutes, 10))
			if len(a.Placements) == 0 {
				f.minutes[host] = ""
			}
		}
		for weigher, into := range map[string]*victims{"": &f.ours, "period": &f.period, "count": &f.count} {
			a, err := s.ask(weigher, 0, 1, 2, 3)
			if err != nil {
				return nil, err
			}
			*into, _ = chosen(a)
		}
		all = append(all, f)
	}
	return all, nil
}
