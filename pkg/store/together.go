// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/reservation"
)

// togetherColumn is the column of reservations with the rule how their hosts lie to each other.
type togetherColumn struct {
	Together *string `gorm:"size:2048"`
}

func (togetherColumn) TableName() string { return "reservations" }

// addTogether adds the rule how hosts lie to each other to reservations.
func addTogether(tx *gorm.DB) error { return addColumns(tx, &togetherColumn{}, "Together") }

// encodeTogether returns nil for a reservation without a rule.
func encodeTogether(t reservation.Together) (*string, error) {
	if t == (reservation.Together{}) {
		return nil, nil
	}
	text, err := json.Marshal(t)
	return new(string(text)), err
}

func decodeTogether(row *reservationRow) (t reservation.Together, err error) {
	if row.Together != nil {
		err = json.Unmarshal([]byte(*row.Together), &t)
	}
	return t, err
}
