// SPDX-License-Identifier: Apache-2.0

package weighers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Partial is a weigher that needs facts about hosts that Nova's API does not return. If it
// counts, a scheduler that knows the facts should decide.
type Partial interface {
	Weigher
	// Unsupported returns, as a sentence, what it cannot weigh about the request; empty if it
	// can weigh all.
	Unsupported(r *placing.Request) string
}

// Unsupported returns, as a sentence, what one of the weighers that count on some host cannot
// weigh about the request; empty if they can weigh all.
func Unsupported(weighers []Weighted, s *inventory.States, r *placing.Request) string {
	if r.Rebuild {
		return ""
	}
	var own []*overrides
	for i, w := range weighers {
		p, is := w.Weigher.(Partial)
		if !is || !s.Nova().Has(w.Part) {
			continue
		}
		what := p.Unsupported(r)
		if what == "" {
			continue
		}
		if own == nil {
			own = overridden(s, weighers)
		}
		if w.Multiplier != 0 || own[i] != nil {
			return what
		}
	}
	return ""
}

// weighsNothing weighs nothing, for lack of facts.
type weighsNothing struct{}

// Indifferent returns true: without the facts all hosts are equal.
func (weighsNothing) Indifferent(*inventory.States, *placing.Request) bool { return true }

// Weigh sets all weights to 0.
func (weighsNothing) Weigh(_ *inventory.States, _ *placing.Request, _ span.Instant, _ []int, raw []float64) {
	clear(raw)
}

// MetricsWeigher weighs the metrics of nova-compute's monitors
// (nova/scheduler/weights/metrics.py). Nova's API does not return them, so it cannot weigh if
// metrics count; like Nova's, it weighs nothing if none does.
type MetricsWeigher struct {
	weighsNothing
	Ratios []Ratio // the factor of each metric
}

func (MetricsWeigher) Name() string { return "MetricsWeigher" }

// Unsupported names a metric that counts.
func (w MetricsWeigher) Unsupported(*placing.Request) string {
	if len(w.Ratios) == 0 {
		return ""
	}
	return fmt.Sprintf("the metric %s counts, and Nova's API does not return the metrics of hosts", w.Ratios[0].Name)
}

// ImagePropertiesWeigher counts the properties that the image of the request shares with those
// of the instances on a host (nova/scheduler/weights/image_props.py). Nova's API does not
// return them for all instances, so it cannot weigh if the image has a property that counts.
type ImagePropertiesWeigher struct {
	weighsNothing
	Ratios []Ratio // the factor of each property; if empty, all count
}

func (ImagePropertiesWeigher) Name() string { return "ImagePropertiesWeigher" }

// Unsupported names a property of the image that counts.
func (w ImagePropertiesWeigher) Unsupported(r *placing.Request) string {
	counts := map[string]bool{}
	for _, ratio := range w.Ratios { // the last counts if a name is repeated
		counts[ratio.Name] = ratio.Value != 0
	}
	var names []string
	for name := range r.ImageProperties {
		if len(w.Ratios) == 0 || counts[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the image's property %.100s counts, and Nova's API does not return the images of all instances", slices.Min(names))
}

// Ratio is the factor of one of several values that a weigher adds up.
type Ratio struct {
	Name  string
	Value float64
}

// parseRatios parses "name=number" as Nova does (nova/scheduler/utils.py parse_options), except
// that entries which Nova ignores with a warning are an Invalid fault of the option.
func parseRatios(option string, settings []string) ([]Ratio, error) {
	var ratios []Ratio
	for _, setting := range settings {
		name, text, _ := strings.Cut(setting, "=")
		value, ok := parseMultiplier(text)
		if !ok || name == "" || name != strings.TrimSpace(name) {
			return nil, fault.Field(option, "has %q, which must be name=number", setting)
		}
		ratios = append(ratios, Ratio{name, value})
	}
	return ratios, nil
}
