/* SPDX-License-Identifier: MIT */
/* Structs of programs that were built with an older or a newer errand.h. */
#include "core/abi.h"

#include "core.h"

static int destroyed;

static void count_destroy(void *ud)
{
	(void)ud;
	destroyed++;
}

static void on_enter(void *ud, errand_host *h, errand_frame f,
		     const struct errand_frame_view *v)
{
	(void)ud, (void)h, (void)f, (void)v;
}

static int start_ok(void *ud, errand_host *h, errand_task t, errand_error *e)
{
	(void)ud, (void)h, (void)t, (void)e;
	return 0;
}

/* ---- one call for each struct: it has @bytes for its options ---- */

static int take_host(const void *bytes, errand_error **e)
{
	errand_host *h = NULL;
	int rc = errand_host_new(bytes, &h, e);

	errand_host_free(h);
	return rc;
}

static int take_agent(const void *bytes, errand_error **e)
{
	errand_agent a;

	return errand_agent_new(core.host, bytes, &a, e);
}

static int take_tool(const void *bytes, errand_error **e)
{
	errand_reg r;

	return errand_tool_add(core.host, 0, bytes, &r, e);
}

static int take_listener(const void *bytes, errand_error **e)
{
	return errand_listen(core.host, 0, bytes, NULL, e);
}

static int take_call(const void *bytes, errand_error **e)
{
	return errand_call_new(core.host, bytes, NULL, e);
}

static int take_spec(const void *bytes, errand_error **e)
{
	return errand_task_start(core.host, bytes, NULL, NULL, e);
}

/* Restored: adopt() gives it, and the host's warnings are not about it. */
static const void *producer_bytes;

static int adopt(void *ud, errand_host *h, errand_task t, const char *record, size_t len,
		 struct errand_producer *ret, errand_error *e)
{
	uint32_t size;

	(void)ud, (void)h, (void)t, (void)record, (void)len, (void)e;
	memcpy(&size, producer_bytes, sizeof(size));
	memcpy(ret, producer_bytes, size);
	return 0;
}

static int take_producer(const void *bytes, errand_error **e)
{
	static const char journal[] =
		"[{\"fact\":\"counter\",\"kind\":\"job\",\"counter\":1},{\"fact\":\"task\","
		"\"task\":1,\"kind\":\"job\",\"ordinal\":1,\"label\":\"x\",\"status\":\"running\","
		"\"startedAt\":1,\"stream\":false,\"reported\":false,\"noticed\":false,"
		"\"told\":false,\"cursor\":0}]";
	struct errand_host_options o = {.size = sizeof(o), .abi = ERRAND_ABI};
	errand_text *json = NULL;
	errand_host *h;
	int rc;

	producer_bytes = bytes;
	CHECK_INT(errand_host_new(&o, &h, NULL), 0);
	CHECK_INT(errand_restore(h, journal, ERRAND_NUL, adopt, NULL, e), 0);
	CHECK(errand_run(h, 1, 1, 0) >= 0);
	CHECK_INT(errand_list(h, 0, &json, NULL), 0);
	rc = strstr(errand_text_data(json, NULL), "\"status\":\"running\"") ? 0
									    : ERRAND_EARG;
	(void)snprintf(core.shown, sizeof(core.shown), "%s", errand_text_data(json, NULL));
	errand_text_free(json);
	errand_host_free(h);
	return rc;
}

/* ---- the structs ---- */

static struct errand_host_options host_options = {.abi = ERRAND_ABI,
						  .destroy = count_destroy};
static struct errand_agent_options agent_options = {.session = {"new", ERRAND_NUL},
						    .flags = ERRAND_AGENT_UNREGISTERED,
						    .destroy = count_destroy};
static struct errand_tool tool_options = {
	.name = {"own", ERRAND_NUL},
	.params_schema = {"{\"type\":\"object\",\"properties\":{}}", ERRAND_NUL},
	.output_schema = {"{\"type\":\"string\"}", ERRAND_NUL},
	.exec = on_enter,
	.destroy = count_destroy};
