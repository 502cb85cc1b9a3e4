// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// Together lets callers who wait at the same time share one call. While fewer than AtOnce calls of a
// key are in progress, its callers wait for nothing. It is safe for concurrent use; the fields are
// set before.
type Together[K comparable, T any] struct {
	AtOnce int // calls of one key at the same time
	// Fits reports whether a call for these items may be for one more.
	Fits func(items []T, more T) bool
	// Do is the call. It returns one error for each item. Its context has the values of the first
	// caller's context, and ends when the contexts of all its callers have ended.
	Do func(ctx context.Context, items []T) []error
	// Stay is true if a caller whose context ends waits for the end of a call that has begun.
	Stay bool

	mu    sync.Mutex
	lines map[K]*line[T]
}

// line is the calls of one key: those in progress, and who waits for the next ones.
type line[T any] struct {
	calls   int
	waiting []*companion[T]
}

// companion is a caller who waits.
type companion[T any] struct {
	ctx  context.Context
	item T
	call *shared       // nil until the call begins
	over chan struct{} // closed when err or panicked is set
	err  error
	// panicked is what the call panicked with, and where; nil if it did not.
	panicked any
}

// result returns the error of the call, or panics as the call did.
func (c *companion[T]) result() error {
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.err
}

// shared is a call for several callers.
type shared struct {
	stays int // callers whose contexts have not ended
	end   context.CancelFunc
}

// ErrNotBegun is the error of a caller whose context ended before its call began.
var ErrNotBegun = errors.New("others were first")

// Run returns the error of the call for the item. If ctx ends first, it returns the error of ctx,
// with ErrNotBegun if Do does not have the item. If the call panics, so does Run, for each of its
// callers.
func (t *Together[K, T]) Run(ctx context.Context, key K, item T) error {
	c := t.enter(ctx, key, item)
	if c == nil {
		defer t.leave(key)
		return t.Do(ctx, []T{item})[0]
	}
	select {
	case <-c.over:
		return c.result()
	case <-ctx.Done():
	}
	if !t.abandon(key, c) {
		return fmt.Errorf("%w: %w", ErrNotBegun, ctx.Err())
	}
	if !t.Stay {
		select {
		case <-c.over:
			return c.result()
		default:
			return ctx.Err()
		}
	}
	<-c.over
	return c.result()
}

// enter returns nil if a call for the item may begin, and otherwise the caller, who waits.
func (t *Together[K, T]) enter(ctx context.Context, key K, item T) *companion[T] {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.lines[key]
	if !ok {
		l = &line[T]{}
		if t.lines == nil {
			t.lines = make(map[K]*line[T])
		}
		t.lines[key] = l
	}
	if l.calls < t.AtOnce {
		l.calls++
		return nil
	}
	c := &companion[T]{ctx: ctx, item: item, over: make(chan struct{})}
	l.waiting = append(l.waiting, c)
	return c
}

// abandon ends the wait of a caller whose context has ended, and reports whether its call has
// begun.
func (t *Together[K, T]) abandon(key K, c *companion[T]) (begun bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.call == nil {
		l := t.lines[key]
		l.waiting = slices.DeleteFunc(l.waiting, func(other *companion[T]) bool { return other == c })
		return false
	}
	if c.call.stays--; c.call.stays == 0 {
		c.call.end()
	}
	return true
}

// leave ends a call, in whose place the next one begins if somebody waits.
func (t *Together[K, T]) leave(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[key]
	if len(l.waiting) > 0 {
		t.begin(key, l)
		return
	}
	if l.calls--; l.calls == 0 {
		delete(t.lines, key)
	}
}

// begin begins the call for those who wait, the first ones first. The caller holds mu.
func (t *Together[K, T]) begin(key K, l *line[T]) {
	var items []T
	var callers []*companion[T]
	ctx, end := context.WithCancel(context.WithoutCancel(l.waiting[0].ctx))
	call := &shared{end: end}
	l.waiting = slices.DeleteFunc(l.waiting, func(c *companion[T]) bool {
		if len(items) > 0 && !t.Fits(items, c.item) {
			return false
		}
		items, callers = append(items, c.item), append(callers, c)
		c.call = call
		return true
	})
	call.stays = len(callers)
	go func() {
		defer t.leave(key)
		defer end()
		errs, panicked := t.try(ctx, items)
		t.mu.Lock()
		defer t.mu.Unlock()
		if panicked != nil && call.stays == 0 && !t.Stay {
			panic(panicked) // nobody is left to hear of it
		}
		for i, c := range callers {
			if c.panicked = panicked; panicked == nil {
				c.err = errs[i]
			}
			close(c.over)
		}
	}()
}

// try calls Do. If it panics, panicked is its value with the stack.
func (t *Together[K, T]) try(ctx context.Context, items []T) (errs []error, panicked any) {
	defer func() {
		if p := recover(); p != nil {
			panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	return t.Do(ctx, items), nil
}
