# Sluice. `make help` lists the targets.

GO ?= go
# One compile cache for all tests, so that a module is compiled once.
export SLUICE_CACHE ?= $(CURDIR)/.cache/modules

.PHONY: help demo test check bench soak fuzz clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: ## collect this repository's history with examples/git, twice
	$(GO) run . demo

test: ## all tests, as CI runs them
	@mkdir -p -m 700 $(SLUICE_CACHE)
	$(GO) test -shuffle=on -timeout 20m ./...

# What gosec finds and we mean: a command line opens the files it is told to
# (G304), conversions follow a check of bounds (G115), errors are dropped on
# purpose where staticcheck agrees (G104), unsafe is the worker's and marked
# (G103), and texts that mention credentials hold none (G101).
GOSEC_EXCLUDE = G101,G103,G104,G115,G304

check: ## format, vet, static and security checks, tidy modules, layout; fails on a dirty tree
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo "run gofmt -w on these files"; exit 1; }
	$(GO) vet ./...
	GOOS=wasip1 GOARCH=wasm $(GO) build ./abi ./guest-sdk ./examples/...
	GOOS=darwin $(GO) build ./...
	$(GO) tool staticcheck ./...
	$(GO) tool gosec -quiet -exclude=$(GOSEC_EXCLUDE) -exclude-dir=testdata -exclude-dir=oauthtest -exclude-dir=examples -exclude-dir=tests ./...
	@out=$$($(GO) tool govulncheck ./... 2>&1); code=$$?; case "$$out" in \
	  *"fetching vulnerabilities"*) echo "vulnerability check SKIPPED: no database" ;; \
	  *) echo "$$out"; exit $$code ;; esac
	$(GO) mod tidy -diff
	$(GO) mod verify
	$(GO) test -shuffle=on ./tests
	@test -z "$$(git status --porcelain)" || { git status --short; echo "the tree is dirty: commit first"; exit 1; }

bench: ## ingest, memory and latency beside their alternatives, and of the service
	@mkdir -p -m 700 $(SLUICE_CACHE)
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 60m ./tests/bench

soak: ## long crash, power cut, bit flip, full disk and flaky page campaigns, with a score; SOAK_CYCLES sets the length
	@mkdir -p -m 700 $(SLUICE_CACHE)
	@rm -f .cache/score
	@SLUICE_SCORE=$(CURDIR)/.cache/score SLUICE_CYCLES=$${SOAK_CYCLES:-200} SLUICE_FLIPS=$${SOAK_CYCLES:-200} SLUICE_RESTORES=$${SOAK_CYCLES:-200} \
	  $(GO) test -count=1 -timeout 0 -run 'Kill|PowerCut|Flip|FullDisk|Restore|Flaky|BrokenClicks|Corpus|AttackPages' ./store/badger ./host/backup ./tests/crash ./host/browser ./host/browser/chromium ./tests/browsing/corpus; \
	  failed=$$?; $(GO) run ./tests/campaign/score .cache/score; exit $$failed

fuzz: ## every fuzz target for FUZZTIME each (default 60s)
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzzminimizetime 10x -fuzztime $${FUZZTIME:-60s} $$p || exit 1; \
	  done; \
	done

clean: ## remove what the build and the tests left
	rm -rf sluice dist .cache tests/e2e/screenshots
