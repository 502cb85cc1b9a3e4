// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
)

// leastCompressed is how many bytes an answer has at least that is worth the time to compress it.
const leastCompressed = 4 << 10

// sendNotModified tells a client that what it has is the answer. The header is that of the answer (RFC 9110, section 15.4.5).
func sendNotModified(c *gin.Context) {
	c.Writer.Header().Add("Vary", "Accept-Encoding")
	c.Status(http.StatusNotModified)
}

// sendCompressed sends a text of a kind, compressed if it is long and the client accepts that. Its ETag must be weak, because
// both forms have the same.
func sendCompressed(c *gin.Context, kind string, text []byte) error {
	c.Writer.Header().Add("Vary", "Accept-Encoding")
	if len(text) < leastCompressed || !acceptsGzip(c.Request.Header) {
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

// acceptsGzip reports whether a request accepts gzip: Accept-Encoding names it, and not with the weight 0 (RFC 9110,
// section 12.5.3).
func acceptsGzip(header http.Header) bool {
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
