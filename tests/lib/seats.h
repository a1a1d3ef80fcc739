/* SPDX-License-Identifier: MIT */
/*
 * seats.h - scripted listeners of stages. Each seat logs when it is entered and when it is
 * given the rest's answer, and says what it is told to, at once or later. After scopes.h and
 * echo.h.
 */
#pragma once

#include "echo.h"
#include "scopes.h"

struct seat {
	const char *name;
	const char *say;  /* the answer of enter(); NULL: next */
	const char *fail; /* or this is thrown; "code:" in front: coded */
	bool is_later;    /* or nothing yet */
	bool has_back;
	const char *back_say;  /* the answer of back(); NULL: what came */
	const char *back_fail; /* or this is thrown */
	bool shows;            /* logs what it is shown */
	errand_frame frame;
	errand_reg reg;
	int stage, destroyed;
};

static UNUSED void throw_text(errand_host *h, errand_frame f, const char *text)
{
	bool is_coded = strncmp(text, "code:", 5) == 0;
	errand_error *e = errand_error_new(is_coded ? "PolicyError" : NULL,
					   is_coded ? "E_POLICY" : NULL,
					   text + (is_coded ? 5 : 0), ERRAND_NUL);

	CHECK_INT(errand_fail(h, f, e), 0);
	errand_error_free(e);
}

static UNUSED void seat_enter(void *ud, errand_host *h, errand_frame f,
			      const struct errand_frame_view *v)
{
	struct seat *s = ud;

	s->frame = f;
	CHECK_INT(v->stage, s->stage);
	CHECK(v->error == NULL);
	logf_("%s", s->name);
	if (s->shows)
		logf_("(%.*s)", (int)v->answer_json.len,
		      v->answer_json.ptr ? v->answer_json.ptr : "");
	logf_(";");
	if (s->is_later)
		return;
	if (s->fail)
		throw_text(h, f, s->fail);
	else if (s->say)
		CHECK_INT(errand_answer(h, f, s->say, ERRAND_NUL), 0);
	else
		CHECK_INT(errand_next(h, f), 0);
}

static UNUSED void seat_back(void *ud, errand_host *h, errand_frame f,
			     const struct errand_frame_view *v)
{
	struct seat *s = ud;

	CHECK_INT(f, s->frame);
	if (v->error)
		logf_("back-%s!%s;", s->name, errand_error_message(v->error, NULL));
	else
		logf_("back-%s%.*s;", s->name, (int)v->answer_json.len, v->answer_json.ptr);
	if (s->back_fail)
		throw_text(h, f, s->back_fail);
	else if (s->back_say)
		CHECK_INT(errand_answer(h, f, s->back_say, ERRAND_NUL), 0);
	else if (v->error)
		CHECK_INT(errand_fail(h, f, v->error), 0);
	else
		CHECK_INT(errand_answer(h, f, v->answer_json.ptr, v->answer_json.len), 0);
}

static UNUSED void seat_destroy(void *ud)
{
	((struct seat *)ud)->destroyed++;
}

static UNUSED int try_sit(errand_scope scope, int stage, uint32_t flags, struct seat *s)
{
	struct errand_listener l = {.size = sizeof(l),
				    .stage = stage,
				    .flags = flags,
				    .enter = seat_enter,
				    .back = s->has_back ? seat_back : NULL,
				    .ud = s,
				    .destroy = seat_destroy};
	errand_error *e = NULL;

	s->stage = stage;
	return refused(errand_listen(core.host, scope, &l, &s->reg, &e), &e);
}

static UNUSED void sit(int stage, struct seat *s)
{
	CHECK_INT(try_sit(0, stage, 0, s), 0);
}

/* Call the tool under test as alice: what the model sees. */
static UNUSED const char *echoed(void)
{
	return call(core.alice, "echo", "{\"n\":1}");
}

static UNUSED void go_on(const struct seat *s, const char *json)
{
	CHECK_INT(errand_answer(core.host, s->frame, json, ERRAND_NUL), 0);
	run();
}

/* A host with the tool, which says {"s":"x"} and shows "x". */
static UNUSED void fresh_seats(void)
{
	fresh_tool();
	(void)logged();
}
