package inventory

// Judge says why listed, a reading of the hosts, is not believed where trusted was
// before it; empty where it is. What operators have set since then is no reason.
func (r DoubtRules) Judge(trusted, listed []Host, overrides map[string]Override) string {
	return r.judge(seen(trusted), listed, overrides).String()
}
