package weighers

import (
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

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
