// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
)

func TestWhileKeystoneIsAwayWhatItSaidHoldsAndNothingIsInvalid(t *testing.T) {
	s := newScene(t, nil)
	known, other := s.token(s.account("member")), s.token(s.account("member"))
	s.mustBe(known, "", 1)
	away := s.front.Listener.Addr().String()
	s.front.Close()

	s.mustBe(known, "", 0)
	_, err := s.validate(other)
	if f := fault.Of(err); f.Kind != fault.Unavailable || f.RetryAfter <= 0 {
		t.Errorf("an unknown token: got %v, retry after %v", err, f.RetryAfter)
	}
	s.clock.advance(5 * time.Minute)
	if _, err := s.validate(known); !fault.Is(err, fault.Unavailable) {
		t.Errorf("after the cache time: got %v", err)
	}

	again := newFrontAt(s.cloud, away)
	if _, err := s.validate(other); err != nil || again.validations() != 1 {
		t.Errorf("after Keystone's return: %v, asked %d times", err, again.validations())
	}
}

func TestWhateverFailsInKeystoneATokenIsNotCalledInvalid(t *testing.T) {
	s := newScene(t, nil)
	token := s.token(s.account("member"))
	for _, status := range []int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusTooManyRequests, http.StatusFound, http.StatusForbidden, http.StatusUnauthorized, http.StatusOK} {
		s.front.set(func(f *front) { f.instead = status })
		_, err := s.validate(token)
		if f := fault.Of(err); f.Kind != fault.Unavailable || f.RetryAfter <= 0 {
			t.Errorf("%d: got %v, retry after %v", status, err, f.RetryAfter)
		}
		s.clock.advance(10 * time.Minute) // after the pause that follows a refused login
	}
	s.front.set(func(f *front) { f.instead = 0 })
	s.mustBe(token, "", 1)
}

func TestKeystoneSaysWhenToTryAgain(t *testing.T) {
	s := newScene(t, nil)
	s.front.set(func(f *front) { f.instead = http.StatusTooManyRequests })
	_, err := s.validate("any")
	if got := fault.Of(err).RetryAfter; got != 17*time.Second {
		t.Errorf("retry after %v", got)
	}
}

func TestASlowKeystoneIsWaitedForOnlySoLong(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	wait := func() time.Duration {
		s := newScene(t, func(o *keystone.Options) { o.Timeout = 200 * time.Millisecond })
		s.front.set(func(f *front) { f.hold = hold })
		begun := time.Now()
		if _, err := s.Validate(t.Context(), "any", "another"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
		return time.Since(begun)
	}
	waited := wait()
	for range 4 { // a pause of the machine prolongs one wait, but not all
		if waited > keystone.DefaultTimeout/2 {
			waited = min(waited, wait())
		}
	}
	if waited > keystone.DefaultTimeout/2 {
		t.Errorf("it waited for %v", waited)
	}
}

func TestWhoHangsUpDoesNotSpoilItForTheOthers(t *testing.T) {
	s := newScene(t, nil)
	token := s.token(s.account("member"))
	s.mustBe("garbage", fault.Unauthorized, 1)
	hold := make(chan struct{})
	s.front.set(func(f *front) { f.hold = hold })
	impatient, hangUp := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := s.Validate(impatient, token, "")
		gone <- err
	}()
	s.front.await(2)
	hangUp()
	if err := <-gone; !fault.Is(err, fault.Unavailable) {
		t.Errorf("the caller that hung up: %v", err)
	}
	close(hold)
	if _, err := s.validate(token); err != nil {
		t.Error(err)
	}
	if got := s.front.validations(); got != 2 {
		t.Errorf("asked %d times, want 2", got)
	}
}

func TestTheServiceUserLogsInAgainWhenItsTokenIsRevoked(t *testing.T) {
	s := newScene(t, nil)
	a := s.account("member")
	s.mustBe(s.token(a), "", 1)
	s.front.mu.Lock()
	own := s.front.last.Get("X-Auth-Token")
	s.front.mu.Unlock()
	s.revoke(own)
	s.mustBe(s.token(a), "", 2)
	s.mustBe(s.token(a), "", 1)
	if got := s.front.logins(); got != 2 {
		t.Errorf("%d logins, want 2", got)
	}
}

