// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/config"
)

// credentials returns the environment with a folder of these files.
func credentials(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{"CREDENTIALS_DIRECTORY": folder}
}

func TestACredentialIsTheValueOfTheOptionThatItNames(t *testing.T) {
	file := write(t, "almanac.conf", "[keystone_authtoken]\npassword = of the file\n[DEFAULT]\ndebug = perhaps\n")
	environment := credentials(t, map[string]string{
		"keystone_authtoken.password": "pa$$word $user\n", "default.debug": "true\r\n", "noauth.user_id": "c",
		"tls.key": "of another program", "..data": "of Kubernetes", "DATABASE.connection": "sqlite:////a",
	})
	environment["OS_NOAUTH__USER_ID"] = "v"
	cfg, err := config.Load([]string{file}, nil, environment)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ rule, got, want string }{
		{"over the files, as it is", cfg.Keystone.Password, "pa$$word $user"},
		{"below a variable", cfg.NoAuth.UserID, "v"},
		{"sections in any case", cfg.Database.Connection, "sqlite:////a"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.rule, c.got, c.want)
		}
	}
	if !cfg.Default.Debug {
		t.Error("the wrong value of the file counts")
	}
}

func TestAnOptionRefersToTheTextOfACredential(t *testing.T) {
	environment := credentials(t, map[string]string{"keystone_authtoken.password": "a$b"})
	environment["OS_DATABASE__CONNECTION"] = "mysql://almanac:${keystone_authtoken.password}@db/almanac"
	cfg, err := config.Load(nil, nil, environment)
	if want := "mysql://almanac:a$b@db/almanac"; err != nil || cfg.Database.Connection != want {
		t.Errorf("got %q and error %v", cfg.Database.Connection, err)
	}
}

func TestAWrongCredentialIsAnErrorWithoutItsText(t *testing.T) {
	for name, tc := range map[string]struct {
		environment map[string]string
		want        string
	}{
		"of our section, but of no option": {
			credentials(t, map[string]string{"keystone_authtoken.pasword": "hunter2"}),
			`there is no credential "keystone_authtoken.pasword"; did you mean "keystone_authtoken.password"?`,
		},
		"of several lines": {
			credentials(t, map[string]string{"keystone_authtoken.password": "hunter2\nhunter2"}),
			"credential keystone_authtoken.password: [keystone_authtoken] password: must be one line",
		},
		"no folder": {
			map[string]string{"CREDENTIALS_DIRECTORY": "/nowhere"}, "the folder CREDENTIALS_DIRECTORY cannot be read: open /nowhere",
		},
	} {
		_, err := config.Load(nil, nil, tc.environment)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}