static struct errand_listener listener = {
	.stage = ERRAND_STAGE_PRE, .enter = on_enter, .destroy = count_destroy};
static struct errand_call_options call_options = {
	.tool = {"task_list", ERRAND_NUL}, .on_result = NULL, .destroy = count_destroy};
static struct errand_task_spec task_spec = {.kind = {"job", ERRAND_NUL},
					    .label = {"x", ERRAND_NUL},
					    .producer = {.size = sizeof(task_spec.producer),
							 .start = start_ok,
							 .destroy = count_destroy}};
static struct errand_producer producer = {.destroy = count_destroy};

static int on_end(void *ud, errand_host *h, errand_call c, errand_lease l, const char *json,
		  size_t len)
{
	(void)ud, (void)h, (void)c, (void)l, (void)json, (void)len;
	return ERRAND_DELIVERED;
}

static int cancel_ok(void *ud, errand_host *h, errand_task t, const char *reason,
		     size_t len, errand_error *e)
{
	(void)ud, (void)h, (void)t, (void)reason, (void)len, (void)e;
	return 0;
}

/* @first: what sizeof said in the first version, on a machine of 64 bits. */
static const struct row {
	const char *name;
	const void *good;
	size_t first, now;
	size_t flags_at; /* 0: it has none */
	int (*take)(const void *bytes, errand_error **e);
} rows[] = {
	{"errand_host_options", &host_options, 104, sizeof(host_options), 0, take_host},
	{"errand_agent_options", &agent_options, 64, sizeof(agent_options),
	 offsetof(struct errand_agent_options, flags), take_agent},
	{"errand_tool", &tool_options, 128, sizeof(tool_options),
	 offsetof(struct errand_tool, flags), take_tool},
	{"errand_listener", &listener, 48, sizeof(listener),
	 offsetof(struct errand_listener, flags), take_listener},
	{"errand_call_options", &call_options, 80, sizeof(call_options),
	 offsetof(struct errand_call_options, flags), take_call},
	{"errand_producer", &producer, 48, sizeof(producer),
	 offsetof(struct errand_producer, flags), take_producer},
	{"errand_task_spec", &task_spec, 112, sizeof(task_spec),
	 offsetof(struct errand_task_spec, flags), take_spec},
};
#define each_row(r)                                                                        \
	for (const struct row *r = rows; r < rows + sizeof(rows) / sizeof(rows[0]); r++)

/* @r with .size @said, in as many bytes as it says or @room; what is behind it is @fill. On
 * the heap, so that a sanitizer sees who reads too far. */
static uint32_t offered_flags;

static int offer(const struct row *r, uint32_t said, size_t room, int fill,
		 errand_error **e)
{
	unsigned char *bytes = malloc(room);
	int rc;

	fresh();
	call_options.on_result = on_end;
	task_spec.producer.cancel = producer.cancel = cancel_ok;
	producer.start = start_ok;
	task_spec.producer.size = sizeof(task_spec.producer);
	if (said < r->now) /* of an older program, its producer is as old */
		task_spec.producer.size -= (uint32_t)(r->now - r->first);
	CHECK(bytes);
	memset(bytes, fill, room);
	memcpy(bytes, r->good, room < r->now ? room : r->now);
	memcpy(bytes, &said, sizeof(said));
	if (offered_flags)
		memcpy(bytes + r->flags_at, &offered_flags, sizeof(offered_flags));
	destroyed = 0;
	rc = r->take(bytes, e);
	free(bytes);
	errand_host_free(core.host);
	core.host = NULL;
	return rc;
}

TEST(a_struct_of_today_is_taken)
{
	each_row(r)
	{
		CHECK_INT(offer(r, (uint32_t)r->now, r->now, 0, NULL), 0);
		CHECK_INT(destroyed, 1);
	}
}

