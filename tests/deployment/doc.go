// SPDX-License-Identifier: Apache-2.0

// Package deployment installs Almanac as operators do: with packages, with Ansible, and with the files that
// other deployment tools write.
package deployment
