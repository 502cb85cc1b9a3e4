// SPDX-License-Identifier: Apache-2.0

package ipmi

import (
	"context"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// The cipher suites of IPMI 2.0 that BMCs know, by their algorithms. Without -C, ipmitool asks for
// the list of suites before each command, and waits five seconds for a BMC that ignores the question.
const (
	suiteSHA256 = 17
	suiteSHA1   = 3
)

// run runs ipmitool and returns its output. Options in words precede the command of ipmitool. If the
// configuration names no cipher suite and the BMC does not know the newer one, run uses the older
// one, for later commands too.
func (m *Machine) run(ctx context.Context, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, m.options.Timeout)
	defer cancel()
	suite := int(m.suite.Load())
	said, complaint, err := m.call(ctx, suite, nil, words)
	if err == nil {
		return said, nil
	}
	reason := reasonOf(complaint)
	if reason == unknown && ctx.Err() == nil {
		// Only with -v does ipmitool say why it has no session.
		_, complaint, _ = m.call(ctx, suite, []string{"-v", "-N", "1", "-R", "1"}, []string{"chassis", "power", "status"})
		reason = reasonOf(complaint)
	}
	if (reason == otherSuite || reason == unknown) && m.options.Cipher == 0 && suite != suiteSHA1 && ctx.Err() == nil {
		if said, _, err := m.call(ctx, suiteSHA1, nil, words); err == nil {
			m.suite.Store(suiteSHA1)
			return said, nil
		}
	}
	if reason == unknown {
		return "", fault.New(fault.Unavailable, "the BMC %s cannot be reached: %s", m.options.Address, fault.Of(err).Message)
	}
	return "", fault.New(fault.Unavailable, "the BMC %s %s", m.options.Address, sentences[reason])
}

// call runs ipmitool with a cipher suite and more options.
func (m *Machine) call(ctx context.Context, suite int, options, words []string) (said, complaint string, err error) {
	argv := append(m.argv[:len(m.argv):len(m.argv)], "-C", strconv.Itoa(suite))
	return power.RunProgramAloud(ctx, append(append(argv, options...), words...))
}

// reason is why ipmitool has no session with a BMC.
type reason int

const (
	unknown reason = iota
	silent
	otherPassword
	otherUser
	otherPrivilege
	otherSuite
	noPassword
)

var sentences = map[reason]string{
	silent:         "does not answer",
	otherPassword:  "answers, and refuses the password",
	otherUser:      "answers, and has no such user",
	otherPrivilege: "answers, and refuses the user this privilege",
	otherSuite:     "answers, and does not know the cipher suite",
	noPassword:     "is not asked: the password file cannot be read",
}

// reasonOf reads the error output of ipmitool 1.8.19 with -v (src/plugins/lanplus/lanplus.c).
func reasonOf(complaint string) reason {
	for _, r := range []struct {
		text string
		is   reason
	}{
		{"password file", noPassword},
		{"Get Auth Capabilities error", silent},
		{"HMAC is invalid", otherPassword},
		{"unauthorized name", otherUser},
		{"unauthorized role", otherPrivilege},
		{"insufficient privilege", otherPrivilege},
		{"Error in open session response message", otherSuite},
	} {
		if strings.Contains(complaint, r.text) {
			return r.is
		}
	}
	return unknown
}
