# The targets a user types; Meson and ninja do the work.
BUILD ?= build
PREFIX ?= /usr/local
MESON_SETUP ?=

.PHONY: all demo test bench compare lint fuzz install clean bootstrap

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

bootstrap:
	@scripts/bootstrap

# lib, whatever the machine's own way: there pkg-config and the loader look on all of them.
$(BUILD)/build.ninja: | bootstrap
	@meson setup --prefix '$(PREFIX)' --libdir lib $(if $(CI),--werror) $(MESON_SETUP) $(BUILD)

# Without the tests: whoever looks for the first time need not wait for them.
demo: $(BUILD)/build.ninja
	@ninja -C $(BUILD) errand errand-shim
	@python3 scripts/demo $(BUILD)

test: all
	@python3 tools/run-tests $(BUILD)

bench: all
	@python3 bench/run $(BUILD)

# Beside task-spooler and desktop-commander, where they are installed.
compare: all
	@python3 bench/compare $(BUILD) >docs/compare.new && mv docs/compare.new docs/compare.md

lint:
	@scripts/bootstrap --dev
	@tools/lint

# FUZZ_SECONDS=60 make fuzz
fuzz:
	@scripts/bootstrap --dev
	@tools/fuzz

# The build folder may have been made with another prefix. As root: the loader learns of the
# library, and the log is left to whoever built.
install: all
	@meson configure $(BUILD) --prefix '$(PREFIX)' && ninja -C $(BUILD) --quiet
	@meson install -C $(BUILD) --no-rebuild
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig
	@[ -z "$$SUDO_UID" ] || chown -R "$$SUDO_UID" $(BUILD)/meson-logs

clean:
	rm -rf $(BUILD) build-asan build-lint-gcc build-lint-clang build-fuzz build-tsan
