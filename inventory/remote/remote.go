// SPDX-License-Identifier: Apache-2.0

// Package remote shares one inventory among processes (paper 004, section 004.1): a Service reads
// the hosts and answers calls on topic almanac.inventory, and in every other process a Source calls
// it.
//
// All hosts of one reading are an edition. Its generation is the SHA-256 of its encoding, so two
// services, or one before and after a restart, have the same generation only for the same hosts: a
// caller that has them does not receive them again, and parts of different editions are never
// combined.
package remote

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// The topics: services answer on Topic and announce changes of the hosts on ChangesTopic.
const (
	Topic        = "almanac.inventory"
	ChangesTopic = "almanac.inventory.changes"
)

const (
	version       = "1.0"
	hostsMethod   = "hosts"
	changedMethod = "changed"
)

// question is the argument of the method hosts.
type question struct {
	// Known is the generation that the caller has completely; "" means none.
	Known string `json:"known"`
	// Reading is the generation whose first Offset bytes the caller has.
	Reading string `json:"reading"`
	Offset  int    `json:"offset"`
}

// answer contains the next bytes of the edition that the caller is reading; if the current edition
// is a different one, its first bytes; none if the caller has the current edition completely.
type answer struct {
	Generation string `json:"generation"`
	// Age is how many seconds ago the service last read the hosts from its source.
	Age  int64  `json:"age"`
	Size int    `json:"size"` // of all parts together, in bytes
	Part []byte `json:"part,omitempty"`
}

// largestPart keeps a message, which encodes the bytes as base64, below 4 MB.
const largestPart = 2 << 20 // bytes

// edition is the hosts of one reading, encoded.
type edition struct {
	generation string
	packed     []byte // JSON, compressed by gzip
}

// newEdition returns the hosts packed for sending, with a generation that follows from the content.
func newEdition(hosts []inventory.Host) (edition, error) {
	raw, err := json.Marshal(hosts)
	if err != nil {
		return edition{}, fmt.Errorf("encode hosts: %w", err)
	}
	var packed bytes.Buffer
	pack := gzip.NewWriter(&packed)
	if _, err := pack.Write(raw); err != nil {
		return edition{}, fmt.Errorf("compress hosts: %w", err)
	}
	if err := pack.Close(); err != nil {
		return edition{}, fmt.Errorf("compress hosts: %w", err)
	}
	return edition{generationOf(packed.Bytes()), packed.Bytes()}, nil
}

// generationOf returns the SHA-256 of the packed hosts, in hexadecimal.
func generationOf(packed []byte) string {
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:])
}

// hosts returns the hosts of the edition.
func (e edition) hosts() ([]inventory.Host, error) {
	if generationOf(e.packed) != e.generation {
		return nil, fmt.Errorf("read hosts: the data received is not generation %s", e.generation)
	}
	unpack, err := gzip.NewReader(bytes.NewReader(e.packed))
	if err != nil {
		return nil, fmt.Errorf("decompress hosts: %w", err)
	}
	var hosts []inventory.Host
	if err := json.NewDecoder(unpack).Decode(&hosts); err != nil {
		return nil, fmt.Errorf("decode hosts: %w", err)
	}
	return hosts, nil
}

// answer returns the answer to q with a part of at most largest bytes.
func (e edition) answer(q question, largest int) answer {
	out := answer{Generation: e.generation, Size: len(e.packed)}
	if q.Known == e.generation {
		return out
	}
	from := 0
	if q.Reading == e.generation {
		from = min(max(q.Offset, 0), len(e.packed))
	}
	out.Part = e.packed[from:min(from+largest, len(e.packed))]
	return out
}

// topic returns the target of calls and announcements on an exchange.
func topic(exchange, name string) oslo.Target {
	return oslo.Target{Exchange: exchange, Topic: name, Version: version}
}
