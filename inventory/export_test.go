// SPDX-License-Identifier: Apache-2.0

package inventory

// Judge returns why the rules do not trust listed, a reading of the hosts, after the reading
// trusted, and "" if they trust it. What operators have set since then is no reason.
func (r TrustRules) Judge(trusted, listed []Host, overrides map[string]Override) string {
	return r.judge(seen(trusted), listed, overrides).String()
}

// Entered returns the instances of the claims on the live state, in the order in which
// their plans entered.
func (b *LiveState) Entered() (instances []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.claims {
		instances = append(instances, c.take.Instance)
	}
	return instances
}
