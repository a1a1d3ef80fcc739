/* SPDX-License-Identifier: MIT */
/* Tests of src/host/config.c: keys from the environment. */
#include <stdlib.h>

#include "base/err.h"
#include "check.h"
#include "host/config.h"

static struct config config;
static struct err err;

static int read_with(const char *setting)
{
	char path[] = "PATH=/bin";
	char *const env[] = {path, (char *)(uintptr_t)setting, NULL};

	config_release(&config);
	return config_read(&config, env, &err);
}

static const char *error_with(const char *setting)
{
	CHECK_INT(read_with(setting), -ERR_ARG);
	return err.msg;
}

static int has_withheld(const char *name)
{
	for (char **p = config.withheld; *p; p++)
		if (strcmp(*p, name) == 0)
			return 1;
	return 0;
}

TEST(without_settings_the_defaults_hold)
{
	CHECK_INT(read_with("HOME=/"), 0);
	CHECK_INT(config.live_tasks, 32);
	CHECK_INT(config.finished_tasks, 100);
	CHECK_INT(config.output_limit, 10000);
	CHECK_INT(config.foreground_ms, 45000);
	CHECK_INT(config.grace_ms, 3000);
	CHECK_INT(config.log_head, 16 << 20);
	CHECK_INT(config.log_tail, 48 << 20);
	CHECK_INT(config.wait_default_ms, 30000);
	CHECK(has_withheld("ANTHROPIC_API_KEY"));
	config_release(&config);
}

TEST(a_key_is_named_by_section_and_name)
{
	CHECK_INT(read_with("ERRAND_LIMITS_LIVE_TASKS=0"), 0);
	CHECK_INT(config.live_tasks, 0);
	CHECK_INT(read_with("ERRAND_BASH_OUTPUT_LIMIT=64"), 0);
	CHECK_INT(config.output_limit, 64);
	config_release(&config);
}

TEST(a_bad_value_names_variable_value_and_range)
{
	CHECK_STR(
		error_with("ERRAND_LIMITS_LIVE_TASKS=many"),
		"ERRAND_LIMITS_LIVE_TASKS=many: expected a whole number from 0 to 1000000");
	CHECK_STR(
		error_with("ERRAND_BASH_FOREGROUND_MS=0"),
		"ERRAND_BASH_FOREGROUND_MS=0: expected a whole number from 1 to 86400000");
	CHECK_INT(read_with("ERRAND_BASH_FOREGROUND_MS=-1"), -ERR_ARG);
	CHECK_INT(read_with("ERRAND_BASH_FOREGROUND_MS=1.5"), -ERR_ARG);
	CHECK_INT(read_with("ERRAND_BASH_FOREGROUND_MS="), -ERR_ARG);
	CHECK_INT(read_with("ERRAND_BASH_FOREGROUND_MS=99999999999999999999"), -ERR_ARG);
}

TEST(waits_are_cut_at_what_clients_stand)
{
	CHECK_INT(read_with("HOME=/"), 0);
	CHECK_INT(config.wait_max_ms, 50000);
	CHECK_INT(read_with("ERRAND_WAIT_DEFAULT_MS=60000"), 0);
	CHECK_INT(config.wait_default_ms, 50000);
	config_release(&config);
}

TEST(a_cap_alone_lowers_the_default_a_default_above_it_is_a_mistake)
{
	CHECK_INT(read_with("ERRAND_WAIT_MAX_MS=100"), 0);
	CHECK_INT(config.wait_default_ms, 100);
	CHECK_STR(error_with("ERRAND_WAIT_DEFAULT_MS=600001"),
		  "ERRAND_WAIT_DEFAULT_MS=600001: expected at most ERRAND_WAIT_MAX_MS, "
		  "which is 600000");
}

TEST(the_withheld_names_can_be_replaced_or_emptied)
{
	CHECK_INT(read_with("ERRAND_BASH_WITHHELD_ENV=A,B_2"), 0);
	CHECK(has_withheld("A") && has_withheld("B_2") && !has_withheld("OPENAI_API_KEY"));
	CHECK_INT(read_with("ERRAND_BASH_WITHHELD_ENV="), 0);
	CHECK(config.withheld[0] == NULL);
	CHECK_INT(read_with("ERRAND_BASH_WITHHELD_ENV=A B"), -ERR_ARG);
	CHECK_INT(read_with("ERRAND_BASH_WITHHELD_ENV=,"), -ERR_ARG);
}
