package inventory

// Judge says why listed, a reading of the hosts, is not believed where trusted was
// before it; empty where it is. What operators have set since then is no reason.
func (r TrustRules) Judge(trusted, listed []Host, overrides map[string]Override) string {
	return r.judge(seen(trusted), listed, overrides).String()
}

// Entered returns the instances of what is held on the board, in the order in which their
// plans entered.
func (b *LiveState) Entered() (instances []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.claims {
		instances = append(instances, c.take.Instance)
	}
	return instances
}
