/* SPDX-License-Identifier: MIT */
/*
 * server.c - what every client of a host sees alike: the tools, the instructions, a name.
 *
 * Both texts are made once: a client's prompt cache lives on their never changing.
 */
#include "base/err.h"
#include "base/utf8.h"
#include "mcp/internal.h"

/* Clients cut instructions: at 4096 characters, at 2 KiB. Ours stay well below. */
#define MAX_INSTRUCTIONS 1000

static const char ids_are_ours[] =
	"Task ids such as bash-1 are this server's own: no other tool or server knows them.";

struct annotation {
	const char *tool;
	const char *hints;
};

/*
 * What clients may assume about a call. task_output is no read-only tool: it consumes what
 * it shows. bash may do anything.
 */
static const struct annotation annotations[] = {
	{"bash", "\"readOnlyHint\":false,\"destructiveHint\":true,\"idempotentHint\":false,"
		 "\"openWorldHint\":true"},
	{"task_kill",
	 "\"readOnlyHint\":false,\"destructiveHint\":true,\"idempotentHint\":true,"
	 "\"openWorldHint\":false"},
	{"task_list",
	 "\"readOnlyHint\":true,\"destructiveHint\":false,\"idempotentHint\":true,"
	 "\"openWorldHint\":false"},
	{"task_output", "\"readOnlyHint\":false,\"destructiveHint\":false,"
			"\"idempotentHint\":false,\"openWorldHint\":false"},
};

static bool is_name(struct js_span quoted, const char *name)
{
	size_t n = strlen(name);

	return quoted.len == n + 2 && memcmp(quoted.ptr + 1, name, n) == 0;
}

static void put_hints(struct buf *out, struct js_span name)
{
	for (size_t i = 0; i < sizeof(annotations) / sizeof(annotations[0]); i++) {
		if (is_name(name, annotations[i].tool)) {
			buf_adds(out, annotations[i].hints);
			return;
		}
	}
	/* Nothing is known about it: the protocol's own defaults, said aloud. */
	buf_adds(out, "\"readOnlyHint\":false,\"destructiveHint\":true,"
		      "\"idempotentHint\":false,\"openWorldHint\":true");
}

static void put_span(struct buf *out, struct js_span s)
{
	if (s.ptr)
		buf_add(out, s.ptr, s.len);
	else
		buf_adds(out, "null");
}

static void put_tool(void *ud, struct js_span tool)
{
	struct js_span name = js_member(tool, "name");
	struct buf *out = ud;

	buf_adds(out, out->len > 1 ? ",{\"name\":" : "{\"name\":");
	put_span(out, name);
	buf_adds(out, ",\"description\":");
	put_span(out, js_member(tool, "description"));
	buf_adds(out, ",\"inputSchema\":");
	put_span(out, js_member(tool, "parameters"));
	buf_adds(out, ",\"annotations\":{");
	put_hints(out, name);
	/* Without it one client hides the tools behind a search. */
	buf_adds(out, "},\"_meta\":{\"anthropic/alwaysLoad\":true}}");
}

static int make_tools(struct mcp_server *s)
{
	errand_text *text = NULL;
	struct js_span list;
	int rc = errand_tools(s->host, 0, 0, &text, NULL);

	if (rc < 0)
		return rc;
	list.ptr = errand_text_data(text, &list.len);
	buf_addc(&s->tools, '[');
	js_each(list, put_tool, &s->tools);
	buf_addc(&s->tools, ']');
	errand_text_free(text);
	return buf_error(&s->tools);
}

static int make_instructions(struct mcp_server *s)
{
	struct buf all = BUF_INIT(MAX_LABEL);
	errand_text *text = NULL;
	const char *prompt;
	size_t len, room = MAX_INSTRUCTIONS - sizeof(ids_are_ours);
	int rc = errand_prompt(s->host, 0, NULL, 0, &text, NULL);

	if (rc < 0)
		return rc;
	prompt = errand_text_data(text, &len);
	/* The prompt comes first and may be cut at its end: it says what matters first. */
	buf_add(&all, prompt, utf8_head(prompt, len, room));
	errand_text_free(text);
	buf_adds(&all, all.len > 0 ? " " : "");
	buf_adds(&all, ids_are_ours);
	js_put_string(&s->instructions, buf_text(&all), all.len);
	buf_release(&all);
	return buf_error(&s->instructions);
}

void put_server_meta(struct buf *out, const struct mcp_server *s, enum era era)
{
	if (era != ERA_MODERN)
		return;
	buf_adds(out, "\"" META_SERVER_INFO "\":");
	buf_add(out, s->info.data, s->info.len);
}

int mcp_server_new(const struct mcp_server_options *o, struct mcp_server **ret,
		   struct err *err)
{
	struct mcp_server *s = mem_new(NULL, sizeof(*s));

	s->host = o->host;
	if (o->start_meta)
		s->start_meta = mem_dup(NULL, o->start_meta, strlen(o->start_meta));
	buf_init(&s->tools, MAX_REPLY_LINE / 2);
	buf_init(&s->instructions, KIB(16));
	buf_init(&s->info, KIB(4));
	map_init(&s->calls, NULL);
	list_init(&s->claims);
	buf_adds(&s->info, "{\"name\":\"errand\",\"version\":");
	js_put_string(&s->info, o->version, strlen(o->version));
	buf_addc(&s->info, '}');
	if (make_tools(s) < 0 || make_instructions(s) < 0) {
		mcp_server_free(s);
		return err_set(err, ERR_STATE, "the tools cannot be described");
	}
	*ret = s;
	return 0;
}

void mcp_server_unsaved(struct mcp_server *s, const char *why)
{
	mem_free(NULL, s->unsaved);
	s->unsaved = why ? mem_dup(NULL, why, strlen(why)) : NULL;
}

void mcp_server_free(struct mcp_server *s)
{
	if (!s)
		return;
	buf_release(&s->tools);
	buf_release(&s->instructions);
	buf_release(&s->info);
	map_release(&s->calls);
	mem_free(NULL, s->start_meta);
	mem_free(NULL, s->unsaved);
	mem_free(NULL, s);
}