TEST(a_struct_of_the_first_version_is_taken)
{
	each_row(r)
	{
		if (sizeof(void *) != 8)
			continue;
		CHECK(r->first <= r->now);
		CHECK_INT(offer(r, (uint32_t)r->first, r->first, 0, NULL), 0);
		CHECK_INT(destroyed, 1);
	}
}

TEST(a_longer_struct_is_taken_if_the_surplus_is_zero)
{
	each_row(r)
	{
		CHECK_INT(offer(r, (uint32_t)r->now + 24, r->now + 24, 0, NULL), 0);
		CHECK_INT(destroyed, 1);
	}
}

TEST(a_surplus_that_is_not_zero_is_refused_and_ud_destroyed)
{
	each_row(r)
	{
		errand_error *e = NULL;

		CHECK_INT(offer(r, (uint32_t)r->now + 24, r->now + 24, 1, &e), ERRAND_EARG);
		CHECK_INT(destroyed, 1);
		if (!e) /* a producer's goes into its task's detail */
			CHECK(strstr(core.shown,
				     "lost: struct errand_producer: it has members "
				     "that this version of the library does not know"));
		else
			CHECK(strstr(message(e), "does not know"));
		CHECK(!e || strstr(core.message, r->name));
	}
}

TEST(an_unknown_flag_is_refused_and_ud_destroyed)
{
	offered_flags = 1u << 20;
	each_row(r)
	{
		errand_error *e = NULL;

		if (r->flags_at == 0)
			continue;
		CHECK_INT(offer(r, (uint32_t)r->now, r->now, 0, &e), ERRAND_EARG);
		CHECK_INT(destroyed, 1);
		(void)snprintf(core.message, sizeof(core.message), "%.2000s",
			       e ? errand_error_message(e, NULL) : core.shown);
		CHECK(strstr(core.message, r->name));
		CHECK(strstr(core.message,
			     "flags that this version of the library does not "
			     "know (0x100000)"));
		errand_error_free(e);
	}
	offered_flags = 0;
}

TEST(a_size_that_cannot_be_is_refused_and_nothing_else_is_read)
{
	each_row(r)
	{
		const uint32_t bad[] = {0, 4, (uint32_t)r->first - 1, ABI_MAX_SIZE + 1,
					UINT32_MAX};

		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			errand_error *e = NULL;
			size_t room = bad[i] < r->now ? bad[i] : sizeof(bad[i]);

			if (r->take == take_producer) /* whose room is the library's */
				continue;
			CHECK_INT(offer(r, bad[i], room < 4 ? 4 : room, 0, &e),
				  ERRAND_EARG);
			CHECK_INT(destroyed, 0);
			CHECK(strstr(message(e), r->name));
			CHECK(strstr(core.message, "its .size is"));
		}
	}
}

TEST(a_producer_that_adopt_did_not_fill_in_is_lost)
{
	struct errand_producer none = {.size = 4};
	struct errand_producer deaf = {.size = sizeof(deaf), .destroy = count_destroy};

	destroyed = 0;
	CHECK_INT(take_producer(&none, NULL), ERRAND_EARG);
	CHECK(strstr(core.shown, "lost: struct errand_producer: its .size is 4"));
	CHECK_INT(destroyed, 0);
	CHECK_INT(take_producer(&deaf, NULL), ERRAND_EARG);
	CHECK(strstr(core.shown, "lost: a producer needs cancel()"));
	CHECK_INT(destroyed, 1);
}

TEST(a_producer_stays_inside_its_spec)
{
	struct errand_task_spec s = task_spec;
	errand_error *e = NULL;

	fresh();
	s.size = sizeof(s);
	s.producer.size = sizeof(s.producer) + 8;
	s.producer.cancel = cancel_ok;
	destroyed = 0;
	CHECK_INT(errand_task_start(core.host, &s, NULL, NULL, &e), ERRAND_EARG);
	CHECK_STR(message(e),
		  "struct errand_producer: it reaches out of its errand_task_spec");
	CHECK_INT(destroyed, 0);
}
