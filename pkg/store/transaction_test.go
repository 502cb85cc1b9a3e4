// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"
)

func TestATransactionThatHasBegunIsCarriedOutThoughItsCallerLeaves(t *testing.T) {
	for name, start := range databases {
		t.Run(name, func(t *testing.T) {
			s := openFor(t, start(t)(), nil)
			if _, err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, leave := context.WithCancel(t.Context())
			err := s.write(ctx, func(tx *gorm.DB) error {
				leave()
				return tx.Create(&hiddenRow{Property: "rack"}).Error
			})
			if hidden, readErr := s.Hidden(t.Context()); err != nil || readErr != nil || !hidden["rack"] {
				t.Errorf("stored is %v: %v, %v", hidden, err, readErr)
			}
		})
	}
}

func TestNoTransactionBeginsForACallerWhoHasLeft(t *testing.T) {
	for name, start := range databases {
		t.Run(name, func(t *testing.T) {
			s := openFor(t, start(t)(), nil)
			for _, pool := range s.pools {
				pool.SetMaxOpenConns(1)
			}
			ctx, leave := context.WithCancel(t.Context())
			never := func(*gorm.DB) error {
				t.Error("the transaction has begun")
				return nil
			}
			// One transaction waits while another one has the only connection.
			done := make(chan error, 1)
			err := s.write(t.Context(), func(*gorm.DB) error {
				go func() { done <- s.write(ctx, never) }()
				leave()
				return nil
			})
			if waited := <-done; err != nil || !errors.Is(waited, context.Canceled) {
				t.Errorf("the waiting caller got %v, want context.Canceled; the one before %v", waited, err)
			}
			if err := s.write(ctx, never); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
		})
	}
}
