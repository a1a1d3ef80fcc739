/* SPDX-License-Identifier: MIT */
/* owners.h - whose calls these are: a name, and the agent that it stands for. */
#pragma once

#include <stddef.h>

#include "base/list.h"
#include "base/map.h"
#include "errand.h"

struct err;

struct owners {
	errand_host *host;
	struct list all; /* struct owner */
	struct map by_name;
	size_t count;
};

void owners_init(struct owners *o); /* then set .host */
void owners_release(struct owners *o);

/* The agent of @name, made when it is new. ERR_LIMIT: too many. */
int owners_agent(struct owners *o, const char *name, size_t len, errand_agent *ret,
		 struct err *err) __attribute__((warn_unused_result));
