/* SPDX-License-Identifier: MIT */
/* config_keys.c - the table of keys; numbers with units, names, folders. */
#include "host/config_keys.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "host/config.h"

#define DAY_MS INT64_C(86400000)
#define MIB_64 (INT64_C(1) << 20)
#define TIB_64 (INT64_C(1) << 40)
#define MAX_NAMES 1000
#define MAX_WORDS 64

/* What agents pay with is none of a command's business. */
#define CREDENTIALS                                                                        \
	"ANTHROPIC_API_KEY,ANTHROPIC_AUTH_TOKEN,CLAUDE_CODE_OAUTH_TOKEN,OPENAI_API_KEY,"   \
	"CODEX_API_KEY,GEMINI_API_KEY,GOOGLE_API_KEY,GOOGLE_GENERATIVE_AI_API_KEY,"        \
	"DEEPSEEK_API_KEY,MISTRAL_API_KEY,XAI_API_KEY,GROQ_API_KEY,OPENROUTER_API_KEY,"    \
	"CURSOR_API_KEY"

#define AT(member) offsetof(struct config, member)

/* clang-format off */
const struct key config_keys[] = {
	{"state", "folder", KEY_FOLDER, 0, 0, 0, "", AT(state_folder),
	 "Where tasks and their output are kept; if nothing is said, $HOME/.local/state/errand."},
	{"limits", "live_tasks", KEY_COUNT, 32, 0, 1000000, NULL, AT(live_tasks),
	 "Tasks of one owner that may run at once; 0 for no limit."},
	{"limits", "finished_tasks", KEY_COUNT, 100, 1, 1000000, NULL, AT(finished_tasks),
	 "Ended tasks of one owner, whose end it was told, that are kept."},
	{"limits", "kept_bytes", KEY_BYTES, 8192 * MIB_64, 0, TIB_64, NULL, AT(kept_bytes),
	 "Bytes of output of all ended tasks whose owners were told of the end; 0 for no limit."},
	{"limits", "owner_kept_bytes", KEY_BYTES, 2048 * MIB_64, 0, TIB_64, NULL,
	 AT(owner_kept_bytes), "The same for one owner."},
	{"limits", "task_memory_bytes", KEY_BYTES, 0, 0, TIB_64, NULL, AT(task_memory_bytes),
	 "Memory of one task, of all its processes together; 0 for no limit."},
	{"limits", "task_processes", KEY_COUNT, 0, 0, 1000000, NULL, AT(task_processes),
	 "Processes and threads of one task that may be there at once; 0 for no limit."},
	{"limits", "task_cpu_percent", KEY_COUNT, 0, 0, 100000, NULL, AT(task_cpu_percent),
	 "CPU time of one task in percent of one CPU; 0 for no limit."},
	{"bash", "output_limit", KEY_BYTES, 10000, 0, TIB_64, NULL, AT(output_limit),
	 "Bytes of one reply; 0 for no limit."},
	{"bash", "foreground_ms", KEY_MS, 45000, 1, DAY_MS, NULL, AT(foreground_ms),
	 "How long a foreground command may run before it becomes a background task."},
	{"bash", "grace_ms", KEY_MS, 3000, 0, DAY_MS, NULL, AT(grace_ms),
	 "Time between SIGTERM and SIGKILL."},
	{"bash", "log_head", KEY_BYTES, 16 * MIB_64, 0, TIB_64, NULL, AT(log_head),
	 "Bytes that are kept of the front of a task's log."},
	{"bash", "log_tail", KEY_BYTES, 48 * MIB_64, 0, TIB_64, NULL, AT(log_tail),
	 "Bytes that are kept of the end of a task's log."},
	{"bash", "withheld_env", KEY_NAMES, 0, 0, 0, CREDENTIALS, AT(withheld),
	 "Names, with commas between, of variables that a task does not get."},
	{"sessions", "grace_s", KEY_S, 60, 0, INT32_MAX, NULL, AT(grace_s),
	 "How long tasks of a client without a session's name live on without it; 0 for ever."},
	{"sessions", "keep_for_s", KEY_S, 604800, 0, INT32_MAX, NULL, AT(keep_for_s),
	 "How long a named session is kept without a client and a live task; 0 for ever."},
	{"history", "keep_for_s", KEY_S, 2592000, 0, INT32_MAX, NULL, AT(history_keep_s),
	 "How long it is known of a task that it was, after it was dropped; 0 for ever."},
	{"history", "tasks", KEY_COUNT, 10000, 0, 1000000, NULL, AT(history_tasks),
	 "Tasks that are known of after they were dropped; 0 for no limit."},
	{"daemon", "idle_s", KEY_S, 600, 0, INT32_MAX, NULL, AT(idle_s),
	 "Time without a client and a live task after which the daemon goes; 0 for never."},
	{"daemon", "contained_clients", KEY_COUNT, 0, 0, 1, NULL, AT(contained_clients),
	 "1 lets in clients of other user or pid namespaces."},
	{"wait", "default_ms", KEY_MS, 30000, 1, INT32_MAX, NULL, AT(wait_default_ms),
	 "How long a wait without timeout_ms lasts."},
	{"wait", "max_ms", KEY_MS, 600000, 1, INT32_MAX, NULL, AT(wait_max_ms),
	 "The longest wait; more than 50000 counts as 50000."},
	{"policy", "command", KEY_COMMAND, 0, 0, 0, "", AT(policy),
	 "A program that is asked before each tool call."},
	{"policy", "timeout_ms", KEY_MS, 10000, 1, 600000, NULL, AT(policy_timeout_ms),
	 "How long it may take to answer."},
};
/* clang-format on */
const size_t config_n_keys = sizeof(config_keys) / sizeof(config_keys[0]);
_Static_assert(sizeof(config_keys) / sizeof(config_keys[0]) < CONFIG_MAX_KEYS, "more room");

