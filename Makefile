# SPDX-License-Identifier: Apache-2.0
# Almanac. `make help` lists what can be made.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
LDFLAGS  = -s -w -X main.version=$(VERSION)
# The race detector needs a C compiler; without one the tests run all the same. It leaves out the
# code that was translated from SQLite's C, which would take most of the time.
RACE     = $(shell command -v $${CC:-gcc} >/dev/null 2>&1 && echo -race -gcflags=modernc.org/sqlite/lib=-race=false)

# What runs a command beside real services: in the lab that ALMANAC_LAB names, else in one
# of its own that goes away with it. CLOUDLESS leaves Nova out, whose work would disturb.
LAB       = tests/openstack/lab run
CLOUDLESS = LAB_PARTS='mariadb rabbitmq keystone' $(LAB)

.PHONY: help build packages clients release image run check test test-slow test-in-cloud test-beside-cloud test-drawn test-vet test-galera test-answers test-page test-large test-hours test-cloud test-cells test-limits test-queues test-tempest test-energy test-blazar test-blazar-bodies test-blazar-clients test-blazar-gophercloud test-blazar-queries test-blazar-tempest test-blazar-takeover test-networks test-releases test-release test-release-packages test-release-cloud test-release-served test-release-services ran test-services test-packages test-chart test-long growth bench bench-cloud pictures reproduce mutants fuzz lab lab-down sample clean

help: ## list what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

build: ## build the commands into bin/
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

packages: ## .deb and .rpm for amd64 and arm64 into dist/
	@GO='$(GO)' packaging/build packages

clients: ## the command line alone, for Linux, macOS and Windows, into dist/
	@GO='$(GO)' packaging/build clients

release: ## packages, archives, SBOMs and checksums of a release into dist/: make release VERSION=1.2.3
	@GO='$(GO)' packaging/build release

image: ## the container image into dist/, with buildah, for the architecture of this machine
	@GO='$(GO)' packaging/build image

run: build ## build and start Almanac on the embedded default
	@bin/almanacd

check: ## format, vet, staticcheck, layout and the quick tests, in under two minutes
	@test -z "$$(gofmt -l cmd filters inventory pkg reservation tests weighers)" || { gofmt -l cmd filters inventory pkg reservation tests weighers; echo 'run gofmt -w on these files'; exit 1; }
	@CGO_ENABLED=0 $(GO) vet ./...
	@CGO_ENABLED=0 $(GO) tool staticcheck -tests=false ./...
	@CGO_ENABLED=0 $(GO) test -short ./... | { grep -v -e 'no test files' || true; }

# The tests of the cloud use it one after the other and wait most of the time. The other packages
# run beside them, three at once, on the CPU time that the cloud and its tests leave: Linux divides
# the CPU among sessions before it looks at nice, so the services get a priority as a group. The
# three minutes in which replicas are killed are one minute here, and three in test-galera. TIMEOUT
# ends a test binary that hangs; it leaves time for a machine that is five times slower.
TIMEOUT = 180m
PRIORITY = $(shell [ -w /proc/self/autogroup ] && [ "$$(id -u)" = 0 ] && echo -10)

# Browsers for the tests of the page, fonts for all scripts in it, and what fetches axe-core.
BROWSER = chromium firefox-esr fonts-dejavu-core fonts-liberation $(shell command -v npm >/dev/null || echo npm)

# The programs with which operators deploy, for the tests of packaging/ansible.
DEPLOYERS = ansible-core ansible-lint

test: ## all tests, as CI runs them, with real services from Debian packages
	@test -n "$(RACE)" || echo 'make test: no C compiler, so the race detector stays off'
	@rm -rf var/commands && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o var/commands/ ./cmd/...
	@ALMANAC_COMMANDS=$(CURDIR)/var/commands ALMANAC_CHAOS=$${ALMANAC_CHAOS:-1m} LAB_PRIORITY=$(PRIORITY) LAB_PROGRAMS="$${LAB_PROGRAMS:-$(BROWSER) $(DEPLOYERS)}" $(LAB) make --no-print-directory -j4 test-in-cloud test-beside-cloud test-drawn test-vet

