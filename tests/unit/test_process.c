/* SPDX-License-Identifier: MIT */
/* How a process ended, in the words of the contract; each status is one of a real child. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "errand.h"

/* The wait status of a child that exits with @code, or dies of @sig. */
static int status_of(int code, int sig)
{
	int status = 0;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		if (sig) {
			sigset_t set;

			(void)signal(sig, SIG_DFL);
			sigemptyset(&set);
			sigaddset(&set, sig);
			sigprocmask(SIG_UNBLOCK, &set, NULL);
			raise(sig);
		}
		_exit(code);
	}
	CHECK_INT(waitpid(pid, &status, WUNTRACED), pid);
	if (WIFSTOPPED(status)) {
		int last;

		kill(pid, SIGKILL);
		CHECK_INT(waitpid(pid, &last, 0), pid);
	}
	return status;
}

static const char *outcome(int wait_status, int kill_requested, int64_t timed_out_ms)
{
	static const char *const words[] = {[ERRAND_COMPLETED] = "completed",
					    [ERRAND_KILLED] = "killed",
					    [ERRAND_FAILED] = "failed"};
	static char shown[128];
	errand_text *detail = NULL;
	int status = 0;

	CHECK_INT(errand_process_outcome(wait_status, kill_requested, timed_out_ms, &status,
					 &detail),
		  0);
	(void)snprintf(shown, sizeof(shown), "%s, %s", words[status],
		       errand_text_data(detail, NULL));
	errand_text_free(detail);
	return shown;
}

TEST(an_exit_is_completed_whatever_its_code)
{
	CHECK_STR(outcome(status_of(0, 0), 0, 0), "completed, exit code: 0");
	CHECK_STR(outcome(status_of(3, 0), 0, 0), "completed, exit code: 3");
	CHECK_STR(outcome(status_of(255, 0), 0, 0), "completed, exit code: 255");
}

TEST(a_signal_is_killed_and_named)
{
	CHECK_STR(outcome(status_of(0, SIGKILL), 0, 0), "killed, signal: SIGKILL");
	CHECK_STR(outcome(status_of(0, SIGTERM), 0, 0), "killed, signal: SIGTERM");
}

TEST(a_core_dump_is_no_other_signal)
{
	CHECK_STR(outcome(SIGSEGV | 0x80, 0, 0), "killed, signal: SIGSEGV");
}

TEST(a_signal_without_a_name_is_a_number)
{
	char expected[32];

	(void)snprintf(expected, sizeof(expected), "killed, signal: %d", SIGRTMIN);
	CHECK_STR(outcome(status_of(0, SIGRTMIN), 0, 0), expected);
}

TEST(after_a_kill_it_is_killed_whichever_way_it_went)
{
	CHECK_STR(outcome(status_of(0, SIGTERM), 1, 0), "killed, signal: SIGTERM");
	CHECK_STR(outcome(status_of(7, 0), 1, 0), "killed, exit code: 7");
}

TEST(a_deadline_says_how_long_it_was)
{
	CHECK_STR(outcome(status_of(0, SIGKILL), 0, 1500),
		  "killed, timed out after 1500ms");
	CHECK_STR(outcome(status_of(0, 0), 1, 1), "killed, timed out after 1ms");
}

TEST(a_process_that_only_stopped_has_not_ended)
{
	errand_text *detail = NULL;
	int status = 0;

	CHECK_INT(errand_process_outcome(status_of(0, SIGSTOP), 0, 0, &status, &detail),
		  ERRAND_EARG);
	CHECK_INT(errand_process_outcome(0xffff, 0, 0, &status, &detail), ERRAND_EARG);
	CHECK(status == 0 && !detail);
}

TEST(an_outcome_needs_a_place_and_no_negative_time)
{
	errand_text *detail = NULL;
	int status;

	CHECK_INT(errand_process_outcome(0, 0, 0, NULL, &detail), ERRAND_EARG);
	CHECK_INT(errand_process_outcome(0, 0, 0, &status, NULL), ERRAND_EARG);
	CHECK_INT(errand_process_outcome(0, 0, -1, &status, &detail), ERRAND_EARG);
}
