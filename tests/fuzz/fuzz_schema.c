/* SPDX-License-Identifier: MIT */
/*
 * The JSON Schema subset: two texts with a NUL between, schema and value. Whatever is in
 * the subset can be checked, and says something exactly if something is wrong.
 */
#include <assert.h>
#include <stdint.h>

#include "base/json.h"
#include "base/limits.h"
#include "core/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *nul = size ? memchr(text, 0, size) : NULL;
	struct js *schema = NULL, *value = NULL;
	struct buf why = BUF_INIT(MAX_ERROR_TEXT);
	size_t len;
	bool is_fine;

	if (!nul)
		return 0;
	len = (size_t)(nul - text);
	if (js_parse(text, len, &schema, NULL) == 0 &&
	    js_parse(nul + 1, size - len - 1, &value, NULL) == 0 &&
	    !schema_trouble(schema)) {
		is_fine = schema_check(schema, value, "value", "value", &why);
		assert(is_fine == (why.len == 0));
	}
	buf_release(&why);
	js_free(schema);
	js_free(value);
	return 0;
}
