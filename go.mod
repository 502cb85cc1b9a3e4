module github.com/almanac-cloud/almanac

go 1.26.0

require pgregory.net/rapid v1.3.0

require (
	github.com/goccy/go-yaml v1.19.2
	github.com/google/go-cmp v0.7.0
)
