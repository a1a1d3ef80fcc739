/* SPDX-License-Identifier: MIT */
/*
 * headless.c - a process whose first thread has ended while another goes on: what /proc tells
 * of it says "zombie". It ends by a signal; should nobody send one, by its own.
 */
#include <pthread.h>
#include <unistd.h>

static void *go_on(void *unused)
{
	while (pause() != 0)
		;
	return unused;
}

int main(void)
{
	pthread_t thread;

	(void)alarm(120);
	if (pthread_create(&thread, NULL, go_on, NULL) != 0)
		return 1;
	pthread_exit(NULL);
}
