/* SPDX-License-Identifier: MIT */
/* mount.c - the controller in a layer: section, tools, start gate, notices (spec 3, 8, 10). */
#include "base/json.h"
#include "base/limits.h"
#include "core/call.h"
#include "core/config.h"
#include "core/controller.h"
#include "core/host.h"
#include "core/notice.h"
#include "core/policy.h"
#include "core/reg.h"
#include "core/scope.h"
#include "core/section.h"
#include "core/task.h"
#include "core/tool.h"

#define SECTION_ORDER 106
#define DEFAULT_TIMEOUT_MS 30000
#define DEFAULT_MAX_MS 600000

static const char section_text[] =
	"Track every background task id you start. You are notified in-session when a task "
	"finishes \xe2\x80\x94 do not busy-poll or sleep on one; keep working on independent "
	"steps and do not duplicate a running task's work. Before giving a final answer, "
	"collect every still-relevant task with task_output (set wait: true only when you are "
	"genuinely blocked on it), and task_kill tasks that stopped mattering.";

struct mount {
	struct reg reg;
	struct reg *parts[N_CONTROLLER_TOOLS + 4];
	size_t count;
};

/* Work that runs goes on; its records stay (spec 3.7). */
static void mount_undo(errand_host *h, struct reg *r)
{
	struct mount *m = list_entry(r, struct mount, reg);

	while (m->count > 0)
		reg_undo(h, m->parts[--m->count]);
	mem_free(&h->mem, m);
}

/* ---- configuration ---- */

static int check_order(errand_host *h, const struct wait_config *w, errand_error **ret_err)
{
	struct buf b;

	if (w->timeout_ms <= w->max_ms)
		return 0;
	buf_init_mem(&b, MAX_ERROR_TEXT, &h->mem);
	(void)buf_adds(&b, "tool-tasks: waitTimeoutMs (");
	(void)js_put_number(&b, w->timeout_ms);
	(void)buf_adds(&b, ") exceeds maxWaitTimeoutMs (");
	(void)js_put_number(&b, w->max_ms);
	(void)buf_addc(&b, ')');
	return error_take(ret_err, ERRAND_EREFUSED, &b);
}

static int read_config(errand_host *h, const char *text, size_t len, struct wait_config *w,
		       int64_t *ret_max_wakes, errand_error **ret_err)
{
	struct settings config;
	int rc = config_parse(&h->mem, text, str_length(text, len), &config, ret_err);

	if (rc != 0)
		return rc;
	rc = config_number(&h->mem, &config, "waitTimeoutMs", &w->timeout_ms, ret_err);
	if (rc == 0)
		rc = config_number(&h->mem, &config, "maxWaitTimeoutMs", &w->max_ms,
				   ret_err);
	if (rc == 0)
		rc = notice_config(h, &config, ret_max_wakes, ret_err);
	js_free(config.tree);
	return rc == 0 ? check_order(h, w, ret_err) : rc;
}

static void config_free(void *ud)
{
	struct wait_config *w = ud;
	struct mem mem = w->mem;

	mem_free(&mem, w);
}

/* ---- mounting ---- */

/*
 * In front of the policies of now, so that none of them decides whether a result is bounded;
 * those that are put in front later do (spec 5.7). The call's tool knows its own mount.
 */
static void capture(errand_host *h, struct call *c, errand_reg self)
{
	if (c->tool && c->tool->capture && c->tool->captured_by == self)
		c->tool->capture(h, c);
}

static errand_reg add_capture(errand_host *h, struct layer *layer, struct mount *m)
{
	struct policy *p = policy_add(h, layer, ERRAND_STAGE_PRE, ERRAND_PREPEND);

	p->builtin = capture;
	object_add(h, &p->reg.obj, OBJ_PART);
	p->number = p->reg.obj.id;
	m->parts[m->count++] = &p->reg;
	return p->number;
}

