# knit-sandbox: one non-recursive makefile. Objects go below build/<variant>/.
#
#   make                 the program            make check        lint, unit, sim, integ, hostile
#   make demo            the judge examples     make SAN=asan     address + undefined sanitizers
#   make install         PREFIX=, DESTDIR=      make SAN=tsan     thread sanitizer (lanes)
#   V=1 shows commands, CC=clang another compiler, WERROR=1 warnings are errors, B= the folder.

VERSION := 0.1.0
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBEXECDIR ?= $(PREFIX)/libexec/knit-sandbox
INCLUDEDIR ?= $(PREFIX)/include
LIBDIR ?= $(PREFIX)/lib
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
DATADIR ?= $(PREFIX)/share/knit-sandbox
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/knit-sandbox

ifeq ($(origin CC),default)
CC := gcc
endif
SAN ?=
B ?= build/$(if $(SAN),$(SAN),$(notdir $(firstword $(CC))))
V ?= 0
Q := $(if $(filter 0,$(V)),@,)
say = $(if $(filter 0,$(V)),@printf '  %-6s %s\n' $(1) $(2),@:)
PKG_CONFIG ?= pkg-config
STRIP ?= strip

need := libseccomp jansson libcap
missing := $(strip $(foreach p,$(need),$(if $(shell $(PKG_CONFIG) --exists $(p) && echo y),,$(p))))
no_build_goals := clean dist format format-check check-lint uninstall help
ifneq ($(missing),)
ifneq ($(filter-out $(no_build_goals),$(or $(MAKECMDGOALS),all)),)
$(error missing libraries: $(missing) (pkg-config). Debian: apt-get install libseccomp-dev libjansson-dev libcap-dev; or run: sh setup.sh demo)
endif
endif

is_clang := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
warn := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wold-style-definition -Wpointer-arith -Wcast-qual -Wwrite-strings -Wformat=2 \
	-Wvla -Wundef -Wswitch-enum -Wimplicit-fallthrough -fno-common \
	$(if $(is_clang),,-Wno-format-truncation) \
	$(if $(WERROR),-Werror)
hard := -fstack-protector-strong -fstack-clash-protection -fPIE
san_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
san_tsan := -fsanitize=thread -fno-omit-frame-pointer
san := $(if $(SAN),$(or $(san_$(SAN)),$(error SAN is asan or tsan)))
opt := $(if $(SAN),-O1,-O2 -D_FORTIFY_SOURCE=2)

lib_cflags := $(shell $(PKG_CONFIG) --cflags $(need) 2>/dev/null)
lib_libs := $(shell $(PKG_CONFIG) --libs $(need) 2>/dev/null)

base := -std=gnu11 -D_GNU_SOURCE -I. -Iinclude -I$(B)/gen -g $(warn) -MMD -MP
cflags := $(base) $(opt) $(hard) $(san) $(lib_cflags) $(CFLAGS)
ldflags := -pie -Wl,-z,relro,-z,now,-z,noexecstack $(san) $(LDFLAGS)
# The program is static where all archives are here: 0.4 ms less of a start that takes a few,
# and nothing of the caller's environment (LD_PRELOAD, LD_LIBRARY_PATH) gets into it. STATIC=
# for shared libraries.
archives := rcrt1.o libc.a libseccomp.a libjansson.a libcap.a
found := $(filter /%,$(foreach f,$(archives),$(shell $(CC) -print-file-name=$(f) 2>/dev/null)))
STATIC ?= $(if $(SAN),,$(if $(word $(words $(archives)),$(found)),y))
prog_ldflags := $(if $(STATIC),$(patsubst -pie,-static-pie,$(ldflags)),$(ldflags))
# The stub runs before and around untrusted code: static, without libc (sandbox/stub/bare.c),
# never sanitized. It has no thread area, so no stack protector, which would read one.
stub_cflags := $(base) -O2 -U_FORTIFY_SOURCE -DKN_STUB -fno-pie -fno-stack-protector \
	-fno-asynchronous-unwind-tables -ffunction-sections -fdata-sections -Wconversion $(CFLAGS)
