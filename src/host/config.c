/* SPDX-License-Identifier: MIT */
#include "host/config.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "core/oneline.h"
#include "host/config_file.h"
#include "host/config_keys.h"
#include "host/ident.h"

#define SYSTEM_FILE "/etc/errand/errand.conf"
#define USER_FILE "/.config/errand/errand.conf"
#define MAX_VARIABLE 64

/* A wait that lasts longer outlives the patience of clients, which is 60 s for many. */
#define CLIENT_PATIENCE_MS 50000

/* Where a key's value is from. */
struct origin {
	const char *file; /* NULL: a variable's, or nobody's */
	unsigned line;
	bool is_set;
};

struct reading {
	struct config *config;
	struct origin origins[CONFIG_MAX_KEYS]; /* as config_keys */
	const char *file;
	const char *home;
};

/* ---- one value ---- */

/* The variable's name; @ret has room for the longest. */
static void variable(const struct key *k, char ret[MAX_VARIABLE])
{
	(void)snprintf(ret, MAX_VARIABLE, "ERRAND_%s_%s", k->section, k->name);
	for (char *p = ret; *p; p++)
		*p = (char)toupper((unsigned char)*p);
}

/* @what is a name of the key as it is written there. A value may be any bytes. */
static int bad_value(const char *what, const char *is, const char *text, struct err *err)
{
	autobuf struct buf shown = BUF_INIT(KIB(1));
	autobuf struct buf clean = BUF_INIT(KIB(4));

	buf_add(&shown, text, strnlen(text, 60));
	(void)utf8_clean(&clean, buf_text(&shown), shown.len);
	buf_clear(&shown);
	oneline_put(&shown, buf_text(&clean), clean.len);
	return err_wrap(err, "%s%s%s", what, is, buf_text(&shown));
}

static size_t find_key(const char *section, const char *name)
{
	size_t i = 0;

	while (i < config_n_keys && (strcmp(config_keys[i].section, section) != 0 ||
				     strcmp(config_keys[i].name, name) != 0))
		i++;
	return i;
}

/* ---- files ---- */

static int unknown_key(const char *section, const char *name, struct err *err)
{
	autobuf struct buf known = BUF_INIT(KIB(1));

	for (size_t i = 0; i < config_n_keys; i++)
		if (strcmp(config_keys[i].section, section) == 0)
			buf_addf(&known, "%s%s", known.len ? ", " : "",
				 config_keys[i].name);
	if (known.len)
		return err_set(err, ERR_ARG, "no key '%.50s' in [%s]: expected one of %s",
			       name, section, buf_text(&known));
	for (size_t i = 0; i < config_n_keys; i++)
		if (i == 0 ||
		    strcmp(config_keys[i].section, config_keys[i - 1].section) != 0)
			buf_addf(&known, "%s%s", known.len ? ", " : "",
				 config_keys[i].section);
	return err_set(err, ERR_ARG, "no section [%.50s]: expected one of %s", section,
		       buf_text(&known));
}

static int on_line(void *ud, const char *section, const char *name, const char *value,
		   unsigned line, bool goes_on, struct err *err)
{
	struct reading *r = ud;
	size_t i = find_key(section, name);
	struct origin *o = &r->origins[i];

	if (i == config_n_keys)
		return unknown_key(section, name, err);
	if (goes_on && config_keys[i].kind != KEY_NAMES)
		return err_set(err, ERR_ARG,
			       "an indented line goes on with '%s', which has one value",
			       name);
	if (!goes_on && o->is_set && o->file == r->file)
		return err_set(err, ERR_ARG, "'%s' is set already, in line %u", name,
			       o->line);
	*o = (struct origin){r->file, line, true};
	if (key_set(&config_keys[i], r->config, value, goes_on, r->home, err) < 0)
		return bad_value(name, " = ", value, err);
	return 0;
}

/* ---- the environment ---- */

