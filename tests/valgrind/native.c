/* SPDX-License-Identifier: MIT */
/*
 * native.c - preloaded under valgrind, which lacks some system calls and bends others.
 *
 * pidfd_open and pidfd_send_signal are unknown to valgrind 3.19 (ENOSYS): the real processor
 * makes them, and valgrind does not see it. posix_spawn() is a plain fork there, so that a
 * program that cannot be executed is no error: that is looked at before. A read into megabytes
 * is cut short, as any may be: to mark all of them costs more than the read.
 */
#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <valgrind/valgrind.h>

#define MANY_BYTES (4L << 20)
#define MOST_OF_A_READ 65536
#define LAST_ERRNO 4095

struct call {
	long number, arguments[6];
};

static long enter(const struct call *c)
{
	register long fourth __asm__("r10") = c->arguments[3];
	register long fifth __asm__("r8") = c->arguments[4];
	register long sixth __asm__("r9") = c->arguments[5];
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(c->number), "D"(c->arguments[0]), "S"(c->arguments[1]),
			   "d"(c->arguments[2]), "r"(fourth), "r"(fifth), "r"(sixth)
			 : "rcx", "r11", "memory");
	return result;
}

/* On the real processor: no libc, no errno. */
static long enter_natively(unsigned thread, const struct call *c)
{
	(void)thread;
	return enter(c);
}

static long returned(long result)
{
	if (result >= 0 || result < -LAST_ERRNO)
		return result;
	errno = (int)-result;
	return -1;
}

long syscall(long number, ...)
{
	struct call c = {.number = number};
	va_list ap;

	va_start(ap, number);
	for (size_t i = 0; i < sizeof(c.arguments) / sizeof(c.arguments[0]); i++)
		c.arguments[i] = va_arg(ap, long);
	va_end(ap);
	if (RUNNING_ON_VALGRIND &&
	    (number == SYS_pidfd_open || number == SYS_pidfd_send_signal))
		return returned((long)VALGRIND_NON_SIMD_CALL1(enter_natively, &c));
	return returned(enter(&c));
}

ssize_t read(int fd, void *bytes, size_t size)
{
	struct call c = {SYS_read, {fd, (long)bytes, (long)size}};

	if (RUNNING_ON_VALGRIND && size > MANY_BYTES)
		c.arguments[2] = MOST_OF_A_READ;
	return returned(enter(&c));
}

int posix_spawn(pid_t *ret, const char *path, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attributes, char *const argv[], char *const env[])
{
	int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *,
		    const posix_spawnattr_t *, char *const[], char *const[]);

	if (RUNNING_ON_VALGRIND && access(path, X_OK) != 0)
		return errno;
	*(void **)&real = dlsym(RTLD_NEXT, "posix_spawn");
	return real(ret, path, actions, attributes, argv, env);
}
