// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Secret is what Almanac and a receiver share, as the Standard Webhooks specification writes it: whsec_ and base64. Logs
// and errors do not have it.
type Secret string

const (
	secretPrefix = "whsec_"
	// A key has 24 to 64 bytes by the specification. SecretBytes is how many Almanac draws.
	leastKey    = 24
	mostKey     = 64
	SecretBytes = 32
)

const hidden = "(secret)"

// String hides the secret.
func (Secret) String() string { return hidden }

// GoString hides the secret.
func (Secret) GoString() string { return hidden }

// LogValue hides the secret.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the secret.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// NewSecret returns the secret of a key.
func NewSecret(key []byte) Secret {
	return Secret(secretPrefix + base64.StdEncoding.EncodeToString(key))
}

// key returns the bytes of the secret, or an Invalid fault without its text.
func (s Secret) key() ([]byte, error) {
	text, prefixed := strings.CutPrefix(string(s), secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !prefixed || err != nil || len(key) < leastKey || len(key) > mostKey {
		return nil, fault.Field("secret", "must be %s and the base64 of %d to %d bytes; leave it out, and Almanac makes one", secretPrefix, leastKey, mostKey)
	}
	return key, nil
}

// Check returns an Invalid fault unless the secret has the form of the specification.
func (s Secret) Check() error {
	_, err := s.key()
	return err
}

// Sign returns the value of the header webhook-signature of a message that is sent at an instant.
func (s Secret) Sign(id string, at span.Instant, body []byte) (string, error) {
	key, err := s.key()
	if err != nil {
		return "", err
	}
	sum := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(sum, "%s.%d.", id, int64(at)) // a hash has no errors
	_, _ = sum.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil)), nil
}
