// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// slow is a placer that places when proceed allows it.
type slow struct {
	placer
	began, proceed chan struct{}
	returned       chan dispatch.Placed
}

func (s slow) Place(ctx context.Context, r *placing.Request) (dispatch.Placed, error) {
	s.began <- struct{}{}
	<-s.proceed
	return s.placer.Place(ctx, r)
}

func (s slow) Return(p dispatch.Placed) { s.returned <- p }

func TestWhatWasPlacedForAConductorThatIsGoneIsReturned(t *testing.T) {
	s := slow{began: make(chan struct{}), proceed: make(chan struct{}), returned: make(chan dispatch.Placed, 2)}
	b := serve(t, topic.Options{Placer: s})
	ask := func(conductor *oslo.Client) <-chan error {
		answered, request := make(chan error, 1), args(t, nil, nil)
		go func() {
			target := oslo.Target{Exchange: topic.Exchange, Topic: topic.Topic, Version: "4.5"}
			answered <- conductor.Call(t.Context(), target, "select_destinations", request, nil)
		}()
		<-s.began
		return answered
	}
	answered := ask(b.client)
	s.proceed <- struct{}{}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	gone := oslo.NewClient(b.broker, oslo.ClientOptions{Timeout: time.Second, Monitor: time.Second, NewID: oslotest.NewID, Now: time.Now})
	answered = ask(gone)
	gone.Close()
	if err := <-answered; err == nil {
		t.Fatal("a conductor that is gone has an answer")
	}
	s.proceed <- struct{}{}
	if placed := <-s.returned; len(placed.Selections) != 1 || placed.Selections[0][0].Host.Name != "cmp-007" {
		t.Errorf("returned is %+v", placed)
	}
	if len(s.returned) > 0 {
		t.Error("the placement that a conductor received was returned too")
	}
}

func TestANovaComputeThatStartsIsKnownByItsCast(t *testing.T) {
	cast := captured(t, "scheduler_fanout-update_instance_info")[0]
	for user, want := range map[string][]string{`null`: {"cmp-008"}, `"36526e4457b94619a0efbbe85d3b105c"`: nil} {
		var started []string
		b := serve(t, topic.Options{Placer: placer{}, Started: func(host string) { started = append(started, host) }})
		ctx := oslo.WithContext(t.Context(), oslo.Context{"user_id": []byte(user), "user": []byte(user)})
		target := oslo.Target{Exchange: topic.Exchange, Topic: topic.Topic, Version: cast.Version}
		if err := b.client.Fanout(ctx, target, cast.Method, cast.Args); err != nil {
			t.Fatal(err)
		}
		<-b.changes
		if !slices.Equal(started, want) {
			t.Errorf("from user %s: %v started, want %v", user, started, want)
		}
	}
}