test-slow: ## the same with a fifth of the CPU time, as root: no test fails because the machine is slow
	@tests/openstack/slow $(MAKE) --no-print-directory test

# Hugo is pinned in site/go.mod; the first build of it takes some minutes.
SITE = $(CURDIR)/var/site

.PHONY: site site-pages test-site
site-pages:
	@CGO_ENABLED=0 nice -n 15 $(GO) build -C site -trimpath -o ../var/tools/hugo github.com/gohugoio/hugo
	@var/tools/hugo --source site --destination $(SITE) --cleanDestinationDir --noBuildLock --panicOnWarning --quiet

site: site-pages ## the documentation as a site in var/site, with all of its links checked
	@ALMANAC_TEST_SITE=$(SITE) CGO_ENABLED=0 $(GO) test -count=1 -short $(call marked,test-site)
	@echo 'The site is var/site/index.html.'

test-site: site-pages ## the same, and in a browser
	@LAB_PARTS=mariadb LAB_PROGRAMS='$(BROWSER)' ALMANAC_TEST_SITE=$(SITE) CGO_ENABLED=0 $(LAB) $(GO) test -count=1 -timeout $(TIMEOUT) $(call marked,test-site)

# A line `//make:test-cells` above a test names the targets that run it. named is the pattern of a target's tests,
# housing their packages, and marked both, as go test takes them.
MARK = -rE --include=*_test.go '^//make:(.* )?$(1)( |$$)' cmd inventory pkg reservation tests
named = ^($(shell grep -h -A1 $(MARK) | sed -n 's/^func \(Test\w*\).*/\1/p' | sort -u | paste -sd '|'))$$
housing = $(shell grep -l $(MARK) | xargs dirname | sort -u | sed 's,^,./,')
marked = -run '$(named)' $(housing)

# The race detector makes tests five times slower, so tests of one goroutine run without it: the
# packages ALONE, and the tests of test-drawn, which repeat what others of their package do, for many
# drawn cases or in another database.
ALONE = ./pkg/workload ./pkg/sim ./pkg/sim/papers/deadline ./pkg/sim/papers/energy ./pkg/sim/papers/packing ./pkg/sim/papers/preemption ./pkg/sim/replay \
  ./pkg/sim/site ./pkg/sim/papers/staging ./pkg/nova/object ./pkg/whatif ./weighers ./tests/source
# These packages have tests of the cloud.
CLOUDED = $(shell grep -rl 'labtest.OpenStack.t.' --include=*_test.go inventory pkg reservation tests | xargs dirname | sort -u | sed 's,^,./,')
RACED = $(shell $(GO) list ./... | grep -v $(foreach p,$(ALONE) $(CLOUDED),-e $(p:./%=/%)$$))

test-in-cloud:
	@$(GO) test $(RACE) -vet=off -shuffle=on -p 1 -parallel 4 -timeout $(TIMEOUT) $(CLOUDED)

test-beside-cloud:
	@nice -n 15 $(GO) test $(RACE) -vet=off -shuffle=on -p 3 -timeout $(TIMEOUT) -skip '$(call named,test-drawn)' $(RACED) | { grep -v -e 'no test files' || true; }

test-drawn:
	@CGO_ENABLED=0 nice -n 15 $(GO) test -trimpath -vet=off -shuffle=on -timeout $(TIMEOUT) $(ALONE)
	@CGO_ENABLED=0 nice -n 15 $(GO) test -trimpath -vet=off -shuffle=on -timeout $(TIMEOUT) $(call marked,test-drawn)

test-vet:
	@nice -n 15 $(GO) vet $(RACE) ./...

