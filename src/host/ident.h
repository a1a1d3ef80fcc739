/* SPDX-License-Identifier: MIT */
/* ident.h - names: of messages, of the client, of the program beside us. */
#pragma once

struct err;

#define IDENT_UUID 36

/* A random UUID (version 4); @ret has room for it and a NUL. */
void ident_uuid(char *ret);
/* What names the client's own owner: @session, ERRAND_SESSION, CLAUDE_CODE_SESSION_ID; NULL:
 * nothing does. Borrowed. */
const char *ident_session(const char *session);
/* The same, or a name that nobody else has. Free it. */
char *ident_owner(const char *session);
/* The home folder that @env, which is as environ, names, else the user's. Free it. */
char *ident_home(char *const *env);
/* The path of errand-shim: beside this program, or in ../libexec/errand. NULL: nowhere. */
char *ident_shim(struct err *err);
