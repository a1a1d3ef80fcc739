/* SPDX-License-Identifier: MIT */
/*
 * banned.h - calls that must not compile; forced into every file by the build.
 *
 * Each of them writes without knowing how much room there is, keeps hidden state,
 * or reads numbers without telling what went wrong. The headers that declare them
 * come first, so that only calls are hit, not the declarations.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BANNED(func) sorry_##func##_is_banned_see_base_banned_h

/* No bound: use buf_add, snprintf, memcpy. */
#undef strcpy
#define strcpy(dst, src) BANNED(strcpy)
#undef strcat
#define strcat(dst, src) BANNED(strcat)
#undef stpcpy
#define stpcpy(dst, src) BANNED(stpcpy)
#undef sprintf
#define sprintf(...) BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf)
#undef gets
#define gets(s) BANNED(gets)

/* A bound, but not the one that is meant: pads, or leaves the NUL out. */
#undef strncpy
#define strncpy(dst, src, len) BANNED(strncpy)
#undef strncat
#define strncat(dst, src, len) BANNED(strncat)

/* Hidden state between calls. */
#undef strtok
#define strtok(str, sep) BANNED(strtok)
#undef asctime
#define asctime(tm) BANNED(asctime)
#undef asctime_r
#define asctime_r(tm, str) BANNED(asctime_r)
#undef ctime
#define ctime(t) BANNED(ctime)
#undef ctime_r
#define ctime_r(t, str) BANNED(ctime_r)
#undef gmtime
#define gmtime(t) BANNED(gmtime)
#undef localtime
#define localtime(t) BANNED(localtime)

/* No way to tell a wrong number from 0. */
#undef atoi
#define atoi(str) BANNED(atoi)
#undef atol
#define atol(str) BANNED(atol)
#undef atoll
#define atoll(str) BANNED(atoll)
#undef atof
#define atof(str) BANNED(atof)

/* Guessable names, a shell where none is needed. */
#undef mktemp
#define mktemp(str) BANNED(mktemp)
#undef tmpnam
#define tmpnam(str) BANNED(tmpnam)
#undef system
#define system(cmd) BANNED(system)