static const char *lookup(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

static int read_variable(struct reading *r, size_t i, char *const *env, struct err *err)
{
	const struct key *k = &config_keys[i];
	char name[MAX_VARIABLE];
	const char *text;

	variable(k, name);
	text = lookup(env, name);
	if (!text)
		return 0;
	r->origins[i] = (struct origin){.is_set = true};
	if (key_set(k, r->config, text, false, r->home, err) < 0)
		return bad_value(name, "=", text, err);
	return 0;
}

/* Of a section of ours, but no key of it: a slip of the pen that would change nothing. */
static int check_variable(const char *v, struct err *err)
{
	const char *section = "";
	char name[MAX_VARIABLE];

	for (size_t i = 0; i < config_n_keys; i++) {
		const struct key *k = &config_keys[i];

		variable(k, name);
		if (strncmp(v, name, strlen(name)) == 0 && v[strlen(name)] == '=')
			return 0;
		if (strncmp(v, name, strlen("ERRAND__") + strlen(k->section)) == 0)
			section = k->section;
	}
	if (!*section)
		return 0;
	(void)unknown_key(section, "", err);
	return bad_value("no key for the variable ", "", v, err);
}

static int read_environment(struct reading *r, char *const *env, struct err *err)
{
	int rc = 0;

	for (char *const *v = env; v && *v && rc == 0; v++)
		rc = check_variable(*v, err);
	for (size_t i = 0; i < config_n_keys && rc == 0; i++)
		rc = read_variable(r, i, env, err);
	return rc;
}

/* ---- what holds between keys ---- */

static void cut(int64_t *ms, int64_t max)
{
	if (*ms > max)
		*ms = max;
}

/* A default above the cap is a mistake, unless only the cap was given. */
static int settle_waits(const struct reading *r, struct err *err)
{
	size_t i = find_key("wait", "default_ms");
	const struct origin *o = &r->origins[i];
	struct config *c = r->config;

	if (c->wait_default_ms > c->wait_max_ms && o->is_set) {
		(void)err_set(err, ERR_ARG,
			      "wait.default_ms is %" PRId64
			      ": expected at most wait.max_ms, which is %" PRId64,
			      c->wait_default_ms, c->wait_max_ms);
		return o->file ? err_wrap(err, "%.100s:%u", o->file, o->line) : -ERR_ARG;
	}
	cut(&c->wait_max_ms, CLIENT_PATIENCE_MS);
	cut(&c->wait_default_ms, c->wait_max_ms);
	return 0;
}

/* ---- all of it ---- */

static int read_all(struct reading *r, const char *const *files, char *const *env,
		    struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < config_n_keys; i++)
		key_reset(&config_keys[i], r->config);
	for (size_t i = 0; files[i] && rc == 0; i++) {
		r->file = files[i];
		rc = config_file(files[i], i == 0, on_line, r, err);
	}
	if (rc == 0)
		rc = read_environment(r, env, err);
	return rc < 0 ? rc : settle_waits(r, err);
}

int config_read_from(struct config *ret, const char *const *files, char *const *env,
		     struct err *err)
{
	autofree char *home = ident_home(env);
	struct config c = {0};
	struct reading r = {.config = &c, .home = home};
	int rc = read_all(&r, files, env, err);

	if (rc < 0)
		config_release(&c);
	else
		*ret = c;
	return rc;
}

static char *user_file(char *const *env)
{
	autofree char *home = ident_home(env);
	struct buf path = BUF_INIT(MAX_SPEC);

	buf_addf(&path, "%s%s", home, USER_FILE);
	return buf_take(&path, NULL);
}

int config_read(struct config *ret, char *const *env, struct err *err)
{
	autofree char *user = user_file(env);
	const char *files[] = {SYSTEM_FILE, user, NULL};

	return config_read_from(ret, files, env, err);
}

static void describe(const struct reading *r, size_t i, struct buf *out)
{
	const struct key *k = &config_keys[i];
	const struct origin *o = &r->origins[i];
	autobuf struct buf value = BUF_INIT(KIB(64));
	char name[MAX_VARIABLE];

	if (i == 0 || strcmp(k->section, k[-1].section) != 0)
		buf_addf(out, "%s[%s]\n", i == 0 ? "" : "\n", k->section);
	variable(k, name);
	key_put(k, r->config, &value);
	buf_addf(out, "# %s\n# ", k->help);
	if (!o->is_set)
		buf_adds(out, "the default");
	else if (o->file)
		buf_addf(out, "from %s, line %u", o->file, o->line);
	else
		buf_addf(out, "from %s", name);
	buf_addf(out, "\n%s = %s\n", k->name, buf_text(&value));
}

int config_describe(char *const *env, struct buf *out, struct err *err)
{
	autofree char *user = user_file(env), *home = ident_home(env);
	const char *files[] = {SYSTEM_FILE, user, NULL};
	struct config c = {0};
	struct reading r = {.config = &c, .home = home};
	int rc = read_all(&r, files, env, err);

	for (size_t i = 0; i < config_n_keys && rc == 0; i++)
		describe(&r, i, out);
	config_release(&c);
	return rc;
}

void config_release(struct config *c)
{
	for (size_t i = 0; i < config_n_keys; i++)
		key_release(&config_keys[i], c);
}
