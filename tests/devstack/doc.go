// SPDX-License-Identifier: Apache-2.0

// Package devstack stacks, uses and unstacks the DevStack plugin, on the services of the lab.
package devstack
