package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

var _ eviction.Records = (*Store)(nil)

// storedEviction is an eviction.Record as it is stored.
type storedEviction struct {
	Newcomers []allocated `json:"newcomers"`
	Victims   []evicted   `json:"victims"`
	NoticeFor time.Time   `json:"notice_for,omitzero"`
}

// allocated is a placing.Claim.
type allocated struct {
	Consumer    string              `json:"consumer"`
	Project     string              `json:"project"`
	User        string              `json:"user"`
	Generation  *int64              `json:"generation"`
	Allocations placing.Allocations `json:"allocations"`
	Before      placing.Allocations `json:"before"`
}

type evicted struct {
	allocated
	Host string `json:"host"`
}

// BeginEviction implements eviction.Records.
func (s *Store) BeginEviction(ctx context.Context, e eviction.Record) error {
	of := func(c placing.Claim) allocated {
		return allocated{c.Consumer, c.ProjectID, c.UserID, c.Generation, c.Allocations, c.Before}
	}
	state, err := json.Marshal(storedEviction{
		NoticeFor: e.NoticeFor.UTC(),
		Newcomers: converted(e.Preemptors, of),
		Victims:   converted(e.Victims, func(v claiming.Victim) evicted { return evicted{of(v.Claim), v.Host} }),
	})
	if err == nil {
		err = s.write(ctx, func(tx *gorm.DB) error {
			return tx.Create(&evictionRow{ID: e.ID, Replica: s.options.Holder, State: state}).Error
		})
	}
	if err != nil {
		return fmt.Errorf("store eviction %s: %w", e.ID, err)
	}
	return nil
}

// EndEviction implements eviction.Records.
func (s *Store) EndEviction(ctx context.Context, id string) error {
	ended := false
	err := s.write(ctx, func(tx *gorm.DB) error {
		done := tx.Where("id = ? AND replica = ?", id, s.options.Holder).Delete(&evictionRow{})
		ended = done.RowsAffected == 1
		return done.Error
	})
	if err == nil && !ended {
		err = fault.New(fault.Conflict, "another replica has taken it over")
	}
	if err != nil {
		return fmt.Errorf("end eviction %s: %w", id, err)
	}
	return nil
}

// TakeEvictions implements eviction.Records.
func (s *Store) TakeEvictions(ctx context.Context) (list []eviction.Record, err error) {
	var rows []evictionRow
	err = s.look(ctx, func(db *gorm.DB) error {
		rows = nil
		return db.Where("replica <> ? AND replica NOT IN (SELECT SUBSTR(name, ?) FROM leases WHERE name LIKE ? AND expires_at > "+s.engine.now+")",
			s.options.Holder, len(presence)+1, presence+"%").Order("id").Find(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("read the evictions of replicas that are gone: %w", err)
	}
	for _, row := range rows {
		mine := false
		err := s.write(ctx, func(tx *gorm.DB) error {
			done := tx.Model(&evictionRow{}).Where("id = ? AND replica = ?", row.ID, row.Replica).Update("replica", s.options.Holder)
			mine = done.RowsAffected == 1
			return done.Error
		})
		if err != nil {
			return list, fmt.Errorf("take over eviction %s: %w", row.ID, err)
		}
		if !mine {
			continue
		}
		e, err := row.eviction()
		if err != nil {
			return list, err
		}
		list = append(list, e)
	}
	return list, nil
}

func (row *evictionRow) eviction() (eviction.Record, error) {
	var e storedEviction
	if err := json.Unmarshal(row.State, &e); err != nil {
		return eviction.Record{}, fmt.Errorf("read eviction %s: %w", row.ID, err)
	}
	return eviction.Record{
		ID: row.ID, NoticeFor: e.NoticeFor, Preemptors: converted(e.Newcomers, allocated.claim),
		Victims: converted(e.Victims, func(v evicted) claiming.Victim { return claiming.Victim{Host: v.Host, Claim: v.claim()} }),
	}, nil
}

func (a allocated) claim() placing.Claim {
	return placing.Claim{
		Consumer: a.Consumer, ProjectID: a.Project, UserID: a.User, Generation: a.Generation, Allocations: a.Allocations, Before: a.Before,
	}
}