static void *member(const struct key *k, struct config *c)
{
	return (char *)c + k->offset;
}

/* ---- numbers ---- */

struct unit {
	const char *name;
	int64_t size;
};

static const struct unit sizes[] = {{"B", 1},
				    {"KiB", INT64_C(1) << 10},
				    {"MiB", INT64_C(1) << 20},
				    {"GiB", INT64_C(1) << 30},
				    {"TiB", INT64_C(1) << 40},
				    {NULL, 0}};
/* In milliseconds. */
static const struct unit times[] = {{"ms", 1},      {"s", 1000},   {"min", 60000},
				    {"h", 3600000}, {"d", DAY_MS}, {NULL, 0}};
static const struct unit none[] = {{NULL, 0}};

/* How each kind of number is written. */
static const struct number {
	const struct unit *units;
	int64_t own; /* what a number without a unit counts, in the table's smallest */
	const char *expected, *more;
} numbers[] = {
	[KEY_COUNT] = {none, 1, "a whole number", ""},
	[KEY_BYTES] = {sizes, 1, "a number of bytes",
		       ", or with a unit (B, KiB, MiB, GiB, TiB)"},
	[KEY_MS] = {times, 1, "a number of milliseconds",
		    ", or with a unit (ms, s, min, h, d)"},
	[KEY_S] = {times, 1000, "a number of seconds",
		   ", or with a unit (ms, s, min, h, d)"},
};

static bool unit_size(const struct number *n, const char *name, int64_t *ret)
{
	*ret = n->own;
	if (!*name)
		return true;
	for (const struct unit *u = n->units; u->name; u++)
		if (strcmp(u->name, name) == 0) {
			*ret = u->size;
			return true;
		}
	return false;
}

static bool parse(const struct number *n, const char *text, int64_t *ret)
{
	int64_t size;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	while (*end == ' ')
		end++;
	if (errno != 0 || !unit_size(n, end, &size) ||
	    __builtin_mul_overflow(*ret, size, ret) || *ret % n->own != 0)
		return false;
	*ret /= n->own;
	return true;
}

static int set_number(const struct key *k, int64_t *ret, const char *text, struct err *err)
{
	const struct number *n = &numbers[k->kind];
	int64_t value;

	if (!parse(n, text, &value) || value < k->min || value > k->max)
		return err_set(err, ERR_ARG,
			       "expected %s from %" PRId64 " to %" PRId64 "%s", n->expected,
			       k->min, k->max, n->more);
	*ret = value;
	return 0;
}

/* ---- names of variables ---- */

static void free_texts(char ***names)
{
	for (char **p = *names; p && *p; p++)
		mem_free(NULL, *p);
	mem_free(NULL, *names);
	*names = NULL;
}

