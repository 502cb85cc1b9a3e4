// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
)

// mustBe validates a token and checks the verdict, where "" means valid, and how often Keystone
// is asked.
func (s *scene) mustBe(token string, want fault.Kind, wantAsked int) {
	s.t.Helper()
	before := s.front.validations()
	_, err := s.validate(token)
	if want == "" && err != nil || want != "" && !fault.Is(err, want) {
		s.t.Errorf("got %v, want %q", err, want)
	}
	if asked := s.front.validations() - before; asked != wantAsked {
		s.t.Errorf("Keystone was asked %d times, want %d", asked, wantAsked)
	}
}

func TestAValidTokenIsBelievedForItsCacheTime(t *testing.T) {
	s := newScene(t, nil)
	token := s.token(s.account("member"))
	s.mustBe(token, "", 1)
	s.mustBe(token, "", 0)
	s.revoke(token)
	s.clock.advance(5*time.Minute - time.Second)
	s.mustBe(token, "", 0)
	s.clock.advance(time.Second)
	s.mustBe(token, fault.Unauthorized, 1)
}

func TestATokenIsNeverBelievedBeyondItsEnd(t *testing.T) {
	s := newScene(t, nil)
	a := s.account("member")
	token, expires := s.loginUntil(a.identity(), inProject(a.projectName))
	s.clock.advance(expires.Sub(s.clock.now()) - 10*time.Second)
	s.mustBe(token, "", 1)
	s.mustBe(token, "", 0)
	s.clock.advance(10 * time.Second)
	s.mustBe(token, fault.Unauthorized, 1)
}

func TestAnInvalidTokenIsRefusedForAWhileWithoutAsking(t *testing.T) {
	s := newScene(t, nil)
	s.mustBe("garbage", fault.Unauthorized, 1)
	s.mustBe("garbage", fault.Unauthorized, 0)
	s.clock.advance(10 * time.Second)
	s.mustBe("garbage", fault.Unauthorized, 1)
}

func TestWithoutACacheTimeKeystoneIsAskedEveryTime(t *testing.T) {
	s := newScene(t, func(o *keystone.Options) { o.TokenCacheTime = -time.Second })
	token := s.token(s.account("member"))
	s.mustBe(token, "", 1)
	s.mustBe(token, "", 1)
	s.mustBe("garbage", fault.Unauthorized, 1)
	s.mustBe("garbage", fault.Unauthorized, 1)
}

func TestTheCacheIsBounded(t *testing.T) {
	s := newScene(t, func(o *keystone.Options) { o.CacheSize = 2 })
	first := s.token(s.account("member"))
	s.mustBe(first, "", 1)
	for _, garbage := range []string{"a", "b", "c"} {
		s.mustBe(garbage, fault.Unauthorized, 1)
	}
	s.mustBe("a", fault.Unauthorized, 1)
	s.mustBe(first, "", 0)
	for range 2 {
		s.mustBe(s.token(s.account("member")), "", 1)
	}
	s.mustBe(first, "", 1)
}

func TestWhatACallerDoesToItsAnswerStaysWithIt(t *testing.T) {
	s := newScene(t, nil)
	token := s.token(s.account("reader"))
	for range 2 {
		got, err := s.validate(token)
		if err != nil || len(got.Roles) != 1 || got.Roles[0] != "reader" {
			t.Fatalf("got %v, %v", got.Roles, err)
		}
		got.Roles[0] = "admin"
	}
}

func TestManyWhoAskTheSameAskOnce(t *testing.T) {
	s := newScene(t, nil)
	token := s.token(s.account("member"))
	s.mustBe("garbage", fault.Unauthorized, 1) // the service user logs in
	hold, before := make(chan struct{}), s.front.validations()
	s.front.set(func(f *front) { f.hold = hold })
	var group sync.WaitGroup
	begun := make(chan struct{}, 50)
	for range 50 {
		group.Go(func() {
			begun <- struct{}{}
			if _, err := s.validate(token); err != nil {
				t.Error(err)
			}
		})
	}
	for range 50 {
		<-begun
	}
	close(hold)
	group.Wait()
	if asked := s.front.validations() - before; asked != 1 {
		t.Errorf("Keystone was asked %d times", asked)
	}
}
