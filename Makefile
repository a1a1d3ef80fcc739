# The targets a user types; Meson and ninja do the work.
BUILD ?= build
PREFIX ?= /usr/local
MESON_SETUP ?=

.PHONY: all demo test bench lint fuzz install clean bootstrap

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

bootstrap:
	@scripts/bootstrap

$(BUILD)/build.ninja: | bootstrap
	@meson setup --prefix '$(PREFIX)' $(if $(CI),--werror) $(MESON_SETUP) $(BUILD)

demo: all
	@python3 scripts/demo $(BUILD)

test: all
	@python3 tools/run-tests $(BUILD)

bench: all
	@python3 bench/run $(BUILD)

lint:
	@scripts/bootstrap --dev
	@tools/lint

# FUZZ_SECONDS=60 make fuzz
fuzz:
	@scripts/bootstrap --dev
	@tools/fuzz

install: all
	@meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf $(BUILD) build-asan build-lint-gcc build-lint-clang build-fuzz
