# Sluice. `make help` lists the targets.

GO ?= go
# One compile cache for all tests, so that a module is compiled once.
export SLUICE_CACHE ?= $(CURDIR)/.cache/modules
# The program is released without cgo; tests are too, so that every package is compiled once.
export CGO_ENABLED ?= 0

# What the examples need is theirs: they are a module of their own.
MODULES = . examples

.PHONY: help demo build test check bench soak fuzz clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: ## collect this repository's history with examples/git, twice
	$(GO) run . demo

build: ## the program as it is released, which says its version: ./sluice
	$(GO) build -trimpath -buildvcs=auto -ldflags "-s -w" -o sluice .
	./sluice version

# The longest tests wait more than they compute, for browsers, leases and processes that end. So there are twice as many
# packages at a time as processors, and these start first, lest they run alone at the end.
LONGEST = ./tests/cluster ./tests/e2e ./host/cli ./host/browser/chromium ./tests/portal ./tests/resume ./tests/browsing/... \
  ./tests/browser ./store/postgres
TESTING = -json -vet=off -ldflags=-w -shuffle=on -timeout 40m -p $$((2 * $$(getconf _NPROCESSORS_ONLN)))

test: ## all tests, as CI runs them; says what this machine lacks, and at the end what was skipped
	@.ci/needs
	@mkdir -p -m 700 $(SLUICE_CACHE)
	@{ $(GO) test $(TESTING) $(LONGEST) ./...; $(GO) -C examples test $(TESTING) ./...; } | $(GO) run ./tests/report

# The tools have a module of their own, so that the program's has nothing of theirs.
TOOL = $(GO) tool -modfile=$(CURDIR)/.ci/tools/go.mod

# What gosec finds and we mean: a command line opens the files it is told to
# (G304), conversions follow a check of bounds (G115), errors are dropped on
# purpose where staticcheck agrees (G104), unsafe is the worker's and marked
# (G103), and texts that mention credentials hold none (G101).
GOSEC_EXCLUDE = G101,G103,G104,G115,G304

check: ## format, vet, static and security checks, tidy modules, layout; fails on a dirty tree
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo "run gofmt -w on these files"; exit 1; }
	$(GO) vet ./...
	$(GO) -C examples vet ./...
	GOOS=wasip1 GOARCH=wasm $(GO) build ./abi ./guest-sdk
	GOOS=wasip1 GOARCH=wasm $(GO) -C examples build ./...
	for d in $(MODULES); do GOOS=darwin $(GO) -C $$d build ./... || exit 1; done
	for s in darwin windows; do GOOS=$$s $(GO) vet ./... || exit 1; done
	$(TOOL) staticcheck ./...
	cd examples && $(TOOL) staticcheck ./...
	$(TOOL) gosec -quiet -exclude=$(GOSEC_EXCLUDE) -exclude-dir=testdata -exclude-dir=oauthtest -exclude-dir=examples -exclude-dir=tests ./...
	@for d in $(MODULES); do out=$$(cd $$d && $(TOOL) govulncheck ./... 2>&1); code=$$?; case "$$out" in \
	  *"fetching vulnerabilities"*) echo "vulnerability check SKIPPED: no database" ;; \
	  *) echo "$$out"; [ $$code = 0 ] || exit $$code ;; esac; done
	for d in $(MODULES); do $(GO) -C $$d mod tidy -diff && $(GO) -C $$d mod verify || exit 1; done
	$(GO) test -shuffle=on ./tests
	@test -z "$$(git status --porcelain)" || { git status --short; echo "the tree is dirty: commit first"; exit 1; }

bench: ## ingest, destinations, exports, memory and latency beside their alternatives, and of the service
	@mkdir -p -m 700 $(SLUICE_CACHE)
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 60m ./tests/bench ./tests/resume ./host/destination/... ./host/export

SOAKED = ./store/badger ./host/app ./host/backup ./host/schedule ./tests/crash ./tests/resume ./tests/cluster ./tests/hostile ./tests/conformance ./tests/e2e \
  ./host/browser ./host/browser/chromium ./tests/browsing/corpus \
  ./host/destination/sqlite ./host/destination/postgres ./host/destination/files ./host/destination/parquet ./host/destination/webhook

soak: ## what make test does a slice of: whole corpora, years, campaigns of faults, with a score; SOAK_CYCLES sets the length
	@mkdir -p -m 700 $(SLUICE_CACHE)
	@rm -f .cache/score
	@SLUICE_SCORE=$(CURDIR)/.cache/score SLUICE_CYCLES=$${SOAK_CYCLES:-200} SLUICE_FLIPS=$${SOAK_CYCLES:-200} SLUICE_RESTORES=$${SOAK_CYCLES:-200} \
	  $(GO) test -count=1 -timeout 0 -run 'Kill|PowerCut|Interrupted|Flip|FullDisk|Restore|Flaky|BrokenClicks|Corpus|TenYears|Ticks|Transcripts|Race|AttackPages|Clocks|Aged' $(SOAKED); \
	  failed=$$?; $(GO) run ./tests/campaign/score .cache/score; exit $$failed

fuzz: ## every fuzz target for FUZZTIME each (default 60s)
	@for d in $(MODULES); do for p in $$($(GO) -C $$d list ./...); do \
	  for f in $$($(GO) -C $$d test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "== $$p $$f"; $(GO) -C $$d test -run '^$$' -fuzz "^$$f$$" -fuzzminimizetime 10x -fuzztime $${FUZZTIME:-60s} $$p || exit 1; \
	  done; \
	done; done

clean: ## remove what the build and the tests left
	rm -rf sluice dist .cache tests/e2e/screenshots
