// SPDX-License-Identifier: Apache-2.0

package site

// StepAlways lets the controller take every step, including those at which there is nothing to
// see.
func (s *Site) StepAlways() { s.steps.always = true }
