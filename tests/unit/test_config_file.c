/* SPDX-License-Identifier: MIT */
/* Tests of errand.conf: src/host/config_file.c, and config.c on files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "check.h"
#include "host/config.h"

static struct config config;
static struct err err;
static char folder[] = "/tmp/errand-conf-XXXXXX";
static char first[64], second[64];

static void begin(void)
{
	if (!first[0]) {
		CHECK(mkdtemp(folder) != NULL);
		(void)snprintf(first, sizeof(first), "%s/a", folder);
		(void)snprintf(second, sizeof(second), "%s/b", folder);
	}
	(void)unlink(first);
	(void)unlink(second);
}

__attribute__((destructor)) static void end(void)
{
	(void)unlink(first);
	(void)unlink(second);
	(void)rmdir(folder);
}

static void write_bytes(const char *path, const void *bytes, size_t len)
{
	FILE *f = fopen(path, "we");

	CHECK(f != NULL);
	CHECK_INT(fwrite(bytes, 1, len, f), len);
	CHECK_INT(fclose(f), 0);
	CHECK_INT(chmod(path, 0644), 0);
}

static int read_files(char *const *env)
{
	const char *files[] = {first, second, NULL};

	config_release(&config);
	return config_read_from(&config, files, env, &err);
}

static int read_bytes(const void *bytes, size_t len)
{
	begin();
	write_bytes(first, bytes, len);
	return read_files(NULL);
}

#define READ(text) read_bytes(text, sizeof(text) - 1)

/* What is said about @text, behind the file's name. */
static const char *error_of(const char *text)
{
	CHECK_INT(read_bytes(text, strlen(text)), -ERR_ARG);
	CHECK(strncmp(err.msg, first, strlen(first)) == 0);
	return err.msg + strlen(first);
}

/* ---- places ---- */

TEST(no_file_is_as_good_as_an_empty_one)
{
	begin();
	CHECK_INT(read_files(NULL), 0);
	CHECK_INT(config.live_tasks, 32);
	CHECK_INT(READ(""), 0);
	CHECK_INT(config.live_tasks, 32);
	config_release(&config);
}

TEST(the_later_file_wins_and_the_environment_over_both)
{
	char setting[] = "ERRAND_BASH_GRACE_MS=3";
	char *const env[] = {setting, NULL};

	begin();
	write_bytes(first, "[bash]\ngrace_ms=1\noutput_limit=1\nlog_head=1\n", 44);
	write_bytes(second, "[bash]\ngrace_ms=2\noutput_limit=2\n", 33);
	CHECK_INT(read_files(env), 0);
	CHECK_INT(config.log_head, 1);
	CHECK_INT(config.output_limit, 2);
	CHECK_INT(config.grace_ms, 3);
	config_release(&config);
}

TEST(a_bad_value_is_an_error_even_where_a_later_one_would_win)
{
	begin();
	write_bytes(first, "[bash]\ngrace_ms=x\n", 18);
	write_bytes(second, "[bash]\ngrace_ms=2\n", 18);
	CHECK_INT(read_files(NULL), -ERR_ARG);
}

TEST(the_same_key_may_stand_in_two_files_but_not_twice_in_one)
{
	CHECK_STR(error_of("[bash]\ngrace_ms=1\n\ngrace_ms=2\n"),
		  ":4: 'grace_ms' is set already, in line 2");
	CHECK_STR(error_of("[bash]\ngrace_ms=1\n[wait]\n[bash]\ngrace_ms=1\n"),
		  ":5: 'grace_ms' is set already, in line 2");
}

/* ---- lines ---- */

TEST(comments_blanks_and_both_ends_of_lines_are_taken)
{
	CHECK_INT(READ("# one\n; two\n\n[bash] ; three\r\n  grace_ms : 5  ; four\r\n"
		       "log_tail=7"),
		  0);
	CHECK_INT(config.grace_ms, 5);
	CHECK_INT(config.log_tail, 7);
	CHECK_INT(READ("\xef\xbb\xbf[bash]\ngrace_ms=6\n"), 0);
	CHECK_INT(config.grace_ms, 6);
	config_release(&config);
}

TEST(an_unknown_key_or_section_is_named_with_those_that_there_are)
{
	CHECK_STR(error_of("[sessions]\ngrace=1\n"),
		  ":2: no key 'grace' in [sessions]: expected one of grace_s, keep_for_s");
	CHECK(strstr(error_of("[shell]\n\ngrace_ms=1\n"),
		     ":3: no section [shell]: expected one of state, limits, bash"));
	CHECK(strstr(error_of("grace_ms=1\n"), ":1: no section []"));
}

TEST(a_line_that_is_no_setting_is_named)
{
	CHECK_STR(error_of("[bash]\ngrace_ms\n"),
		  ":2: expected `name = value` or `[section]`");
	CHECK_STR(error_of("[bash\ngrace_ms=1\n"),
		  ":1: expected `name = value` or `[section]`");
	CHECK(strstr(error_of("nonsense\n[bash]\ngrace_ms=x\n"), ":1: expected `name"));
}

TEST(a_long_line_is_refused_and_not_read_in_pieces)
{
	char text[1024] = "[bash]\n#";

	memset(text + 8, 'x', 400);
	(void)snprintf(text + 408, 32, "\ngrace_ms=1\n");
	CHECK(strstr(error_of(text), ":2: a line of 402 bytes: expected at most "));
}

