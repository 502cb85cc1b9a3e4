// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// cache stores Keystone's verdicts on tokens. Rejected tokens have a cache of their own,
// because anybody can make them up, and each user has a limited share of the valid ones: no
// caller's tokens can evict the tokens of all others. It is safe for concurrent use.
type cache struct {
	mu       sync.Mutex
	valid    *simplelru.LRU[question, verdict]
	rejected *simplelru.LRU[question, verdict]
	share    int
	ofUser   map[string][]question // valid tokens by user, the oldest first
}

// shares is the minimum number of users whose tokens fill the cache.
const shares = 100

// newCache returns a cache for size valid tokens and size rejected ones.
func newCache(size int) (*cache, error) {
	c := &cache{share: max(1, size/shares), ofUser: make(map[string][]question)}
	var err error
	if c.valid, err = simplelru.NewLRU(size, c.forget); err != nil {
		return nil, err
	}
	c.rejected, err = simplelru.NewLRU[question, verdict](size, nil)
	return c, err
}

// get returns the verdict on a token if one is valid at now.
func (c *cache) get(q question, now time.Time) (verdict, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kept := range []*simplelru.LRU[question, verdict]{c.valid, c.rejected} {
		if known, ok := kept.Get(q); ok && now.Before(known.until) {
			return known, true
		}
	}
	return verdict{}, false
}

// add stores the verdict about a token. If one user has too many tokens, the oldest is forgotten.
func (c *cache) add(q question, v verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The new verdict replaces any other.
	c.valid.Remove(q)
	c.rejected.Remove(q)
	if v.err != nil {
		c.rejected.Add(q, v)
		return
	}
	user := v.token.UserID
	if own := c.ofUser[user]; len(own) >= c.share {
		c.valid.Remove(own[0])
	}
	c.ofUser[user] = append(c.ofUser[user], q)
	c.valid.Add(q, v)
}

// forget removes an evicted token from the list of its user.
func (c *cache) forget(q question, v verdict) {
	user := v.token.UserID
	own := slices.DeleteFunc(c.ofUser[user], func(one question) bool { return one == q })
	if len(own) == 0 {
		delete(c.ofUser, user)
		return
	}
	c.ofUser[user] = own
}
