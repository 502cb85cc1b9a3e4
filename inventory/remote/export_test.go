// SPDX-License-Identifier: Apache-2.0

package remote

// SetPart makes parts smaller, so that a test has several parts with few hosts.
func (s *Service) SetPart(bytes int) { s.part = bytes }
