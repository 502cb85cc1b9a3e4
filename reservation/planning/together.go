// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// mostValues is the largest number of values of the property of a rule. A decision may search on the hosts of each value.
const mostValues = 1000

// noValue is the index of the hosts without the property.
const noValue = -1

// level is the value of one property on each host. It does not change.
type level struct {
	distinct int           // how many values there are; if they are more than mostValues, the level has none of them
	of       []int         // by number of a host: the index of its value, or noValue
	values   []string      // in order, each for a sentence
	on       []hostset.Set // by value: the hosts that have it
	valued   hostset.Set   // the hosts that have one
	all      hostset.Set   // the hosts that exist
	sizes    []int         // how many hosts have each value; the last number is of those without
}

// level returns the level of a property, which is no list; without seesHidden, no host has hidden properties.
func (r *HostIndex) level(property string, seesHidden bool) *level {
	read := r.snapshot.Property(property, seesHidden)
	if read == nil {
		read = func(*inventory.Host) inventory.Value { return inventory.Value{} }
	} else if l, known := r.levels.Load(property); known {
		return l.(*level)
	}
	var distinct []inventory.Value
	index := make(map[any]int) // strings, numbers and bools can be keys
	for _, h := range r.snapshot.Hosts() {
		v := read(h)
		if _, known := index[v.Any()]; !known && v.Kind() != "" {
			index[v.Any()], distinct = noValue, append(distinct, v)
		}
	}
	slices.SortFunc(distinct, inventory.Value.Compare)
	l := &level{distinct: len(distinct), of: slices.Repeat([]int{noValue}, len(r.names)), valued: hostset.New(len(r.names)), all: hostset.New(len(r.names))}
	if l.distinct > mostValues {
		distinct, index = nil, nil
	}
	for i, v := range distinct {
		index[v.Any()] = i
		l.values, l.on = append(l.values, shown(v)), append(l.on, hostset.New(len(r.names)))
	}
	l.sizes = make([]int, len(l.values)+1)
	for number := range r.names {
		if h := r.Host(number); h != nil {
			l.all.Add(number)
			if i, known := index[read(h).Any()]; known {
				l.of[number] = i
				l.on[i].Add(number)
				l.valued.Add(number)
			}
			l.sizes[l.place(number)]++
		}
	}
	if l.distinct > 0 {
		r.levels.Store(property, l)
	}
	return l
}

// shown returns a value for a sentence.
func shown(v inventory.Value) string {
	if text, is := v.Any().(string); is {
		return strconv.Quote(text)
	}
	return fmt.Sprint(v.Any())
}

// checkTogether checks a rule by itself. It fails with an Invalid fault that names the field.
func checkTogether(t reservation.Terms) error {
	rule := t.Together
	switch {
	case rule == (reservation.Together{}):
		return nil
	case utf8.RuneCountInString(rule.By) > LongestName:
		return fault.Field("together.by", "has more than %d characters", LongestName)
	case t.Maintenance:
		return fault.Field("together", "is not allowed for maintenance, which names its hosts")
	case rule.By == "":
		return fault.Field("together.by", "is required: the name of a property, such as zone")
	}
	if rule.Rule == "" && rule.ApartFrom != "" {
		return checkApartAlone(rule)
	}
	if err := oneOf("together.rule", rule.Rule, reservation.TogetherRules); err != nil {
		return err
	}
	switch spread := rule.Rule == reservation.TogetherSpread; {
	case rule.Rule == reservation.TogetherFewest && !rule.Preferred:
		return fault.Field("together.required", "must be false with the rule %s, which chooses between hosts that are free at one start", rule.Rule)
	case !spread && rule.Values != 0:
		return fault.Field("together.values", "is allowed with the rule %s only", reservation.TogetherSpread)
	case spread && rule.Values < 2:
		return fault.Field("together.values", "must be at least 2 with the rule %s, not %d", rule.Rule, rule.Values)
	case spread && rule.Values > t.Quantity:
		return fault.Field("quantity", "must be at least together.values, %d, not %d", rule.Values, t.Quantity)
	case spread && t.Affinity == calendar.AffinitySame:
		return fault.Field("together.rule", "must not be %s with the affinity %s: one host has one value", rule.Rule, t.Affinity)
	case rulesOut(t, t.Policy):
		return fault.Field("policy", "must not be %s with the required rule %s; choose another policy, such as %s", t.Policy, rule.Rule, calendar.PolicyFirstFit)
	case spreadRequired(t) && t.Image != "":
		return fault.Field("together.required", "must be false with the rule %s if there is an image", rule.Rule)
	}
	return nil
}

// checkApartAlone checks a rule that only asks to lie apart from others.
func checkApartAlone(rule reservation.Together) error {
	if rule.Preferred {
		return fault.Field("together.required", "must be true without a rule: the hosts always lie apart from those of apart_from")
	}
	if rule.Values != 0 {
		return fault.Field("together.values", "is allowed with the rule %s only", reservation.TogetherSpread)
	}
	return nil
}

// rulesOut reports whether the rule does not allow the policy. Of the cheapest starts on the hosts of each value, the earliest
// need not be the cheapest.
func rulesOut(t reservation.Terms, policy calendar.Policy) bool {
	same := t.Together.Rule == reservation.TogetherSame && !t.Together.Preferred
	return spreadRequired(t) && policy != calendar.PolicyFirstFit || same && policy == calendar.PolicyCheapest
}

// spreadRequired reports whether the hosts must have several values.
func spreadRequired(t reservation.Terms) bool {
	return t.Together.Rule == reservation.TogetherSpread && !t.Together.Preferred
}

// checkLevel checks that hosts can be together by the property of a rule.
func checkLevel(rule reservation.Together, v View) error {
	const field = "together.by"
	if rule == (reservation.Together{}) {
		return nil
	}
	switch kind := v.Hosts.snapshot.KindOf(rule.By, v.SeesHidden); {
	case kind == "":
		return fault.Field(field, "no host has a property %q", rule.By)
	case kind == inventory.KindList:
		return fault.Field(field, "%q is a list; hosts are together by a property that has one value", rule.By)
	case v.Hosts.snapshot.Property(rule.By, v.SeesHidden) == nil:
		return fault.Field(field, "%q changes with the instances on a host; hosts are together by a property that stays", rule.By)
	}
	if rule.Rule == "" {
		return checkApart(rule, v)
	}
	if n := v.Hosts.level(rule.By, v.SeesHidden).distinct; n > mostValues {
		return fault.Field(field, "%q has %d values; at most %d are allowed", rule.By, n, mostValues)
	}
	return checkApart(rule, v)
}

// place returns the index of a host in a list of all values, which ends with the hosts without the property.
func (l *level) place(number int) int {
	if value := l.of[number]; value != noValue {
		return value
	}
	return len(l.values)
}
