package app_test

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/config"
)

func TestTheDefaultEndIsAmongTheChoices(t *testing.T) {
	for name, tc := range map[string]struct {
		onEnd   string
		choices []string
		wrong   string // a part of the error; empty means none
	}{
		"it is":                      {"shelve", []string{"delete", "shelve"}, ""},
		"it is not":                  {"leave", []string{"delete", "shelve"}, "[reservation] on_end: is \"leave\", which is not among on_end_choices: delete, shelve"},
		"there is no choice":         {"delete", nil, "[reservation] on_end"},
		"a choice that nobody knows": {"delete", []string{"delete", "burn"}, "[reservation] on_end_choices: must be some of delete, stop, shelve and leave, not \"burn\""},
	} {
		t.Run(name, func(t *testing.T) {
			c := config.Defaults()
			c.Reservation.OnEnd, c.Reservation.OnEndChoices = tc.onEnd, tc.choices
			err := app.Check(c)
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("got %v, want %q", err, tc.wrong)
			}
		})
	}
}
