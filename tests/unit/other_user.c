/* SPDX-License-Identifier: MIT */
/*
 * other_user.c - a program that test_shim_uid.c installs setuid: it becomes its owner and
 * says "up"; with SIGUSR1 it turns back into the user who started it.
 */
#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t is_asked;

static void ask(int sig)
{
	(void)sig;
	is_asked = 1;
}

int main(void)
{
	uid_t who = getuid(), owner = geteuid();

	(void)signal(SIGUSR1, ask);
	/* As long as the real one stays, its user may signal it. */
	if (owner == who || setresuid(owner, owner, owner) != 0 || write(1, "up\n", 3) != 3)
		return 1;
	while (!is_asked)
		(void)pause();
	if (setresuid(who, who, who) != 0)
		return 1;
	for (;;)
		(void)pause();
}
