# The commands are plain ones; this only names them. See docs/TESTING.md.
STATICCHECK = go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME = 60s

.PHONY: build test race lint golangci fuzz bench golden conformance ci

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
