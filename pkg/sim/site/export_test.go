package site

// StepAlways lets the controller take every step, also those at which there is nothing for it
// to see.
func (s *Site) StepAlways() { s.steps.always = true }
