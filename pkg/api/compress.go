// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// leastCompressed is how many bytes an answer has at least that is worth the time to compress it.
const leastCompressed = 4 << 10

// sendCompressed sends a text of a kind, compressed if it is long and the client accepts that. Its ETag must be weak, because
// both forms have the same.
func sendCompressed(c *gin.Context, kind string, text []byte) error {
	c.Writer.Header().Add("Vary", "Accept-Encoding")
	if len(text) < leastCompressed || !strings.Contains(c.GetHeader("Accept-Encoding"), "gzip") {
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