TEST(control_characters_are_refused_with_their_line)
{
	CHECK_INT(READ("[bash]\ngrace_ms=1\0\n"), -ERR_ARG);
	CHECK_STR(err.msg + strlen(first), ":2: a control character (0x00)");
	CHECK_STR(error_of("[bash]\n\n# \x1b[2J\n"), ":3: a control character (0x1b)");
}

TEST(other_bytes_than_text_end_in_a_readable_error)
{
	CHECK_STR(
		error_of("[bash]\ngrace_ms=\xff\xe2\x80\xae\n"),
		":2: grace_ms = \xef\xbf\xbd: expected a number of milliseconds from 0 to "
		"86400000, or with a unit (ms, s, min, h, d)");
}

TEST(a_list_of_names_goes_on_in_indented_lines)
{
	CHECK_INT(READ("[bash]\nwithheld_env =\n\tA, B,\n\n  # not D\n\tC\n"), 0);
	CHECK_STR(config.withheld[0], "A");
	CHECK_STR(config.withheld[1], "B");
	CHECK_STR(config.withheld[2], "C");
	CHECK(config.withheld[3] == NULL);
	CHECK_STR(error_of("[bash]\ngrace_ms=1\n  log_head=2\n"),
		  ":3: an indented line goes on with 'grace_ms', which has one value");
	CHECK(strstr(error_of("[bash]\nwithheld_env=A,\n  B C\n"),
		     ":3: withheld_env = B C: expected at most 1000 names"));
	config_release(&config);
}

TEST(a_default_wait_above_the_cap_is_named_with_its_place)
{
	CHECK_STR(error_of("[wait]\nmax_ms=10\ndefault_ms=11\n"),
		  ":3: wait.default_ms is 11: expected at most wait.max_ms, which is 10");
}

TEST(every_beginning_of_a_file_is_read_or_refused)
{
	static const char text[] = "\xef\xbb\xbf# c\r\n[bash]\r\ngrace_ms = 30s ; c\r\n"
				   "withheld_env = A,\n  B\n\n[state]\nfolder=~/x\n[wait]\n"
				   "max_ms=1\n";

	for (size_t len = 0; len < sizeof(text); len++) {
		int rc = read_bytes(text, len);

		CHECK(rc == 0 || (rc == -ERR_ARG && strstr(err.msg, ": ")));
	}
	config_release(&config);
}

TEST(no_byte_in_any_place_does_harm)
{
	char text[] = "[bash]\nwithheld_env=A,\n B\n[wait]\nmax_ms=9\n";

	for (size_t i = 0; i + 1 < sizeof(text); i++)
		for (int c = 0; c < 256; c += c % 32 == 31 ? 17 : 1) {
			char was = text[i];
			int rc;

			text[i] = (char)c;
			rc = read_bytes(text, sizeof(text) - 1);
			CHECK(rc == 0 || rc == -ERR_ARG);
			text[i] = was;
		}
	config_release(&config);
}

/* ---- whose file ---- */

TEST(a_file_that_others_may_write_is_refused)
{
	begin();
	write_bytes(first, "", 0);
	CHECK_INT(chmod(first, 0664), 0);
	CHECK_INT(read_files(NULL), -ERR_ARG);
	CHECK(strstr(err.msg, "can be written by others (mode 0664): chmod go-w it"));
	CHECK_INT(chmod(first, 0646), 0);
	CHECK_INT(read_files(NULL), -ERR_ARG);
}

TEST(a_file_of_somebody_else_is_refused)
{
	if (geteuid() != 0)
		skip(); /* nobody else's file can be made */
	begin();
	write_bytes(first, "", 0);
	CHECK_INT(chown(first, 4711, 0), 0);
	CHECK_INT(read_files(NULL), -ERR_ARG);
	CHECK(strstr(err.msg, "belongs to uid 4711: it must be root's or our own"));
}

TEST(a_link_is_followed_to_a_file_that_is_looked_at)
{
	begin();
	write_bytes(second, "[bash]\ngrace_ms=9\n", 18);
	CHECK_INT(symlink(second, first), 0);
	CHECK_INT(read_files(NULL), 0);
	CHECK_INT(config.grace_ms, 9);
	CHECK_INT(chmod(second, 0666), 0);
	CHECK_INT(read_files(NULL), -ERR_ARG);
	config_release(&config);
}

TEST(what_is_no_file_is_refused_and_nobody_waits_for_it)
{
	begin();
	CHECK_INT(mkfifo(first, 0600), 0);
	CHECK_INT(read_files(NULL), -ERR_ARG);
	CHECK(strstr(err.msg, "is no regular file"));
	CHECK_INT(unlink(first), 0);
	CHECK_INT(symlink(first, first), 0);
	CHECK_INT(read_files(NULL), -ERR_SYS);
	CHECK(strstr(err.msg, strerror(ELOOP)));
}

TEST(a_huge_file_is_refused)
{
	static char text[70000];

	memset(text, '\n', sizeof(text));
	CHECK_INT(read_bytes(text, sizeof(text)), -ERR_ARG);
	CHECK(strstr(err.msg, "is longer than 64512 bytes"));
}