static int add_tool(errand_host *h, struct layer *layer, const struct controller_tool *ct,
		    const struct wait_config *config, errand_reg captured_by,
		    struct reg **ret, errand_error **ret_err)
{
	struct errand_tool o = {
		.size = sizeof(o),
		.flags = ERRAND_TOOL_EXCLUSIVE,
		.name = {ct->name, ERRAND_NUL},
		.description = {ct->description, ERRAND_NUL},
		.params_schema = {ct->params, ERRAND_NUL},
		.output_schema = {ct->output, ERRAND_NUL},
		.exec = ct->exec,
		.card = ct->card,
	};
	struct wait_config *own;
	struct tool *t;
	int rc = tool_add(h, layer, &o, &t, ret_err);

	if (rc != 0)
		return rc;
	/* A call in flight keeps its tool, and so its configuration, when the mount goes. */
	own = mem_new(&h->mem, sizeof(*own));
	*own = *config;
	t->ud = own;
	t->destroy = config_free;
	t->put_text = ct->put_text;
	t->capture = ct->capture;
	t->captured_by = captured_by;
	t->last_mile = ct->last_mile;
	*ret = &t->reg;
	return 0;
}

static int add_tools(errand_host *h, struct layer *layer, struct mount *m,
		     const struct wait_config *config, errand_error **ret_err)
{
	errand_reg capture = add_capture(h, layer, m);
	int rc;

	for (size_t i = 0; i < N_CONTROLLER_TOOLS; i++) {
		rc = add_tool(h, layer, &controller_tools[i], config, capture,
			      &m->parts[m->count], ret_err);
		if (rc != 0)
			return rc;
		m->count++;
	}
	return 0;
}

static void add_notices(errand_host *h, struct layer *layer, struct mount *m,
			int64_t max_wakes)
{
	struct listener *l = listener_add(h, layer, ERRAND_ON_DONE);

	l->builtin = notice_on_done;
	object_add(h, &l->reg.obj, OBJ_PART);
	l->number = l->reg.obj.id;
	l->max_wakes = max_wakes;
	m->parts[m->count++] = &l->reg;
}

static int add_section(errand_host *h, struct layer *layer, struct mount *m,
		       errand_error **ret_err)
{
	errand_str text = {section_text, sizeof(section_text) - 1};
	int rc = section_add(h, layer, "tool:tasks", SECTION_ORDER, text,
			     &m->parts[m->count], ret_err);

	if (rc == 0)
		m->count++;
	return rc;
}

/* All of it, or nothing (spec 3.6). */
static int mount(errand_host *h, struct layer *layer, const struct wait_config *config,
		 int64_t max_wakes, errand_reg *ret, errand_error **ret_err)
{
	struct mount *m = mem_new(&h->mem, sizeof(*m));
	int rc = add_section(h, layer, m, ret_err);

	m->reg.undo = mount_undo;
	if (rc == 0)
		rc = add_tools(h, layer, m, config, ret_err);
	if (rc != 0) {
		mount_undo(h, &m->reg);
		return rc;
	}
	m->parts[m->count++] = surface_add(h, layer);
	add_notices(h, layer, m, max_wakes);
	*ret = reg_publish_in(h, layer, &m->reg);
	return 0;
}

int errand_mount(errand_host *h, errand_scope s, const char *config_json, size_t len,
		 errand_reg *ret, errand_error **ret_err)
{
	struct wait_config config = {.timeout_ms = DEFAULT_TIMEOUT_MS,
				     .max_ms = DEFAULT_MAX_MS};
	struct layer *layer;
	int64_t max_wakes;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (!ret)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "nowhere to answer");
	layer = layer_open(h, s, ret_err);
	if (!layer)
		return ERRAND_EGONE;
	config.mem = h->mem;
	rc = read_config(h, config_json, len, &config, &max_wakes, ret_err);
	if (rc == 0)
		rc = mount(h, layer, &config, max_wakes, ret, ret_err);
	layer_drop(h, layer);
	return rc;
}