static size_t count_texts(char *const *names)
{
	size_t n = 0;

	while (names && names[n])
		n++;
	return n;
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

static int add_names(char **names, const char *list, struct err *err)
{
	size_t n = count_texts(names);

	while (*list) {
		size_t len = strcspn(list, ","), next = len + (list[len] == ',');

		while (len > 0 && isblank((unsigned char)list[len - 1]))
			len--;
		if (!is_name(list, len) || n == MAX_NAMES)
			return err_set(err, ERR_ARG,
				       "expected at most %d names of variables with commas "
				       "between",
				       MAX_NAMES);
		names[n++] = mem_dup(NULL, list, len);
		list += next;
		list += strspn(list, " \t");
	}
	return 0;
}

static int set_names(char ***ret, const char *list, bool goes_on, struct err *err)
{
	char **names = mem_new(NULL, (MAX_NAMES + 1) * sizeof(*names));
	int rc;

	if (goes_on && *ret) {
		memcpy(names, *ret, count_texts(*ret) * sizeof(*names));
		mem_free(NULL, *ret);
	} else {
		free_texts(ret);
	}
	rc = add_names(names, list, err);
	*ret = names;
	return rc;
}

/* ---- paths ---- */

/* NULL: it is none that says where. */
static char *absolute(const char *text, const char *home, struct err *err)
{
	struct buf path = BUF_INIT(PATH_MAX);

	if (*text != '/' && strncmp(text, "~/", 2) != 0) {
		(void)err_set(err, ERR_ARG,
			      "expected an absolute path, or one that begins with ~/");
		return NULL;
	}
	if (*text == '~')
		buf_adds(&path, home);
	buf_adds(&path, *text == '~' ? text + 1 : text);
	if (!buf_error(&path))
		return buf_take(&path, NULL);
	buf_release(&path);
	(void)err_set(err, ERR_ARG, "expected a path of at most %d bytes", PATH_MAX - 1);
	return NULL;
}

static int set_folder(char **ret, const char *text, const char *home, struct err *err)
{
	mem_free(NULL, *ret);
	*ret = *text ? absolute(text, home, err) : NULL;
	return *text && !*ret ? -ERR_ARG : 0;
}

/* Words with blanks between; the first is a path. */
static int set_command(char ***ret, const char *text, const char *home, struct err *err)
{
	size_t n = 0, len;
	char **words, *path;

	free_texts(ret);
	text += strspn(text, " \t");
	if (!*text)
		return 0;
	words = *ret = mem_new(NULL, (MAX_WORDS + 1) * sizeof(*words));
	for (; *text && n < MAX_WORDS; text += strspn(text, " \t")) {
		len = strcspn(text, " \t");
		words[n++] = mem_dup(NULL, text, len);
		text += len;
	}
	if (*text)
		return err_set(err, ERR_ARG, "expected at most %d words", MAX_WORDS);
	path = absolute(words[0], home, err);
	if (!path)
		return -ERR_ARG;
	mem_free(NULL, words[0]);
	words[0] = path;
	return 0;
}

/* ---- all kinds ---- */

int key_set(const struct key *k, struct config *c, const char *text, bool goes_on,
	    const char *home, struct err *err)
{
	switch (k->kind) {
	case KEY_NAMES:
		return set_names(member(k, c), text, goes_on, err);
	case KEY_FOLDER:
		return set_folder(member(k, c), text, home, err);
	case KEY_COMMAND:
		return set_command(member(k, c), text, home, err);
	case KEY_COUNT:
	case KEY_BYTES:
	case KEY_MS:
	case KEY_S:
		break;
	}
	return set_number(k, member(k, c), text, err);
}

void key_reset(const struct key *k, struct config *c)
{
	if (!k->text)
		*(int64_t *)member(k, c) = k->standard;
	else if (key_set(k, c, k->text, false, "", NULL) < 0)
		abort(); /* the table is wrong */
}

static void put_texts(char *const *texts, const char *between, struct buf *out)
{
	for (char *const *p = texts; p && *p; p++)
		buf_addf(out, "%s%s", p == texts ? "" : between, *p);
}

void key_put(const struct key *k, const struct config *c, struct buf *out)
{
	const void *value = (const char *)c + k->offset;

	switch (k->kind) {
	case KEY_NAMES:
		put_texts(*(char **const *)value, ",\n    ", out);
		return;
	case KEY_COMMAND:
		put_texts(*(char **const *)value, " ", out);
		return;
	case KEY_FOLDER:
		buf_adds(out, *(char *const *)value ? *(char *const *)value : "");
		return;
	case KEY_COUNT:
	case KEY_BYTES:
	case KEY_MS:
	case KEY_S:
		break;
	}
	buf_addf(out, "%" PRId64, *(const int64_t *)value);
}

void key_release(const struct key *k, struct config *c)
{
	if (k->kind == KEY_NAMES || k->kind == KEY_COMMAND) {
		free_texts(member(k, c));
	} else if (k->kind == KEY_FOLDER) {
		mem_free(NULL, *(char **)member(k, c));
		*(char **)member(k, c) = NULL;
	}
}
