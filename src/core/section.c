/* SPDX-License-Identifier: MIT */
/* section.c - the sections of the prompt (spec 8). */
#include <string.h>

#include "core/internal.h"

int section_add(errand_host *h, struct layer *layer, struct section *s,
		errand_error **ret_err)
{
	struct list *at = &layer->sections;

	list_each(node, &layer->sections)
	{
		const struct section *other = list_entry(node, struct section, node);

		if (strcmp(other->name, s->name) == 0)
			return error_make(
				ret_err, &h->mem, ERRAND_EREFUSED,
				"prompt section \"%s\" is already registered (for a "
				"per-agent override, register through that agent's "
				"`agent.ctx` instead)",
				s->name);
		if (at == &layer->sections && other->order > s->order)
			at = node;
	}
	list_add(at, &s->node);
	return 0;
}

int errand_prompt(const errand_host *h, errand_agent a, errand_text **ret,
		  errand_error **ret_err)
{
	struct buf b;

	if (!h || !ret)
		return error_make(ret_err, NULL, ERRAND_EARG,
				  "no host, or nowhere to answer");
	if (a != 0 && !agent_get(h, a, ret_err))
		return ERRAND_EGONE;
	buf_init_mem(&b, MAX_JSON_TEXT, &h->mem);
	list_each(node, &h->global.sections)
	{
		if (b.len)
			(void)buf_adds(&b, "\n\n");
		(void)buf_adds(&b, list_entry(node, struct section, node)->text);
	}
	return text_take(&b, ret, ret_err);
}