func TestTheServiceUserLogsInAgainBeforeItsTokenEnds(t *testing.T) {
	s := newScene(t, nil)
	s.mustBe("garbage", fault.Unauthorized, 1)
	s.clock.advance(24*time.Hour - 30*time.Second)
	s.mustBe("garbage", fault.Unauthorized, 1)
	if got := s.front.logins(); got != 2 {
		t.Errorf("%d logins, want 2", got)
	}
}

func TestAWrongServicePasswordIsReportedOnceAndNotTriedOnAndOn(t *testing.T) {
	s := newScene(t, func(o *keystone.Options) { o.Password = "not-the-password" })
	token := s.token(s.account("member"))
	for range 20 {
		_, err := s.validate(token)
		if !fault.Is(err, fault.Unavailable) || strings.Contains(err.Error(), "not-the-password") {
			t.Fatalf("got %v", err)
		}
	}
	if got := s.front.logins(); got != 1 {
		t.Errorf("%d logins", got)
	}
	s.clock.advance(30 * time.Second)
	s.mustBe(token, fault.Unavailable, 0)
	s.clock.advance(59 * time.Second)
	s.mustBe(token, fault.Unavailable, 0)
	if got := s.front.logins(); got != 2 {
		t.Errorf("%d logins: the pause did not grow", got)
	}
	log := s.log.String()
	if strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "[keystone_authtoken]") || strings.Contains(log, "not-the-password") {
		t.Errorf("the log:\n%s", log)
	}

	s.call(s.cloud.admin, http.MethodPatch, "/users/"+s.service.id, object{"user": object{"password": "not-the-password"}}, http.StatusOK)
	s.clock.advance(time.Minute)
	// Keystone considers a token revoked if it is from the same second as a password change.
	for give := time.Now().Add(patience); ; {
		if _, err := s.validate(token); err == nil {
			break
		} else if time.Now().After(give) {
			t.Fatal(err)
		}
	}
}

func TestAServiceUserWhoMayNotValidateIsToldSo(t *testing.T) {
	s := newScene(t, nil)
	weak := s.account("member")
	s.options.Username, s.options.Password, s.options.ProjectName = weak.name, weak.password, weak.projectName
	v, err := keystone.New(s.options)
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Validate(t.Context(), s.token(s.account("member")), "")
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "assign it the role service or admin") {
		t.Errorf("got %v", err)
	}
}

func TestTheServiceUserMayBeAnApplicationCredential(t *testing.T) {
	s := newScene(t, nil)
	body, _ := s.call(s.token(s.service), http.MethodPost, "/users/"+s.service.id+"/application_credentials",
		object{"application_credential": object{"name": "validator"}}, http.StatusCreated)
	made := body["application_credential"].(object)
	token := s.token(s.account("member"))
	for name, c := range map[string]keystone.Connection{
		"by id":   {ApplicationCredentialID: made["id"].(string)},
		"by name": {ApplicationCredentialName: "validator", Username: s.service.name},
	} {
		c.AuthURL, c.ApplicationCredentialSecret, c.Interface = s.url, made["secret"].(string), "internal"
		s.options.Connection = c
		v, err := keystone.New(s.options)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Validate(t.Context(), token, ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOptionsThatCannotWorkAreNamed(t *testing.T) {
	right := keystone.Connection{AuthURL: "http://127.0.0.1:5000/v3", Username: "almanac", Password: "x", ProjectName: "service"}
	for want, change := range map[string]func(c *keystone.Connection){
		"auth_url":                  func(c *keystone.Connection) { c.AuthURL = "127.0.0.1:5000" },
		"interface":                 func(c *keystone.Connection) { c.Interface = "privat" },
		"username":                  func(c *keystone.Connection) { c.Password = "" },
		"project_name":              func(c *keystone.Connection) { c.ProjectName = "" },
		"cafile":                    func(c *keystone.Connection) { c.CAFile = "no/such/file.pem" },
		"application_credential_id": func(c *keystone.Connection) { c.ApplicationCredentialSecret = "x" },
	} {
		c := right
		change(&c)
		_, err := keystone.New(keystone.Options{Connection: c})
		if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || f.Field != "[keystone_authtoken] "+want {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