test-galera: build ## promises on MariaDB and on a Galera cluster of three; ALMANAC_CHAOS=10m makes it longer
	@ALMANAC_TEST_GALERA=1 $(CLOUDLESS) $(GO) test -count=1 -timeout 60m -v $(call marked,test-galera)

# The previous version is one from before the last migrations, until there is a release.
PREVIOUS = 4470667c

test-upgrade: build ## while users book: three replicas of the version PREVIOUS become ones of this version, and go back; their broker becomes a newer one
	@rm -rf var/previous && mkdir -p var/previous/source && git archive $(PREVIOUS) | tar -x -C var/previous/source
	@cd var/previous/source && CGO_ENABLED=0 $(GO) build -trimpath -o ../almanacd ./cmd/almanacd && rm -rf ../source
	@for release in $(RELEASES); do RELEASE=$$release LAB_PARTS=rabbitmq $(LAB) true; done
	@ALMANAC_TEST_PREVIOUS=$(CURDIR)/var/previous/almanacd ALMANAC_TEST_ROOTS=$(CURDIR)/tests/openstack/lab \
	  $(CLOUDLESS) $(GO) test -count=1 -timeout 60m -v $(call marked,test-upgrade)

test-answers: ## ten thousand drawn scenes, in which every fact of an answer is asked back through the API
	@CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout $(TIMEOUT) -v $(call marked,test-answers) -rapid.checks=3334

test-page: ## ten changes a second for half an hour, and the page in a browser holds no more memory; ALMANAC_PAGE_LASTS=5m for less
	@LAB_PROGRAMS='$(BROWSER)' LAB_PARTS=mariadb ALMANAC_TEST_LONG=1 CGO_ENABLED=0 $(LAB) $(GO) test -count=1 -timeout 60m -v $(call marked,test-page)

test-large: build ## starts at once, the fence, news and a killed replica on 256 hosts of a real Nova; prints the figures of docs/performance.md; COMPUTES=1000 for more hosts
	@ALMANAC_TEST_LARGE=1 COMPUTES=$(MANY) $(LAB) $(GO) test -count=1 -timeout $(TIMEOUT) -v $(call marked,test-large)

# The limit of time leaves an hour and a half for the start, the checks and what is left at the end.
HOURS ?= 4
MANY   = $(if $(COMPUTES),$(COMPUTES),256)

test-hours: build ## four hours of churn and kills beside a real Nova of 256 hosts; HOURS=1.5 and COMPUTES=64 for others; figures of each minute in var/hours
	@ALMANAC_TEST_HOURS=$(HOURS) COMPUTES=$(MANY) $(LAB) \
	  $(GO) test -count=1 -timeout $$(awk 'BEGIN { print int(60 * $(HOURS) + 90) }')m -v $(call marked,test-hours)

test-queues: build ## Nova with durable queues, then with quorum queues, in both modes
	@for kind in amqp_durable_queues rabbit_quorum_queue; do \
	  ALMANAC_TEST_QUEUES=1 NOVA_OPTIONS=oslo_messaging_rabbit.$$kind=true $(LAB) \
	    $(GO) test -count=1 -timeout 30m -v $(call marked,test-queues); \
	done

test-limits: build ## reservations where Nova enforces unified limits
	@LIMITS=unified ALMANAC_TEST_LIMITS=1 $(LAB) $(GO) test $(JSON) -count=1 -timeout 30m -v $(call marked,test-limits)

test-cloud: build ## every operation under nova-scheduler and under Almanac, moves, the plugin, DevStack
	@ALMANAC_TEST_LONG=1 $(LAB) $(GO) test $(JSON) -count=1 -timeout $(TIMEOUT) -p 1 -v $(call marked,test-cloud)

test-cells: build ## hints, moves, preemption, healing and removal in a cloud of two cells
	@ALMANAC_TEST_LONG=1 CELLS=2 $(LAB) $(GO) test $(JSON) -count=1 -timeout $(TIMEOUT) -v $(call marked,test-cells)

