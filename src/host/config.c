/* SPDX-License-Identifier: MIT */
#include "host/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"

#define DAY_MS INT64_C(86400000)
#define TIB (INT64_C(1) << 40)
#define MAX_NAMES 1000

struct key {
	const char *section, *name;
	int64_t standard, min, max;
	size_t offset;
};

#define KEY(section, name, standard, min, max)                                             \
	{                                                                                  \
#section, #name, standard, min, max, offsetof(struct config, name)         \
	}
#define KEY_AS(section, name, standard, min, max, member)                                  \
	{                                                                                  \
#section, #name, standard, min, max, offsetof(struct config, member)       \
	}

static const struct key keys[] = {
	KEY(limits, live_tasks, 32, 0, 1000000),
	KEY(limits, finished_tasks, 100, 1, 1000000),
	KEY(bash, output_limit, 10000, 0, TIB),
	KEY(bash, foreground_ms, 45000, 1, DAY_MS),
	KEY(bash, grace_ms, 3000, 0, DAY_MS),
	KEY(bash, log_head, INT64_C(16) << 20, 0, TIB),
	KEY(bash, log_tail, INT64_C(48) << 20, 0, TIB),
	KEY(sessions, grace_s, 60, 0, INT32_MAX),
	KEY(sessions, keep_for_s, 604800, 0, INT32_MAX),
	KEY(daemon, idle_s, 600, 0, INT32_MAX),
	KEY(daemon, contained_clients, 0, 0, 1),
	KEY_AS(wait, default_ms, 30000, 1, INT32_MAX, wait_default_ms),
	KEY_AS(wait, max_ms, 600000, 1, INT32_MAX, wait_max_ms),
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

/* A wait that lasts longer outlives the patience of clients, which is 60 s for many. */
#define CLIENT_PATIENCE_MS 50000

/* What agents pay with is none of a command's business. */
static const char withheld_names[] =
	"ANTHROPIC_API_KEY,ANTHROPIC_AUTH_TOKEN,CLAUDE_CODE_OAUTH_TOKEN,OPENAI_API_KEY,"
	"CODEX_API_KEY,GEMINI_API_KEY,GOOGLE_API_KEY,GOOGLE_GENERATIVE_AI_API_KEY,"
	"DEEPSEEK_API_KEY,MISTRAL_API_KEY,XAI_API_KEY,GROQ_API_KEY,OPENROUTER_API_KEY,"
	"CURSOR_API_KEY";

/* The variable's name; @ret has room for the longest. */
static void variable(const struct key *k, char *ret, size_t size)
{
	(void)snprintf(ret, size, "ERRAND_%s_%s", k->section, k->name);
	for (char *p = ret; *p; p++)
		*p = (char)toupper((unsigned char)*p);
}

static const char *lookup(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

static bool parse(const char *text, int64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return errno == 0 && *end == 0;
}

static int read_key(struct config *c, const struct key *k, char *const *env,
		    bool *ret_given, struct err *err)
{
	int64_t *member = (int64_t *)(void *)((char *)c + k->offset);
	char name[64];
	const char *text;

	variable(k, name, sizeof(name));
	text = lookup(env, name);
	*ret_given = text != NULL;
	*member = k->standard;
	if (!text)
		return 0;
	if (!parse(text, member) || *member < k->min || *member > k->max)
		return err_set(err, ERR_ARG,
			       "%s=%.60s: expected a whole number from %" PRId64
			       " to %" PRId64,
			       name, text, k->min, k->max);
	return 0;
}

static bool is_name(const char *p, size_t len)
{
	if (len == 0 || isdigit((unsigned char)*p))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)p[i]) && p[i] != '_')
			return false;
	return true;
}

static int read_withheld(struct config *c, char *const *env, struct err *err)
{
	const char *list = lookup(env, "ERRAND_BASH_WITHHELD_ENV");
	size_t n = 0;

	if (!list)
		list = withheld_names;
	c->withheld = mem_new(NULL, (MAX_NAMES + 1) * sizeof(*c->withheld));
	while (*list) {
		size_t len = strcspn(list, ",");

		if (!is_name(list, len) || n == MAX_NAMES)
			return err_set(
				err, ERR_ARG,
				"ERRAND_BASH_WITHHELD_ENV: expected at most %d names of "
				"variables with commas between, got '%.*s'",
				MAX_NAMES, (int)(len < 60 ? len : 60), list);
		c->withheld[n++] = mem_dup(NULL, list, len);
		list += len + (list[len] == ',');
	}
	return 0;
}

static void cut(int64_t *ms, int64_t max)
{
	if (*ms > max)
		*ms = max;
}

/* A default above the cap is a mistake, unless only the cap was given. */
static int settle_waits(struct config *c, bool default_was_given, struct err *err)
{
	if (c->wait_default_ms > c->wait_max_ms && default_was_given)
		return err_set(err, ERR_ARG,
			       "ERRAND_WAIT_DEFAULT_MS=%" PRId64
			       ": expected at most ERRAND_WAIT_MAX_MS, which is %" PRId64,
			       c->wait_default_ms, c->wait_max_ms);
	cut(&c->wait_max_ms, CLIENT_PATIENCE_MS);
	cut(&c->wait_default_ms, c->wait_max_ms);
	return 0;
}

int config_read(struct config *ret, char *const *env, struct err *err)
{
	struct config c = {0};
	bool was_given = false, default_was_given = false;
	int rc = 0;

	for (size_t i = 0; i < N_KEYS && rc == 0; i++) {
		rc = read_key(&c, &keys[i], env, &was_given, err);
		if (keys[i].offset == offsetof(struct config, wait_default_ms))
			default_was_given = was_given;
	}
	if (rc == 0)
		rc = settle_waits(&c, default_was_given, err);
	if (rc == 0)
		rc = read_withheld(&c, env, err);
	if (rc < 0) {
		config_release(&c);
		return rc;
	}
	*ret = c;
	return 0;
}

void config_release(struct config *c)
{
	for (char **p = c->withheld; p && *p; p++)
		mem_free(NULL, *p);
	mem_free(NULL, c->withheld);
	c->withheld = NULL;
}
