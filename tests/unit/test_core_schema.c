/* SPDX-License-Identifier: MIT */
/* Tests of src/core/schema.c: what is in the subset, and how a violation is told. */
#include "core/schema.h"
#include "core.h"

static struct js *parse(const char *text)
{
	struct js *j = NULL;

	CHECK_INT(js_parse(text, strlen(text), &j, NULL), 0);
	return j;
}

/* What of @value violates @schema, as for arguments. */
static const char *args_trouble(const char *schema, const char *value)
{
	struct js *s = parse(schema), *v = parse(value);
	struct buf b = BUF_INIT(4000);
	bool fine = schema_check(s, v, "arguments", "", &b);

	CHECK(fine == (b.len == 0));
	(void)snprintf(core.shown, sizeof(core.shown), "%s", buf_text(&b));
	buf_release(&b);
	js_free(s);
	js_free(v);
	return core.shown;
}

static const char *value_trouble(const char *schema, const char *value)
{
	struct js *s = parse(schema), *v = parse(value);
	struct buf b = BUF_INIT(4000);

	(void)schema_check(s, v, "value", "value", &b);
	(void)snprintf(core.shown, sizeof(core.shown), "%s", buf_text(&b));
	buf_release(&b);
	js_free(s);
	js_free(v);
	return core.shown;
}

static const char *outside(const char *schema)
{
	struct js *s = parse(schema);
	const char *trouble = schema_trouble(s);

	(void)snprintf(core.shown, sizeof(core.shown), "%s", trouble ? trouble : "");
	js_free(s);
	return core.shown;
}

static const char open_args[] =
	"{\"type\":\"object\",\"properties\":{\"task_id\":{\"type\":\"string\"},"
	"\"wait\":{\"type\":\"boolean\"},\"timeout_ms\":{\"type\":\"number\"}},"
	"\"required\":[\"task_id\"]}";

TEST(arguments_that_hold_have_no_violation)
{
	CHECK_STR(args_trouble(open_args, "{\"task_id\":\"a\",\"wait\":true}"), "");
}

TEST(extra_keys_of_an_open_object_are_fine)
{
	CHECK_STR(args_trouble(open_args, "{\"task_id\":\"a\",\"x\":1}"), "");
}

TEST(a_missing_key_is_named)
{
	CHECK_STR(args_trouble(open_args, "{}"), "missing required property \"task_id\"");
}

TEST(each_wrong_type_is_named_in_the_order_of_the_schema)
{
	CHECK_STR(
		args_trouble(open_args, "{\"timeout_ms\":\"1\",\"wait\":1,\"task_id\":2}"),
		"\"task_id\" must be a string; \"wait\" must be a boolean; \"timeout_ms\" "
		"must be a number");
}

TEST(missing_keys_come_before_wrong_types)
{
	CHECK_STR(args_trouble(open_args, "{\"wait\":0}"),
		  "missing required property \"task_id\"; \"wait\" must be a boolean");
}

TEST(null_is_a_wrong_type_and_no_absence)
{
	CHECK_STR(args_trouble(open_args, "{\"task_id\":null}"),
		  "\"task_id\" must be a string");
}

TEST(a_root_that_is_no_object_is_called_arguments)
{
	CHECK_STR(args_trouble(open_args, "[]"), "\"arguments\" must be an object");
	CHECK_STR(args_trouble(open_args, "\"x\""), "\"arguments\" must be an object");
}

TEST(a_closed_object_names_what_is_not_declared)
{
	CHECK_STR(
		value_trouble("{\"type\":\"object\",\"additionalProperties\":false,"
			      "\"properties\":{\"a\":{}},\"required\":[\"a\"]}",
			      "{\"b\":1}"),
		"missing required property \"value.a\"; \"value.b\" is not a declared property "
		"(additionalProperties: false)");
}

TEST(additional_properties_true_is_open)
{
	CHECK_STR(value_trouble("{\"type\":\"object\",\"additionalProperties\":true}",
				"{\"b\":1}"),
		  "");
}

TEST(a_path_leads_into_objects_and_arrays)
{
	static const char schema[] =
		"{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"items\":"
		"{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}}}}";

	CHECK_STR(value_trouble(schema, "{\"l\":[{\"n\":1},{\"n\":\"x\"}]}"),
		  "\"value.l[1].n\" must be an integer");
}

