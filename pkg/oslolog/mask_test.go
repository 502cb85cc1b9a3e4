// SPDX-License-Identifier: Apache-2.0

package oslolog_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/oslolog"
)

func TestSecretsAreHiddenByTheTextAroundThem(t *testing.T) {
	for text, want := range map[string]string{
		// oslo.utils' mask_password hides these.
		`'adminPass' : 'aaaaa'`:               `'adminPass' : '***'`,
		`"password" : "aaaaa"`:                `"password" : "***"`,
		`'original_password' : 'aaaaa'`:       `'original_password' : '***'`,
		`{u'auth_token': u'aaaaa', 'a': 'b'}`: `{u'auth_token': u'***', 'a': 'b'}`,
		`password = aaaaa user = me`:          `password = *** user = me`,
		`PASSWORD=aaaaa`:                      `PASSWORD=***`,
		`secret1=aaaaa`:                       `secret1=***`,
		`password = "aa aaa" user`:            `password = "***" user`,
		`password 'aaaaa'`:                    `password '***'`,
		`keystone --os-password aaaaa list`:   `keystone --os-password *** list`,
		`<adminPass>aaaaa</adminPass>`:        `<adminPass>***</adminPass>`,
		// Quotes within quotes.
		`password='aa"aaa'`:                `password='***'`,
		`password="aa\"aaa" user`:          `password="***" user`,
		`{\"password\": \"aaaaa\"}`:        `{\"password\": \"***`,
		`password="aaaaa`:                  `password="***`,
		"password=\"aaaaa\\":               `password="***`,
		`password=aa"aaa`:                  `password=***`,
		`db?user=me&password=aaaaa&ssl=on`: `db?user=me&password=***`,
		// Structs, maps and headers as Go prints them.
		`{Username:me Password:aaaaa Domain:d}`:                 `{Username:me Password:*** Domain:d}`,
		`map[X-Auth-Token:[aaaaa] Host:[h]]`:                    `map[X-Auth-Token:*** Host:[h]]`,
		`X-Auth-Token: aaaaa`:                                   `X-Auth-Token: ***`,
		`Authorization: Bearer aaaaa`:                           `Authorization: Bearer ***`,
		`map[Authorization:[Basic YTph] A:[b]]`:                 `map[Authorization:[Basic ***] A:[b]]`,
		`the token gAAAAABm4-_aaaaaaaaaaaaaaaaaaaaaaa== is bad`: `the token *** is bad`,
		// URLs and DSNs.
		`open mysql+pymysql://u:aaaaa@db/almanac: refused`: `open mysql+pymysql://u:***@db/almanac: refused`,
		`parse "amqp://u:aaaaa@h:5672//"`:                  `parse "amqp://u:***@h:5672//"`,
		`rabbit://u:aaaaa@h1:5672,v:bbbbb@h2:5672//`:       `rabbit://u:***@h2:5672//`,
		`mysql://u:aa@aaa@db/almanac`:                      `mysql://u:***@db/almanac`,
		`mysql://u:aa/aaa@db/almanac`:                      `mysql://u:***@db/almanac`,
		`mysql://u:aa"aaa@db/almanac`:                      `mysql://u:***@db/almanac`,
		`redis://:aaaaa@cache`:                             `redis://:***@cache`,
		`dsn u:aaaaa@tcp(127.0.0.1:3306)/almanac`:          `dsn u:***@tcp(127.0.0.1:3306)/almanac`,
		`"u:a@a:aa@unix(/run/mysqld.sock)/almanac"`:        `"u:***@unix(/run/mysqld.sock)/almanac"`,
	} {
		if got := oslolog.Mask(text); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestWhatHidesNothingStaysAsItIs(t *testing.T) {
	for _, text := range []string{
		"", "almanac serves", "http://127.0.0.1:1234", "http://[::1]:1234/v1/?limit=10", "amqp://guest@h:5672//",
		"a wrong password", "the token: it has expired", `field "password", value "short"`, "basic authentication",
		"idempotency_key=k1", "monkey=1", "tokens are cached", "passes=3", "me@example.org: hello",
		`{"password_hint": true}`, "SELECT `key` FROM `reservations` WHERE id = ?",
	} {
		if got := oslolog.Mask(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func TestNoPasswordIsSeenWhateverItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		password := "zqx" + rapid.StringMatching(`[!-~]{0,12}`).Draw(t, "password") + "xqz"
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(password)
		for _, text := range []string{
			"mysql://user:" + password + "@host/db",
			"open user:" + password + "@tcp(host)/db",
			"password=" + password,
			"admin_password = " + password + " user = me",
			`{"auth_token": "` + quoted + `", "user": "me"}`,
			`secret "` + quoted + `" is wrong`,
			"--os-password " + password,
			"X-Subject-Token: " + password,
		} {
			if got := oslolog.Mask(text); strings.Contains(got, "zqx") || strings.Contains(got, "xqz") {
				t.Fatalf("%s becomes %s", text, got)
			}
		}
	})
}

func FuzzMask(f *testing.F) {
	for _, seed := range []string{`password="a\`, `'token':u'`, "://:@", "gAAAA", "--secret x", "\xff@tcp(", "authorization:["} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		oslolog.Mask(text)
		if got := oslolog.Mask(text + " password=zqx"); strings.Contains(got, "zqx") {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
