/* SPDX-License-Identifier: MIT */
/*
 * main.c - errand-shim: starts one task, keeps its log, ends it, records its end.
 *
 * Not for people: it is born with a run folder at descriptor 3 and its host at 4, and has
 * no arguments, so that nothing about the task can be seen in a list of processes.
 */
#include "shim/shim.h"

#ifdef __SANITIZE_ADDRESS__
/* The search for leaks stops us by ptrace, and waits for ever where a host's SIGCONT comes just
 * then. Whatever is allocated here is allocated before the fork, for as long as we live. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}
#endif

int main(void)
{
	static struct shim shim;

	if (!shim_start(&shim))
		return 1;
	shim_loop(&shim);
	shim_leave(&shim);
	return 0;
}