TEST(an_array_root_is_indexed_by_its_name)
{
	static const char schema[] = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}";

	CHECK_STR(value_trouble(schema, "[\"a\",1]"), "\"value[1]\" must be a string");
	CHECK_STR(args_trouble(schema, "[1]"), "\"arguments[0]\" must be a string");
	CHECK_STR(value_trouble(schema, "{}"), "\"value\" must be an array");
}

TEST(a_word_outside_an_enum_is_told_the_words)
{
	CHECK_STR(value_trouble("{\"type\":\"string\",\"enum\":[\"a\",\"b\"]}", "\"c\""),
		  "\"value\" must be one of \"a\", \"b\"");
	CHECK_STR(value_trouble("{\"type\":\"string\",\"enum\":[\"a\",\"b\"]}", "\"b\""),
		  "");
}

TEST(an_integer_has_no_fraction)
{
	CHECK_STR(value_trouble("{\"type\":\"integer\"}", "1.0"), "");
	CHECK_STR(value_trouble("{\"type\":\"integer\"}", "1e300"), "");
	CHECK_STR(value_trouble("{\"type\":\"integer\"}", "1.5"),
		  "\"value\" must be an integer");
}

TEST(every_type_has_its_claim)
{
	CHECK_STR(value_trouble("{\"type\":\"null\"}", "0"), "\"value\" must be null");
	CHECK_STR(value_trouble("{\"type\":\"null\"}", "null"), "");
	CHECK_STR(value_trouble("{\"type\":\"number\"}", "true"),
		  "\"value\" must be a number");
	CHECK_STR(value_trouble("{}", "[{},null]"), "");
}

TEST(words_that_describe_are_in_the_subset)
{
	CHECK_STR(outside(open_args), "");
	CHECK_STR(outside("{\"title\":\"x\",\"description\":\"y\",\"default\":1}"), "");
}

TEST(words_that_would_bind_are_outside)
{
	CHECK_STR(outside("{\"minimum\":1}"), "minimum");
	CHECK_STR(outside("{\"anyOf\":[]}"), "anyOf");
	CHECK_STR(outside("{\"type\":\"text\"}"), "type");
	CHECK_STR(outside("{\"type\":[\"string\",\"null\"]}"), "type");
}

TEST(a_schema_within_a_schema_is_looked_at)
{
	CHECK_STR(outside("{\"properties\":{\"a\":{\"pattern\":\"x\"}}}"), "properties");
	CHECK_STR(outside("{\"items\":{\"pattern\":\"x\"}}"), "items");
	CHECK_STR(outside("{\"required\":[1]}"), "required");
	CHECK_STR(outside("{\"enum\":\"a\"}"), "enum");
	CHECK_STR(outside("{\"additionalProperties\":{}}"), "additionalProperties");
}

TEST(an_empty_key_has_a_place_of_its_own)
{
	static const char schema[] =
		"{\"properties\":{\"\":{\"properties\":{\"\":{\"type\":\"string\"}}},"
		"\"a\":{\"items\":{\"required\":[\"\"]}}},\"required\":[\"\"]}";

	CHECK_STR(args_trouble(schema, "{}"), "missing required property \"\"");
	CHECK_STR(args_trouble(schema, "{\"\":{\"\":1},\"a\":[{}]}"),
		  "\".\" must be a string; missing required property \"a[0].\"");
	CHECK_STR(args_trouble("{\"additionalProperties\":false}", "{\"\":1}"),
		  "\"\" is not a declared property (additionalProperties: false)");
	CHECK_STR(value_trouble(schema, "{}"), "missing required property \"value.\"");
}

TEST(a_required_key_that_no_object_can_have_is_outside)
{
	CHECK_STR(outside("{\"required\":[\"a\\u0000b\"]}"), "required");
	CHECK_STR(outside("{\"required\":[\"\",\"a\"]}"), "");
}

TEST(a_schema_is_an_object)
{
	CHECK_STR(outside("[]"), "(not an object)");
	CHECK_STR(outside("true"), "(not an object)");
}

TEST(a_word_of_an_enum_is_compared_as_a_whole)
{
	static const char schema[] = "{\"enum\":[\"a\\u0000b\"]}";

	CHECK_STR(args_trouble(schema, "\"a\\u0000b\""), "");
	CHECK_STR(args_trouble(schema, "\"a\""),
		  "\"arguments\" must be one of \"a\\u0000b\"");
}
