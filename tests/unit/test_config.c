/* SPDX-License-Identifier: MIT */
/* Tests of src/host/config.c: keys from the environment. */
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "check.h"
#include "host/config.h"

static struct config config;
static struct err err;

static int read_with(const char *setting)
{
	static const char *const no_files[] = {NULL};
	char path[] = "PATH=/bin", home[] = "HOME=/home/me";
	char *const env[] = {path, home, (char *)(uintptr_t)setting, NULL};

	config_release(&config);
	return config_read_from(&config, no_files, env, &err);
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
	CHECK_INT(read_with("LANG=C"), 0);
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
		"ERRAND_BASH_FOREGROUND_MS=0: expected a number of milliseconds from 1 to "
		"86400000, or with a unit (ms, s, min, h, d)");
	CHECK_STR(error_with("ERRAND_BASH_LOG_HEAD=16MB"),
		  "ERRAND_BASH_LOG_HEAD=16MB: expected a number of bytes from 0 to "
		  "1099511627776, or with a unit (B, KiB, MiB, GiB, TiB)");
	CHECK_INT(read_with("ERRAND_BASH_FOREGROUND_MS=-1"), -ERR_ARG);
	CHECK_INT(read_with("ERRAND_BASH_FOREGROUND_MS=1.5"), -ERR_ARG);
	CHECK_INT(read_with("ERRAND_BASH_FOREGROUND_MS="), -ERR_ARG);
	CHECK_INT(read_with("ERRAND_BASH_FOREGROUND_MS=99999999999999999999"), -ERR_ARG);
}

TEST(waits_are_cut_at_what_clients_stand)
{
	CHECK_INT(read_with("LANG=C"), 0);
	CHECK_INT(config.wait_max_ms, 50000);
	CHECK_INT(read_with("ERRAND_WAIT_DEFAULT_MS=60000"), 0);
	CHECK_INT(config.wait_default_ms, 50000);
	config_release(&config);
}