# The filters that Tempest's tests ask for, beside Nova's own.
TEMPEST = ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter,SameHostFilter,DifferentHostFilter

test-tempest: build ## Tempest's compute tests under nova-scheduler and under Almanac, with the same results
	@LAB_PROGRAMS=python3-tempest ALMANAC_TEST_TEMPEST=$(TEMPEST) NOVA_OPTIONS=filter_scheduler.enabled_filters=$(TEMPEST) $(LAB) \
	  $(GO) test $(JSON) -count=1 -timeout 60m -v $(call marked,test-tempest)

test-blazar: build test-blazar-bodies ## Blazar's bodies, clients and queries, the tests of its Tempest plugin, and its takeover, beside Epoxy and the newest release
	$(call beside,newest,test-blazar-tempest)
	$(call beside,$(RELEASES),test-blazar-clients test-blazar-gophercloud test-blazar-queries test-blazar-takeover)

# Debian 12 has no Blazar, and only unstable the plugin. These run beside the newest release unless RELEASE
# names another.
BLAZAR_LAB = RELEASE=$${RELEASE:-newest} $(LAB)

# The dashboard and the command line need Keystone alone. Pictures of the dashboard go to var/pictures.
test-blazar-clients: build ## Blazar's command line, and Horizon in a browser, against Almanac
	@LAB_PARTS='keystone horizon' LAB_PROGRAMS=chromium ALMANAC_TEST_HORIZON=1 ALMANAC_PICTURES=$(CURDIR)/var/pictures/$${RELEASE:-newest} \
	  $(BLAZAR_LAB) $(GO) test $(JSON) -count=1 -timeout 60m -v $(call marked,test-blazar-clients)

test-blazar-gophercloud: build ## gophercloud's own tests of reservations against Almanac
	@ALMANAC_TEST_LONG=1 $(BLAZAR_LAB) $(GO) test $(JSON) -count=1 -timeout 30m -v $(call marked,test-blazar-gophercloud)

test-blazar-queries: ## which hosts Blazar's queries select, by Blazar's code
	@LAB_PARTS=mariadb LAB_PROGRAMS='python3-blazar python3-pymysql' ALMANAC_TEST_BLAZAR=1 \
	  $(BLAZAR_LAB) $(GO) test $(JSON) -count=1 -timeout 30m -v $(call marked,test-blazar-queries)

test-blazar-bodies: ## a million wrong bodies to Blazar's API
	@CGO_ENABLED=0 $(GO) test $(JSON) -count=1 -timeout $(TIMEOUT) -v $(call marked,test-blazar-bodies) -rapid.checks=150000

test-blazar-takeover: build ## Almanac takes over a running Blazar with two hundred leases, and gives it back
	@LAB_PARTS=blazar ALMANAC_TEST_BLAZAR=1 $(BLAZAR_LAB) $(GO) test $(JSON) -count=1 -timeout 60m -v $(call marked,test-blazar-takeover)

# The filters that Blazar's reservations need, beside its own.
BLAZAR_FILTERS = ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter,AggregateInstanceExtraSpecsFilter,AggregateMultiTenancyIsolation
BLAZAR_OPTIONS = available_filters=nova.scheduler.filters.all_filters available_filters=blazarnova.scheduler.filters.blazar_filter.BlazarFilter \
  enabled_filters=$(BLAZAR_FILTERS),BlazarFilter

test-blazar-tempest: build ## the tests of Blazar's Tempest plugin against Blazar itself and against Almanac
	@COMPUTES=1 LAB_PARTS=blazar LAB_PROGRAMS=blazar-tempest-plugin NOVA_OPTIONS='$(addprefix filter_scheduler.,$(BLAZAR_OPTIONS))' \
	  ALMANAC_TEST_BLAZAR_FILTERS=$(BLAZAR_FILTERS) $(BLAZAR_LAB) $(GO) test $(JSON) -count=1 -timeout 60m -v $(call marked,test-blazar-tempest)

