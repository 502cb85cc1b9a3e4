package weighers

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Partial is a weigher that depends on facts about hosts that Nova's API does not tell.
// Where it counts, another scheduler that knows the facts should decide.
type Partial interface {
	Weigher
	// Beyond says in a sentence what of the request cannot be weighed; empty where all can.
	Beyond(r *placing.Request) string
}

// Beyond says in a sentence what of the request one of the weighers cannot weigh, though
// it counts somewhere; empty where they can weigh all.
func Beyond(weighers []Weighted, s *inventory.States, r *placing.Request) string {
	if r.Rebuild {
		return ""
	}
	var own []*overrides
	for i, w := range weighers {
		p, is := w.Weigher.(Partial)
		if !is {
			continue
		}
		what := p.Beyond(r)
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

// unknowing weighs nothing: what it would count nobody tells.
type unknowing struct{}

// Indifferent is true: without the facts all hosts are alike.
func (unknowing) Indifferent(*inventory.States, *placing.Request) bool { return true }

// Weigh gives 0.
func (unknowing) Weigh(_ *inventory.States, _ *placing.Request, _ span.Instant, _ []int, raw []float64) {
	clear(raw)
}

// MetricsWeigher weighs what the monitors of a nova-compute measure
// (nova/scheduler/weights/metrics.py). No API of Nova tells that, so it has nothing to
// say where metrics count, and as little as Nova's where none does.
type MetricsWeigher struct {
	unknowing
	Ratios []Ratio // what each metric counts
}

// Name is the weigher's name.
func (MetricsWeigher) Name() string { return "MetricsWeigher" }

// Beyond names a metric that counts.
func (w MetricsWeigher) Beyond(*placing.Request) string {
	if len(w.Ratios) == 0 {
		return ""
	}
	return fmt.Sprintf("the metric %s counts, and Nova's API does not tell the metrics of hosts", w.Ratios[0].Name)
}

// ImagePropertiesWeigher counts the properties that the image of the request has in
// common with those of the instances on a host (nova/scheduler/weights/image_props.py).
// Nova's API does not tell them of all instances, so it has nothing to say where the image
// has a property that counts.
type ImagePropertiesWeigher struct {
	unknowing
	Ratios []Ratio // what each property counts; where there are none, all count
}

// Name is the weigher's name.
func (ImagePropertiesWeigher) Name() string { return "ImagePropertiesWeigher" }

// Beyond names a property of the image that counts.
func (w ImagePropertiesWeigher) Beyond(r *placing.Request) string {
	counts := map[string]bool{}
	for _, ratio := range w.Ratios { // the last counts where one is named twice
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
	return fmt.Sprintf("the image's property %.100s counts, and Nova's API does not tell the images of all instances", slices.Min(names))
}