TEST(a_cap_alone_lowers_the_default_a_default_above_it_is_a_mistake)
{
	CHECK_INT(read_with("ERRAND_WAIT_MAX_MS=100"), 0);
	CHECK_INT(config.wait_default_ms, 100);
	CHECK_STR(
		error_with("ERRAND_WAIT_DEFAULT_MS=600001"),
		"wait.default_ms is 600001: expected at most wait.max_ms, which is 600000");
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

TEST(the_names_may_have_blanks_around_them)
{
	CHECK_INT(read_with("ERRAND_BASH_WITHHELD_ENV=A , B,"), 0);
	CHECK(has_withheld("A") && has_withheld("B"));
	config_release(&config);
}

TEST(numbers_may_have_units)
{
	CHECK_INT(read_with("ERRAND_BASH_LOG_HEAD=3KiB"), 0);
	CHECK_INT(config.log_head, 3 << 10);
	CHECK_INT(read_with("ERRAND_BASH_LOG_HEAD=1 TiB"), 0);
	CHECK(config.log_head == INT64_C(1) << 40);
	CHECK_INT(read_with("ERRAND_BASH_GRACE_MS=30s"), 0);
	CHECK_INT(config.grace_ms, 30000);
	CHECK_INT(read_with("ERRAND_DAEMON_IDLE_S=2h"), 0);
	CHECK_INT(config.idle_s, 7200);
	CHECK_INT(read_with("ERRAND_SESSIONS_GRACE_S=3000ms"), 0);
	CHECK_INT(config.grace_s, 3);
	config_release(&config);
}

TEST(a_unit_must_fit_the_key_and_the_result_must_be_whole_and_in_range)
{
	CHECK_INT(read_with("ERRAND_BASH_LOG_HEAD=3s"), -ERR_ARG);
	CHECK_INT(read_with("ERRAND_BASH_GRACE_MS=3KiB"), -ERR_ARG);
	CHECK_INT(read_with("ERRAND_LIMITS_LIVE_TASKS=3s"), -ERR_ARG);
	CHECK_INT(read_with("ERRAND_SESSIONS_GRACE_S=1500ms"), -ERR_ARG);
	CHECK_INT(read_with("ERRAND_BASH_GRACE_MS=2d"), -ERR_ARG);
	CHECK_INT(read_with("ERRAND_BASH_LOG_HEAD=9223372036854775807TiB"), -ERR_ARG);
	CHECK_INT(read_with("ERRAND_BASH_LOG_HEAD=2TiB"), -ERR_ARG);
}

TEST(a_variable_of_a_section_that_is_no_key_is_a_mistake)
{
	CHECK(strstr(error_with("ERRAND_SESSIONS_GRACE=5"),
		     "no key for the variable ERRAND_SESSIONS_GRACE=5"));
	CHECK_INT(read_with("ERRAND_SESSION=me"), 0);
	CHECK_INT(read_with("ERRAND_TASK=u"), 0);
	CHECK_INT(read_with("ERRAND_STATE=/x"), 0);
	config_release(&config);
}

TEST(a_value_with_controls_is_shown_without_them)
{
	CHECK(strstr(error_with("ERRAND_BASH_GRACE_MS=\x1b[2J"),
		     "ERRAND_BASH_GRACE_MS= [2J"));
}

TEST(a_state_folder_is_absolute_or_below_home)
{
	CHECK_INT(read_with("LANG=C"), 0);
	CHECK(config.state_folder == NULL);
	CHECK_INT(read_with("ERRAND_STATE_FOLDER=/var/x"), 0);
	CHECK_STR(config.state_folder, "/var/x");
	CHECK_INT(read_with("ERRAND_STATE_FOLDER=~/x"), 0);
	CHECK_STR(config.state_folder, "/home/me/x");
	CHECK_INT(read_with("ERRAND_STATE_FOLDER="), 0);
	CHECK(config.state_folder == NULL);
	CHECK_STR(error_with("ERRAND_STATE_FOLDER=x/y"),
		  "ERRAND_STATE_FOLDER=x/y: expected an absolute path, or one that begins "
		  "with ~/");
}

TEST(a_command_is_a_path_and_words)
{
	CHECK_INT(read_with("LANG=C"), 0);
	CHECK(config.policy == NULL);
	CHECK_INT(config.policy_timeout_ms, 10000);
	CHECK_INT(read_with("ERRAND_POLICY_COMMAND=~/bin/judge  -v\tx "), 0);
	CHECK_STR(config.policy[0], "/home/me/bin/judge");
	CHECK_STR(config.policy[1], "-v");
	CHECK_STR(config.policy[2], "x");
	CHECK(config.policy[3] == NULL);
	CHECK_INT(read_with("ERRAND_POLICY_COMMAND= "), 0);
	CHECK(config.policy == NULL);
	CHECK_STR(error_with("ERRAND_POLICY_COMMAND=judge -v"),
		  "ERRAND_POLICY_COMMAND=judge -v: expected an absolute path, or one that "
		  "begins with ~/");
	config_release(&config);
}

TEST(a_command_has_at_most_64_words)
{
	struct buf setting = BUF_INIT(KIB(1));

	buf_adds(&setting, "ERRAND_POLICY_COMMAND=/x");
	for (int i = 1; i < 64; i++)
		buf_adds(&setting, " x");
	CHECK_INT(read_with(buf_text(&setting)), 0);
	CHECK(config.policy[63] && !config.policy[64]);
	buf_adds(&setting, " x");
	CHECK(strstr(error_with(buf_text(&setting)), "expected at most 64 words"));
	buf_release(&setting);
}

TEST(what_is_described_can_be_read_again)
{
	static const char *const no_files[] = {NULL};
	char path[] = "/tmp/errand-conf-XXXXXX";
	char grace[] = "ERRAND_BASH_GRACE_MS=7s", home[] = "HOME=/nonexistent";
	char *const env[] = {grace, home, NULL};
	const char *files[] = {path, NULL};
	struct buf text = BUF_INIT(KIB(64));
	int fd = mkstemp(path);

	config_release(&config);
	CHECK(fd >= 0);
	CHECK_INT(config_describe(env, &text, &err), 0);
	CHECK(strstr(buf_text(&text), "# Time between SIGTERM and SIGKILL.\n"
				      "# from ERRAND_BASH_GRACE_MS\ngrace_ms = 7000\n"));
	CHECK_INT(write(fd, text.data, text.len), text.len);
	close(fd);
	CHECK_INT(config_read_from(&config, files, NULL, &err), 0);
	CHECK_INT(config.grace_ms, 7000);
	CHECK(has_withheld("CURSOR_API_KEY"));
	(void)unlink(path);
	buf_release(&text);
	config_release(&config);
	CHECK_INT(config_read_from(&config, no_files, NULL, &err), 0);
	CHECK_INT(config.grace_ms, 3000);
	config_release(&config);
}