test-networks: build ## floating IPs that are reserved in a real Neutron
	@LAB_PARTS='mariadb keystone networks' ALMANAC_TEST_NETWORKS=1 $(LAB) $(GO) test $(JSON) -count=1 -timeout 30m -v $(call marked,test-networks)

test-energy: build ## hosts that Ironic switches, through a day of eight minutes; ALMANAC_ENERGY_DAY=1h makes it longer
	@ALMANAC_TEST_LONG=1 COMPUTES_PER_PROCESS=1 $(LAB) $(GO) test $(JSON) -count=1 -p 1 -timeout 120m -v $(call marked,test-energy)

# These packages ask real services of a release, or its code, beside tests/cloud.
SERVED = $(shell grep -rl 'labtest\.' --include=*_test.go filters weighers inventory pkg reservation | xargs dirname | sort -u | sed 's,^,./,')
RELEASES = epoxy newest

# beside runs targets beside each of some releases. It keeps in var/ran what go test -json prints, and
# tests/source/ran_test.go writes the tables of docs/releases.md from these files. Go's modules come first: a root of a
# release does not trust the certificates that a site adds.
RAN = var/ran
RAN_PACKAGES = python3-nova python3-ironic rabbitmq-server mariadb-server python3-oslo.messaging
RAN_SHOWN = sed -nu 's/.*"Output":" *\(--- [^"\\]*\|ok [^"\\]*\|FAIL[^"\\]*\|[a-z_]*_test\.go:[^"]*\)\\n"}$$/\1/p'
define beside
@$(GO) mod download; failed=; for release in $(1); do \
  mkdir -p $(RAN)/$$release; \
  for part in $(2); do \
    RELEASE=$$release JSON=-json $(MAKE) --no-print-directory $$part | tee $(RAN)/$$release/$$part.json | $(RAN_SHOWN) || { \
      failed=yes; echo "$$part failed beside $$release; $(RAN)/$$release/$$part.json has all that it printed" >&2; }; \
  done; \
done; $(MAKE) --no-print-directory ran; [ -z "$$failed" ]
endef

test-releases: build ## the tests of the cloud, Tempest and the oracles beside Epoxy and the newest release, and the table of what ran
	$(call beside,$(RELEASES),test-release test-tempest test-cloud test-energy)

ran: ## write the results of test-releases, test-services and test-blazar into the tables of docs/releases.md
	@ALMANAC_RAN=$(CURDIR)/$(RAN) $(GO) test -count=1 -run '^TestThePageOnReleasesHasWhatRan$$' ./tests/source

# The root of another release may not know the certificates with which this machine downloads.
test-release:
	@$(GO) mod download
	@$(LAB) make --no-print-directory -k test-release-packages test-release-cloud test-release-served

test-release-packages:
	@mkdir -p $(RAN)/$$RELEASE
	@dpkg-query -W -f '$${Package} $${Version}\n' $(RAN_PACKAGES) > $(RAN)/$$RELEASE/packages

test-release-cloud:
	@$(GO) test $(JSON) -vet=off -count=1 -parallel 4 -timeout $(TIMEOUT) ./tests/cloud

test-release-served:
	@$(GO) test $(JSON) -vet=off -count=1 -p 1 -timeout $(TIMEOUT) $(SERVED)

test-services: ## each release's RabbitMQ in all modes of queues, with TLS too, and its MariaDB and Galera
	$(call beside,zed $(RELEASES),test-release-services)

test-release-services:
	@LAB_PARTS='mariadb rabbitmq' LAB_PROGRAMS='python3-nova python3-oslo.messaging' ALMANAC_TEST_LONG=1 ALMANAC_TEST_GALERA=1 \
	  $(LAB) $(GO) test $(JSON) -count=1 -p 1 -timeout 60m ./pkg/oslo/... ./pkg/store

