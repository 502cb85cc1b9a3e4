// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// leastCompressed is how many bytes an answer has at least that is worth the time to compress it.
const leastCompressed = 4 << 10

// SendNotModified tells a client that what it has is the answer. The header is that of the answer (RFC 9110, section 15.4.5).
func (c *Call) SendNotModified() {
	c.Writer.Header().Add("Vary", "Accept-Encoding")
	c.Status(http.StatusNotModified)
}

// SendCompressed sends a text of a kind, compressed if it is long and the client accepts that. Its ETag must be weak, because
// both forms have the same.
func (c *Call) SendCompressed(kind string, text []byte) error {
	c.Writer.Header().Add("Vary", "Accept-Encoding")
	if len(text) < leastCompressed || !AcceptsGzip(c.Request.Header) {
		c.Data(http.StatusOK, kind, text)
		return nil
	}
	var small bytes.Buffer
	writer, err := gzip.NewWriterLevel(&small, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := writer.Write(text); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	c.Header("Content-Encoding", "gzip")
	c.Data(http.StatusOK, kind, small.Bytes())
	return nil
}

// AcceptsGzip reports whether a request accepts gzip: Accept-Encoding names it, and not with the weight 0 (RFC 9110,
// section 12.5.3).
func AcceptsGzip(header http.Header) bool {
	for _, line := range header.Values("Accept-Encoding") {
		for entry := range strings.SplitSeq(line, ",") {
			coding, weight, _ := strings.Cut(entry, ";")
			if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				continue
			}
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(weight)), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}

// Holds reports whether the client has the answer with a tag already: the tags in If-None-Match contain it.
func (c *Call) Holds(tag string) bool {
	for _, header := range c.Request.Header.Values("If-None-Match") {
		for entry := range strings.SplitSeq(header, ",") {
			entry = strings.TrimPrefix(strings.TrimSpace(entry), "W/")
			if entry == "*" || entry == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}
