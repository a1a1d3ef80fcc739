/* SPDX-License-Identifier: MIT */
/* config_keys.h - the keys of the configuration, and their values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct config;
struct err;

enum key_kind {
	KEY_COUNT,
	KEY_BYTES,
	KEY_MS,
	KEY_S,
	KEY_NAMES,   /* of variables, with commas between: char ** */
	KEY_FOLDER,  /* char *, NULL: none */
	KEY_COMMAND, /* a program and its arguments: char **, NULL: none */
};

struct key {
	const char *section, *name;
	enum key_kind kind;
	int64_t standard, min, max;
	const char *text; /* the default of those that are no numbers */
	size_t offset;    /* of the member of struct config */
	const char *help;
};

#define CONFIG_MAX_KEYS 64
extern const struct key config_keys[];
extern const size_t config_n_keys;

/* Set a key's member to its default. */
void key_reset(const struct key *k, struct config *c);
/* Set it to what @text says; with @goes_on, add that (KEY_NAMES only). An error says what was
 * expected. @home: what ~/ stands for. */
int key_set(const struct key *k, struct config *c, const char *text, bool goes_on,
	    const char *home, struct err *err) __attribute__((warn_unused_result));
/* The value as a file takes it. */
void key_put(const struct key *k, const struct config *c, struct buf *out);
void key_release(const struct key *k, struct config *c);
