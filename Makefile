# The commands are plain ones; this only names them. See docs/TESTING.md.
STATICCHECK = go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME = 60s

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PLATFORMS = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

.PHONY: build test race lint golangci fuzz bench golden conformance ci release image

build:
	go build -o bin/actormq ./cmd/actormq

test:
	go test ./...

race:
	go test -race ./...

lint:
	go vet ./...
	$(STATICCHECK) ./...
	go test ./testkit/tidy

# Needs golangci-lint 2.x on the machine.
golangci:
	golangci-lint run

# Each fuzz target for FUZZTIME.
fuzz:
	@set -e; for pkg in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "go test -run xxx -fuzz ^$$target\$$ -fuzztime $(FUZZTIME) $$pkg"; \
	    go test -run xxx -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

bench:
	go test -run xxx -bench Put ./actors/writer
	go test -run xxx -bench . ./segments/... ./messages/... ./actors/reput

golden:
	go test -run Golden ./cmd/actormq ./segments/store

conformance:
	testkit/conformance/run-go.sh

ci:
	.ci/run

# Static binaries for PLATFORMS in dist/, with their checksums. The same sources and the same Go give the same bytes.
release:
	@set -e; rm -rf dist; mkdir -p dist; for p in $(PLATFORMS); do \
	  out=dist/actormq-$(VERSION)-$$(echo $$p | tr / -); echo $$out; \
	  CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)" -o $$out ./cmd/actormq; \
	done; cd dist; sha256sum actormq-* > SHA256SUMS; cat SHA256SUMS

# A container image of the release binary; any builder of container files does: make image BUILDER='buildah bud'.
BUILDER = docker build
ARCH = $(shell go env GOARCH)

image:
	$(MAKE) release PLATFORMS=linux/$(ARCH)
	rm -rf dist/image && mkdir -p dist/image/store && cp dist/actormq-$(VERSION)-linux-$(ARCH) dist/image/actormq
	$(BUILDER) -f docs/deploy/Dockerfile -t actormq dist/image