test-packages: ## as root: packages in clean roots of Debian 12 and 13 and Ubuntu 22.04 and 24.04, the image in a chroot; two builds with the same bytes
	@ALMANAC_TEST_PACKAGES=1 $(GO) test $(JSON) -count=1 -timeout $(TIMEOUT) -v $(call marked,test-packages)

test-chart: ## the Helm chart by Helm's own code, against Kubernetes's types and almanacd
	@cd packaging/helm && CGO_ENABLED=0 GOWORK=off $(GO) test $(JSON) -count=1 -timeout $(TIMEOUT) -v ./...

test-long: HOURS = 1.5
test-long: mutants test-galera test-upgrade test-answers test-page test-large test-hours test-cloud test-cells test-limits test-queues test-tempest test-energy test-blazar test-networks test-releases test-services test-packages test-chart test-site ## what takes longer than make test

# The papers' evaluations at full size; those on real logs where ALMANAC_DATA names their folder.
SIMULATE = bin/almanac simulate
REPRODUCED = docs/reproduction
DATA = $(ALMANAC_DATA)
LEASES = ./traces/blue/injected_leases/30days/work_20-dur_2h-size_2medium.lwf

reproduce: build ## the papers' evaluations into docs/reproduction: a quarter of an hour; with ALMANAC_DATA on real logs too
	@$(SIMULATE) deadline --out $(REPRODUCED)/deadline
	@$(SIMULATE) movable --out $(REPRODUCED)/movable
	@$(SIMULATE) energy --out $(REPRODUCED)/energy
	@$(SIMULATE) preemption --latency --out $(REPRODUCED)/preemption
	@$(SIMULATE) staging --out $(REPRODUCED)/staging
	@$(SIMULATE) packing --large 100 --parallel 100 --timings --out $(REPRODUCED)/packing
	@test -z "$(DATA)" || $(MAKE) --no-print-directory reproduce-logs
	@rm -f $(REPRODUCED)/*/*.png

.PHONY: reproduce-logs
reproduce-logs:
	@$(SIMULATE) energy --trace $(DATA)/pwa/KTH-SP2-1996-2.swf.gz --from 60 --days 28 --safety 0.25 --runs 3 --sweeps share --out $(REPRODUCED)/energy-kth
	@$(SIMULATE) energy --trace $(DATA)/grid5000/grid5000_reservation_jobs.log.gz --from 700 --days 14 --share 1 --runs 3 --sweeps share --out $(REPRODUCED)/energy-grid5000
	@$(SIMULATE) preemption --trace $(DATA)/azure --hosts 64 --warm-up 5 --runs 3 --out $(REPRODUCED)/preemption-azure
	@$(SIMULATE) replay --trace $(DATA)/pwa/KTH-SP2-1996-2.swf.gz --most-jobs 5000 --out $(REPRODUCED)/replay-kth
	@$(SIMULATE) tariff --trace $(DATA)/pwa/KTH-SP2-1996-2.swf.gz --most-jobs 5000 --out $(REPRODUCED)/tariff-kth
	@$(SIMULATE) replay --trace $(DATA)/grid5000/grid5000_reservation_jobs.log.gz --hosts 418 --settings $(REPRODUCED)/policies.yaml --out $(REPRODUCED)/replay-grid5000
	@mkdir -p var/traces && tar -xzf $(DATA)/haizea/haizea-lwf-traces.tar.gz -C var/traces --strip-components 5 $(LEASES)
	@$(SIMULATE) replay --trace $(DATA)/haizea/blue-30days.swf.gz --trace var/traces/$(notdir $(LEASES)) --procs-per-host 8 --hosts 144 \
	  --settings $(REPRODUCED)/policies.yaml --out $(REPRODUCED)/replay-blue

# Packages with a path whose cost is measured from 100 to 10,000 hosts. tests/source/growth_test.go draws the
# figure of docs/performance.md from what their benchmarks print, and fills the table there.
GROWING = $(shell grep -rl '^func BenchmarkGrowth' --include=*_test.go inventory pkg reservation | xargs dirname | sort -u | sed 's,^,./,')

growth: ## the cost of each hot path from 100 to 10,000 hosts: the figure and the table of docs/performance.md
	@mkdir -p var
	@$(GO) test -run '^$$' -bench '^BenchmarkGrowth$$' -benchtime 3s -timeout 40m $(GROWING) | tee var/growth
	@ALMANAC_GROWTH=$(CURDIR)/var/growth $(GO) test -count=1 -run '^TestThePageOnPerformanceHasTheGrowthOfCosts$$' ./tests/source

# The numbers of hosts of the clouds in which the whole way is measured, each with the number of
# calls: nova-scheduler takes seconds for a thousand hosts.
CLOUDS ?= 8:300 200:60 1000:25

bench-cloud: build ## a host for an instance from a real Nova, beside its nova-scheduler; CLOUDS="8:300 200:60" for others than three of 8, 200 and 1,000 hosts
	@for cloud in $(CLOUDS); do \
	  COMPUTES=$${cloud%:*} $(LAB) sh -c "\
	    $(GO) test -run '^$$' -bench Interpose -benchtime 500x -timeout 60m ./tests/bench && \
	    $(GO) test -run '^$$' -bench SelectDestinations -benchtime $${cloud#*:}x -timeout 120m ./tests/bench" || exit 1; \
	done

bench: build ## all rows of the figures, each with what it is held against
	@$(MAKE) --no-print-directory growth
	@$(GO) test -run '^$$' -bench . -skip Growth -timeout 40m ./reservation/calendar
	@$(GO) test -run '^$$' -bench 'Waits|RefusalForAnImage' -timeout 40m ./reservation/booking
	@$(GO) test -run '^$$' -bench 'Offers|Cheapest|Series' -benchtime 20x -timeout 40m ./reservation/planning
	@$(GO) test -run '^$$' -bench Together -benchtime 200x -timeout 40m ./reservation/planning
	@$(GO) test -run '^$$' -bench Plan -timeout 40m ./pkg/scheduler
	@$(GO) test -run '^$$' -bench Place -benchtime 40x ./pkg/dispatch
	@$(GO) test -run '^$$' -bench Board ./inventory
	@mkdir -p docs/figures
	@ALMANAC_FIGURES=$(CURDIR)/docs/figures $(GO) test -run '^$$' -bench Figure2 -benchtime 1x ./pkg/scheduler
	@$(GO) test -run '^$$' -bench PlanOf10000Nodes -benchtime 5x ./reservation/besteffort
	@$(GO) test -run '^$$' -bench MCB8 -benchtime 300x ./pkg/sim/papers/packing
	@GOGC=400 $(GO) test -run '^$$' -bench Reservations -benchtime 3x ./pkg/sim/papers/deadline
	@GOGC=400 $(GO) test -run '^$$' -bench Day -benchtime 3x ./pkg/sim/site
	@GOGC=400 $(GO) test -run '^$$' -bench Jobs -benchtime 2x ./pkg/sim/replay
	@$(GO) test -run '^$$' -bench Plan10000Hosts ./pkg/energy
	@$(GO) test -run '^$$' -bench ListLeases -benchtime 100x ./pkg/api
	@$(GO) test -run '^$$' -bench 'Calendar|Streams' -benchtime 40x ./pkg/api
	@LAB_PROGRAMS='$(BROWSER)' LAB_PARTS=mariadb $(LAB) $(GO) test -run '^$$' -bench CalendarPage -benchtime 5x ./tests/bench
	@LAB_PARTS=mariadb $(LAB) $(GO) test -run '^$$' -bench AnotherReplica -benchtime 50x ./tests/bench
	@LAB_PARTS=mariadb $(LAB) $(GO) test -run '^$$' -bench Leases -benchtime 50x ./pkg/store
	@LAB_PARTS=mariadb $(LAB) $(GO) test -run '^$$' -bench PostSeries -benchtime 20x ./tests/bench
	@$(GO) test -run '^$$' -bench NobodyIsInTheWay -benchtime 300x -timeout 40m ./tests/bench
	@$(CLOUDLESS) $(GO) test -run '^$$' -bench PostReservation -benchtime 2000x -timeout 40m ./tests/bench
	@$(CLOUDLESS) $(GO) test -run '^$$' -bench 'Start$$' -benchtime 5x -timeout 40m ./tests/bench
	@LAB_PARTS=mariadb $(LAB) $(GO) test -run '^$$' -bench Sizes -benchtime 1x -timeout 20m ./tests/bench
	@LAB_PROGRAMS='munge slurm-client slurmctld' LAB_PARTS=mariadb $(LAB) $(GO) test -run '^$$' -bench BesideSlurm -benchtime 4x ./tests/bench
	@$(MAKE) --no-print-directory bench-cloud
	@RELEASE=epoxy COMPUTES=1 LAB_PARTS=blazar $(LAB) $(GO) test -run '^$$' -bench BesideBlazar -benchtime 1x -timeout 60m ./tests/bench

pictures: build ## pictures of the page: all into var/pictures, four of them into docs/figures
	@mkdir -p var/pictures/page && rm -f var/pictures/page/*
	@ALMANAC_TEST_PICTURES=1 ALMANAC_PICTURES=$(CURDIR)/var/pictures/page $(GO) test -count=1 -timeout 20m -run PicturesOfThePage ./tests/browser

lab: ## bring an OpenStack up and print how to use it; COMPUTES=64 for more than 8 hosts, CELLS=2 for two cells, RELEASE=epoxy or newest for another release
	@tests/openstack/lab up
	@tests/openstack/lab env

lab-down: ## stop it and remove what it stored
	@tests/openstack/lab down --wipe

mutants: ## each change of docs/mutants.md is found by its test
	@ALMANAC_TEST_MUTANTS=1 CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout $(TIMEOUT) -v $(call marked,mutants)

fuzz: ## a minute for each fuzz target
	@$(GO) test -run '^$$' -fuzz FuzzParseFilter -fuzztime 1m ./inventory
	@$(GO) test -run '^$$' -fuzz FuzzStatements -fuzztime 1m ./pkg/config
	@$(GO) test -run '^$$' -fuzz FuzzRequestSpec -fuzztime 1m -fuzzminimizetime 1x ./pkg/nova/object
	@$(GO) test -run '^$$' -fuzz FuzzHints -fuzztime 1m ./pkg/nova/object
	@$(GO) test -run '^$$' -fuzz FuzzFrame -fuzztime 1m -fuzzminimizetime 1x ./pkg/nova/topic
	@for target in SWF GWF LWF OAR CSV Any; do $(GO) test -run '^$$' -fuzz "Fuzz$$target\$$" -fuzztime 1m -fuzzminimizetime 1x ./pkg/workload; done
	@for target in $$(grep -oh 'func Fuzz[A-Za-z]*' pkg/whatif/*_test.go | cut -c6-); do $(GO) test -run '^$$' -fuzz "$$target\$$" -fuzztime 1m -fuzzminimizetime 1x ./pkg/whatif; done
	@$(GO) test -run '^$$' -fuzz FuzzReadSettings -fuzztime 1m -fuzzminimizetime 1x ./pkg/sim/replay
	@$(GO) test -run '^$$' -fuzz FuzzRead -fuzztime 1m -fuzzminimizetime 1x ./reservation/tariff
	@$(GO) test -run '^$$' -fuzz FuzzParse -fuzztime 1m -fuzzminimizetime 1x ./reservation/recurrence

sample: ## renew the sample configuration
	@$(GO) run ./cmd/almanacd config sample > etc/almanac/almanac.conf.sample
	@$(GO) run ./cmd/almanac-power config sample > etc/almanac/almanac-power.conf.sample

clean: ## remove what was built; the database in var/ stays
	@rm -rf bin dist
