// SPDX-License-Identifier: Apache-2.0

// Package cloud runs almanacd beside a whole OpenStack: reservations, hints, moves, preemption, energy, images, packing and
// failures, in both modes.
package cloud