# At a fixed place where other programs have nothing: the filters know its code by its address
# (sandbox/filter.h).
stub_ldflags := -static -no-pie -nostdlib -Wl,-Ttext-segment=0x5b4e0000 -Wl,--gc-sections,-z,noexecstack,-z,norelro,-z,noseparate-code

# What a module's tasks run in: dynamic, of libc only; its exports are knit/task.h's.
module_cflags := $(base) -Iinclude -O2 -D_FORTIFY_SOURCE=2 $(hard) -fvisibility=hidden \
	-ffunction-sections -fdata-sections $(CFLAGS)
module_ldflags := -pie -rdynamic -Wl,--gc-sections,--as-needed,--hash-style=gnu,-O1 \
	-Wl,-z,relro,-z,now,-z,noexecstack $(LDFLAGS)

ipc_src := $(sort $(wildcard ipc/*.c))
sandbox_src := $(sort $(wildcard sandbox/*.c))
sup_src := $(sort $(wildcard supervisor/*.c supervisor/core/*.c))
cmd_src := $(sort $(wildcard cmd/*.c))
module_src := $(sort $(wildcard sandbox/module/*.c)) $(ipc_src)
stub_src := $(sort $(wildcard sandbox/stub/*.c)) $(ipc_src)
embed_src := $(sort $(wildcard lib/*.c))
lib_src := $(ipc_src) $(sandbox_src) $(sup_src) $(embed_src)

comma := ,
obj = $(patsubst %.c,$(B)/%.o,$(1))
stub_obj := $(patsubst %.c,$(B)/stub/%.o,$(stub_src))
module_obj := $(patsubst %.c,$(B)/module/%.o,$(module_src))

.PHONY: all
all: $(B)/knit-sandbox $(B)/libknit.so $(B)/gen/libknit.pc $(B)/gen/knit-task.pc

# -Wconversion where a silent narrowing would be a hole.
$(call obj,$(ipc_src) $(filter supervisor/core/%,$(sup_src))): extra := -Wconversion

$(B)/%.o: %.c $(B)/gen/version.h
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(cflags) $(extra) -c -o $@ $<

# Else the compiler makes a call of memcpy() out of memcpy()'s own loop.
$(B)/stub/sandbox/stub/bare_text.o: extra := -ffreestanding
$(B)/stub/%.o: %.c Makefile
	$(call say,CC-S,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(stub_cflags) $(extra) -c -o $@ $<

$(B)/gen/version.h: Makefile
	@mkdir -p $(@D)
	@printf '#define KN_VERSION "%s"\n#define KN_DATADIR "%s"\n' '$(VERSION)' '$(DATADIR)' > $@.tmp
	@cmp -s $@.tmp $@ 2>/dev/null && rm $@.tmp || mv $@.tmp $@

$(B)/knit-worker: $(stub_obj)
	$(call say,LD,$@)
	$(Q)$(CC) $(stub_ldflags) -o $@ $^ -lgcc

# The stub travels inside the program and is started from a sealed memfd: it has no name
# that a task could reach, and cannot differ from the supervisor that speaks to it.
# Each start copies it, so it goes without symbols.
define stub_image
$(Q)$(STRIP) -o $(B)/gen/$(notdir $1) $1
@printf '.section .rodata\n.global kn_stub_image\n.global kn_stub_image_end\n.balign 16\nkn_stub_image:\n.incbin "%s"\nkn_stub_image_end:\n.section .note.GNU-stack,"",%%progbits\n' '$(B)/gen/$(notdir $1)' > $(B)/gen/$2_image.s
$(Q)$(CC) -c -o $@ $(B)/gen/$2_image.s
endef
$(B)/gen/stub_image.o: $(B)/knit-worker
	@mkdir -p $(@D)
	$(call stub_image,$<,stub)

$(B)/module/%.o: %.c Makefile
	$(call say,CC-M,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(module_cflags) -c -o $@ $<
$(B)/knit-worker-module: $(module_obj)
	$(call say,LD,$@)
	$(Q)$(CC) $(module_ldflags) -o $@ $^
# Travels and starts as the stub does.
$(B)/gen/module_image.o: $(B)/knit-worker-module
	@mkdir -p $(@D)
	$(Q)$(STRIP) -o $(B)/gen/knit-worker-module $<
	@printf '.section .rodata\n.global kn_module_image\n.global kn_module_image_end\n.balign 16\nkn_module_image:\n.incbin "%s"\nkn_module_image_end:\n.section .note.GNU-stack,"",%%progbits\n' '$(B)/gen/knit-worker-module' > $(B)/gen/module_image.s
	$(Q)$(CC) -c -o $@ $(B)/gen/module_image.s

# The presets travel inside the program too: JSON files of policies/ as strings.
preset_json := $(sort $(wildcard policies/*.json))
$(B)/gen/presets.o: $(preset_json) Makefile
	@mkdir -p $(@D)
	@{ for f in $(preset_json); do n=$$(basename $$f .json | tr - _); \
	  printf '.section .rodata\n.global kn_preset_%s\n.global kn_preset_%s_end\nkn_preset_%s:\n.incbin "%s"\nkn_preset_%s_end:\n.byte 0\n' $$n $$n $$n $$f $$n; done; \
	  printf '.section .note.GNU-stack,"",%%progbits\n'; } > $(B)/gen/presets.s
	$(Q)$(CC) -c -o $@ $(B)/gen/presets.s

# What `bench` runs in and outside of sandboxes: no libc, and nothing that it needs.
$(B)/bench-task: cmd/bench/task.c sandbox/stub/sys.h
	$(call say,CC-S,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(stub_cflags) -Os -ffreestanding -static -nostdlib -Wl,--build-id=none \
	  -Wl,-z,noexecstack -s -o $@ $<
$(B)/gen/bench_task.o: $(B)/bench-task
	@mkdir -p $(@D)
	@printf '.section .rodata\n.global kn_bench_task_image\n.global kn_bench_task_image_end\n.balign 16\nkn_bench_task_image:\n.incbin "%s"\nkn_bench_task_image_end:\n.section .note.GNU-stack,"",%%progbits\n' '$(B)/bench-task' > $(B)/gen/bench_task.s
	$(Q)$(CC) -c -o $@ $(B)/gen/bench_task.s

gen_obj := $(B)/gen/stub_image.o $(B)/gen/module_image.o $(B)/gen/presets.o

$(B)/libknit.a: $(call obj,$(lib_src)) $(gen_obj)
	$(call say,AR,$@)
	@rm -f $@
	$(Q)ar rcs $@ $^

# What it calls, as a module.
$(B)/bench-module.so: cmd/bench/module.c include/knit/task.h
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -Iinclude -O2 $(warn) -shared -fPIC -Wl,--build-id=none -s -o $@ $<
$(B)/gen/bench_module.o: $(B)/bench-module.so
	@mkdir -p $(@D)
	@printf '.section .rodata\n.global kn_bench_module_image\n.global kn_bench_module_image_end\n.balign 16\nkn_bench_module_image:\n.incbin "%s"\nkn_bench_module_image_end:\n.section .note.GNU-stack,"",%%progbits\n' '$(B)/bench-module.so' > $(B)/gen/bench_module.s
	$(Q)$(CC) -c -o $@ $(B)/gen/bench_module.s

# For other programs: the same objects, to be put anywhere, and the public names only.
pic_cflags := $(filter-out -fPIE,$(cflags)) -fPIC -fvisibility=hidden
pic_obj := $(patsubst %.c,$(B)/pic/%.o,$(lib_src))
SOVERSION := 0
$(B)/pic/%.o: %.c $(B)/gen/version.h
	$(call say,CC-P,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(pic_cflags) -c -o $@ $<
$(B)/libknit.so.$(SOVERSION): $(pic_obj) $(gen_obj) lib/libknit.map
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -pie,$(ldflags)) -shared -Wl,-soname,$(@F) -Wl,--version-script=lib/libknit.map \
	  $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -o $@ $(filter %.o,$^) $(lib_libs) -pthread
$(B)/libknit.so: $(B)/libknit.so.$(SOVERSION)
	@ln -sf $(<F) $@
# The paths in a .pc file are those of this call of make, not of the one that built: written
# anew when they differ, and left alone (it may be another user's folder) when they do not.
below = $(patsubst $(PREFIX)/%,$${prefix}/%,$1)
pc_libknit = 'prefix=$(PREFIX)' 'libdir=$(call below,$(LIBDIR))' 'includedir=$(call below,$(INCLUDEDIR))' '' \
  'Name: libknit' 'Description: run untrusted commands in a pool of sandboxed workers' \
  'Version: $(VERSION)' 'Requires.private: $(need)' 'Libs: -L$${libdir} -lknit' \
  'Libs.private: -pthread' 'Cflags: -I$${includedir}'
# What a module's author needs: the header, and how a compiler finds it.
pc_knit-task = 'prefix=$(PREFIX)' 'includedir=$(call below,$(INCLUDEDIR))' '' 'Name: knit-task' \
  'Description: tasks in C for knit-sandbox (nothing to link)' 'Version: $(VERSION)' \
  'Cflags: -I$${includedir}' 'Libs:'
pc_files := $(B)/gen/knit-task.pc $(B)/gen/libknit.pc
.PHONY: always
always:
$(pc_files): always
	@mkdir -p $(@D)
	@printf '%s\n' $(pc_$(basename $(@F))) | cmp -s - $@ || printf '%s\n' $(pc_$(basename $(@F))) > $@

$(B)/knit-sandbox: $(call obj,$(cmd_src)) $(B)/gen/bench_task.o $(B)/gen/bench_module.o $(B)/libknit.a
	$(call say,LD,$@)
	$(Q)$(CC) $(prog_ldflags) -o $@ $^ $(lib_libs)

# ---- tests ----
unit_src := $(sort $(wildcard tests/unit/test_*.c))
unit_bin := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(unit_src))
testlib_src := $(sort $(wildcard tests/lib/*.c))
$(B)/tests/unit/%: $(B)/tests/unit/%.o $(call obj,$(testlib_src)) $(B)/libknit.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) -o $@ $^ $(lib_libs) -lcmocka -lpthread
.PRECIOUS: $(B)/tests/unit/%.o

# Modules that the tests load; crash, lack something or are no modules, some of them.
CXX ?= g++
have_cxx := $(shell command -v $(CXX) 2>/dev/null)
module_test_so := $(patsubst tests/module/%.c,$(B)/tests/module/%.so,$(sort $(wildcard tests/module/*.c))) \
	$(if $(have_cxx),$(patsubst tests/module/%.cc,$(B)/tests/module/%.so,$(sort $(wildcard tests/module/*.cc))))
$(B)/tests/module/%.so: tests/module/%.c include/knit/task.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -Iinclude -I. -O1 -g -Wall -Wextra -Wpedantic $(if $(WERROR),-Werror) -shared -fPIC -o $@ $< -pthread
# A module that opens pools itself: with the library inside it.
$(B)/tests/module/nested.so: tests/module/nested.c $(B)/libknit.so.$(SOVERSION)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -Iinclude -O1 -g -Wall -Wextra -Wpedantic $(if $(WERROR),-Werror) -shared -fPIC -o $@ $< \
	  $(if $(SAN),$(B)/libknit.so.$(SOVERSION),$(pic_obj) $(gen_obj) $(lib_libs)) -pthread
$(B)/tests/module/%.so: tests/module/%.cc include/knit/task.h
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++11 -Iinclude -I. -O1 -g -Wall -Wextra -Wpedantic $(if $(WERROR),-Werror) -shared -fPIC -o $@ $<
example_stamp := $(B)/examples/built
$(example_stamp): $(sort $(wildcard examples/module/*)) $(wildcard include/knit/*.h)
	$(call say,MAKE,examples/module)
	@mkdir -p $(@D)
	$(Q)$(MAKE) --no-print-directory -s -C examples/module OUT=$(abspath $(@D)) \
	  KNIT=$(abspath include) CC="$(CC)" && touch $@
$(filter $(B)/tests/unit/test_module%,$(unit_bin)): | $(module_test_so) $(example_stamp)

# What an embedder sees: the public headers and the shared library, nothing else of ours.
api_src := $(sort $(wildcard tests/lib_api/*.c))
api_bin := $(patsubst tests/lib_api/%.c,$(B)/tests/lib_api/%,$(filter tests/lib_api/test_%,$(api_src)))
$(B)/tests/lib_api/%: tests/lib_api/%.c $(B)/libknit.so tests/lib_api/api.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -Iinclude -O1 -g $(warn) -Wno-unused-function $(san) -MMD -MP \
	  -DKNIT_TEST_MODULE_DIR='"$(abspath $(B))/tests/module"' -o $@ $< \
	  -L$(B) -Wl,-rpath,$(abspath $(B)) -lknit -lcmocka -pthread

probe_src := $(sort $(wildcard tests/probes/*.c))
probe_bin := $(patsubst tests/probes/%.c,$(B)/probes/%,$(probe_src))
$(B)/probes/%: tests/probes/%.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -I. -O1 -g -Wall -Wextra -static -o $@ $< -lpthread

hostile_src := $(sort $(wildcard tests/hostile/*.c))
hostile_bin := $(patsubst tests/hostile/%.c,$(B)/hostile/%,$(hostile_src))
$(B)/hostile/%: tests/hostile/%.c tests/hostile/hostile.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O1 -g -Wall -Wextra -Wno-unused-function -o $@ $< -pthread

sim_bin := $(if $(wildcard tests/sim/*.c),$(B)/tests/sim/sim)
$(B)/tests/sim/sim: $(call obj,$(sort $(wildcard tests/sim/*.c)) $(testlib_src)) $(call obj,$(filter supervisor/core/%,$(sup_src)) ipc/err.c ipc/clock.c)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) -o $@ $^

stress_src := $(sort $(wildcard tests/stress/*.c))
stress_bin := $(patsubst tests/stress/%.c,$(B)/tests/stress/%,$(stress_src))
$(B)/tests/stress/%: $(B)/tests/stress/%.o $(B)/libknit.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) -o $@ $^ $(lib_libs) -lpthread
.PRECIOUS: $(B)/tests/stress/%.o

fault_bin := $(B)/fault/failcall $(B)/fault/stubborn $(B)/fault/knit-sandbox-evil $(B)/fault/knit-sandbox-drop
$(B)/fault/failcall: $(B)/tests/fault/failcall.o
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ldflags) -o $@ $^ $(lib_libs)
$(B)/fault/stubborn: $(B)/tests/fault/stubborn.o $(B)/libknit.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ldflags) -o $@ $^ $(lib_libs)

# The program around a stub that lies (tests/evil): the one archive member that holds the
# stub's image is another, all else is the same.
evil_src := $(sort $(wildcard tests/evil/*.c))
evil_obj := $(patsubst %.c,$(B)/stub/%.o,$(evil_src))
evil_wrap := kn_return_publish kn_job_result_encode kn_control_begin kn_bell_ring kn_control_ack_stop
$(B)/fault/knit-worker-evil: $(filter-out $(B)/stub/sandbox/stub/main.o,$(stub_obj)) $(evil_obj)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(stub_ldflags) $(patsubst %,-Wl$(comma)--wrap=%,$(evil_wrap)) -o $@ $^ -lgcc
$(B)/gen/evil_image.o: $(B)/fault/knit-worker-evil
	@mkdir -p $(@D)
	$(call stub_image,$<,evil)
$(B)/fault/knit-sandbox-evil: $(call obj,$(cmd_src)) $(B)/gen/bench_task.o $(B)/gen/bench_module.o $(B)/gen/evil_image.o $(B)/libknit.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(prog_ldflags) -o $@ $^ $(lib_libs)

# The program with one row of the policy table ignored, by KNIT_DROP (tests/keys/drop.c).
$(B)/fault/knit-sandbox-drop: $(call obj,$(cmd_src) tests/keys/drop.c) $(B)/gen/bench_task.o $(B)/gen/bench_module.o $(B)/libknit.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(prog_ldflags) -Wl,--wrap=kn_policy_check_doc -Wl,--wrap=kn_pmerge_add -o $@ $^ $(lib_libs)

# Each target of tests/fuzz replays its corpus here; `make fuzz F=job` searches with clang.
fuzz_src := $(sort $(wildcard tests/fuzz/*.c))
fuzz_bin := $(patsubst tests/fuzz/%.c,$(B)/tests/fuzz/%,$(fuzz_src))
$(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o $(B)/libknit.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) -o $@ $^ $(lib_libs)
.PRECIOUS: $(B)/tests/fuzz/%.o
.PHONY: check-fuzz fuzz
check-fuzz: $(fuzz_bin)
	@for t in $(notdir $(fuzz_bin)); do printf '== fuzz %s: ' $$t; \
	  $(B)/tests/fuzz/$$t tests/fuzz/corpus/$$t/* || exit 1; done
F ?= task_line
FUZZ_SECONDS ?= 60
fuzz: $(gen_obj)
	@mkdir -p $(B)/fuzz/$(F)
	clang -std=gnu11 -D_GNU_SOURCE -I. -Iinclude -I$(B)/gen -g -O1 -DKN_LIBFUZZER -fsanitize=fuzzer,address,undefined \
	  $(lib_cflags) -o $(B)/fuzz/$(F).bin tests/fuzz/$(F).c $(lib_src) $(gen_obj) $(lib_libs) -pthread
	$(B)/fuzz/$(F).bin -max_total_time=$(FUZZ_SECONDS) $(B)/fuzz/$(F) tests/fuzz/corpus/$(F)

.PHONY: tests check check-lint check-unit check-sim check-integ check-hostile check-fault stress
tests: all $(fuzz_bin) $(module_test_so) $(unit_bin) $(api_bin) $(probe_bin) $(hostile_bin) $(sim_bin) $(fault_bin)
check: check-lint check-unit check-api check-sim check-fuzz check-integ check-hostile

check-lint:
	@for t in tests/lint/*.sh; do echo "== $$t"; B=$(B) CC="$(CC)" sh $$t || exit 1; done
check-unit: $(unit_bin)
	@for t in $(unit_bin); do echo "== $$t"; $$t || exit 1; done
.PHONY: check-api
check-api: $(api_bin) $(module_test_so) all
	@for t in $(api_bin); do echo "== $$t"; $$t || exit 1; done
SIM_ARGS ?=
check-sim: $(sim_bin)
	@for t in $(sim_bin); do $$t $(SIM_ARGS) || exit 1; done
# Bugs planted in copies of the core, which the simulator must all catch.
.PHONY: check-mutants check-models check-lab check-fresh
check-mutants:
	B=$(B) CC="$(CC)" sh tests/sim/mutants.sh
# The shared-memory protocol in spin: lanes, claims, doorbell, stop; M=dekker takes one.
check-models:
	CC="$(CC)" sh tests/model/run.sh $(M)
# Other kernels under qemu, and a Debian on which nothing of ours was ever installed.
check-lab: tests
	B=$(B) CC="$(CC)" sh tests/lab/lab.sh
# Where systemd is init, and inside podman and docker.
.PHONY: check-lab-containers
check-lab-containers: tests
	B=$(B) CC="$(CC)" sh tests/lab/containers.sh
check-fresh:
	B=$(B) sh tests/lab/fresh.sh
check-integ: all $(probe_bin) $(module_test_so)
	B=$(abspath $(B)) prove --timer $(PROVE_ARGS) $(or $(T),$(sort $(wildcard tests/integ/*.t)))
check-hostile: all $(hostile_bin) $(probe_bin)
	B=$(abspath $(B)) prove --timer $(PROVE_ARGS) $(sort $(wildcard tests/hostile/*.t))
# Every system call failing once, the supervisor killed at every step, storms of deaths
# and signals, calls among them, a worker that lies, a supervisor that does not run for a
# while; T=inject, kill_supervisor, storm, calls, claims, lies or late takes one, A= tests of
# it.
# KNIT_FAULT=all: all of it.
check-fault: all $(fault_bin) $(module_test_so)
	@for t in $(or $(T),inject kill_supervisor storm calls claims lies late); do echo "== tests/fault/$$t.py"; \
	  B=$(abspath $(B)) $(or $(wildcard /usr/bin/python3),python3) tests/fault/$$t.py $(A) || exit 1; done
# Each row of the policy table in turn ignored: a test that claims the key must fail.
# EVERY=n takes each nth row.
.PHONY: check-keys
check-keys: all $(B)/fault/knit-sandbox-drop $(module_test_so)
	@B=$(abspath $(B)) $(or $(wildcard /usr/bin/python3),python3) tests/keys/keys.py --drop
stress: $(stress_bin)
	@for t in $(stress_bin); do echo "== $$t"; $$t || exit 1; done

# The probes under each policy and launcher, one table. P= policies.
.PHONY: probe-matrix
probe-matrix: all $(probe_bin) $(hostile_bin)
	@B=$(abspath $(B)) sh tests/probes/matrix.sh $(P)

.PHONY: demo examples
demo: all
	sh examples/judge/demo.sh $(B)/knit-sandbox
examples: demo $(example_stamp)
	$(MAKE) --no-print-directory -C examples/module run OUT=$(abspath $(B))/examples \
	  KNIT=$(abspath include) CC="$(CC)" KS=$(abspath $(B))/knit-sandbox

# ---- format, install ----
c_files = $(shell git ls-files '*.c' '*.h' ':!tests/hostile' ':!examples')
.PHONY: format format-check analyze install uninstall dist clean
format:
	clang-format -i $(c_files)
format-check:
	@clang-format --dry-run -Werror $(c_files)
analyze:
	cppcheck --quiet --enable=warning,portability --inline-suppr --error-exitcode=1 \
	  --suppress=missingIncludeSystem -I. $(lib_src) $(cmd_src)

public_h := $(sort $(wildcard include/knit/*.h))
example_files := $(sort $(wildcard examples/module/*))

man_pages := $(sort $(wildcard man/*.[1-8]))
install: all $(pc_files)
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(DATADIR)/policies $(DESTDIR)$(DATADIR)/schemas $(DESTDIR)$(DOCDIR)
	install -d $(DESTDIR)$(LIBDIR)
	install -m 755 $(B)/knit-sandbox $(DESTDIR)$(BINDIR)/knit-sandbox
	install -m 755 $(B)/libknit.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/
	ln -sf libknit.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libknit.so
	install -m 644 $(B)/libknit.a $(DESTDIR)$(LIBDIR)/
	install -m 644 $(preset_json) $(DESTDIR)$(DATADIR)/policies/
	$(if $(wildcard policies/schemas/*.json),install -m 644 $(wildcard policies/schemas/*.json) $(DESTDIR)$(DATADIR)/schemas/)
	install -m 644 README.md NEWS.md SECURITY.md LICENSE $(DESTDIR)$(DOCDIR)/
	install -d $(DESTDIR)$(INCLUDEDIR)/knit $(DESTDIR)$(PKGCONFIGDIR) $(DESTDIR)$(DOCDIR)/examples/module $(DESTDIR)$(DOCDIR)/examples/embed
	install -m 644 $(public_h) $(DESTDIR)$(INCLUDEDIR)/knit/
	install -m 644 $(pc_files) $(DESTDIR)$(PKGCONFIGDIR)/
	install -m 644 $(example_files) $(DESTDIR)$(DOCDIR)/examples/module/
	install -m 644 examples/embed/Makefile examples/embed/pool.c examples/embed/lines.c $(DESTDIR)$(DOCDIR)/examples/embed/
	for m in $(man_pages); do s=$${m##*.}; install -d $(DESTDIR)$(MANDIR)/man$$s && \
	  install -m 644 $$m $(DESTDIR)$(MANDIR)/man$$s/ || exit 1; done
uninstall:
	rm -f $(DESTDIR)$(BINDIR)/knit-sandbox $(DESTDIR)$(LIBDIR)/libknit.so $(DESTDIR)$(LIBDIR)/libknit.so.$(SOVERSION)
	rm -f $(DESTDIR)$(LIBDIR)/libknit.a
	rm -rf $(DESTDIR)$(DATADIR) $(DESTDIR)$(DOCDIR)
	rm -f $(addprefix $(DESTDIR)$(INCLUDEDIR)/knit/,$(notdir $(public_h))) \
	  $(addprefix $(DESTDIR)$(PKGCONFIGDIR)/,$(notdir $(pc_files)))
	-rmdir $(DESTDIR)$(INCLUDEDIR)/knit 2>/dev/null
	for m in $(notdir $(man_pages)); do rm -f $(DESTDIR)$(MANDIR)/man$${m##*.}/$$m; done
dist:
	git archive --prefix=knit-sandbox-$(VERSION)/ -o knit-sandbox-$(VERSION).tar.gz HEAD
clean:
	rm -rf build

# The laboratory keeps whole Debian trees below $(B); their *.d are not ours.
-include $(shell find $(B) -path $(B)/lab -prune -o -type f -name '*.d' -print 2>/dev/null)
