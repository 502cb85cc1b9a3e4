package weighers

import (
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Ratio is how much one of several things counts that a weigher adds up.
type Ratio struct {
	Name  string
	Value float64
}

// parseRatios reads "name=number", as Nova does (nova/scheduler/utils.py parse_options),
// but for what Nova ignores with a warning: that is an Invalid fault of the option.
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
