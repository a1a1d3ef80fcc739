/* SPDX-License-Identifier: MIT */
/*
 * abi.h - structs from programs that were built with an older or a newer errand.h.
 *
 * A struct says its size first and grows only at its end. What an older program does not have
 * is zero, which is the default; what a newer one has must be zero, for we would not heed it,
 * and so must its flags.
 */
#pragma once

#include <stddef.h>

#include "core/text.h"

enum abi_struct {
	ABI_HOST_OPTIONS,
	ABI_AGENT_OPTIONS,
	ABI_TOOL,
	ABI_LISTENER,
	ABI_CALL_OPTIONS,
	ABI_PRODUCER,
	ABI_TASK_SPEC,
};

/* More than any of them will ever have: a size above it is no size. */
#define ABI_MAX_SIZE 4096

/*
 * Fill @to, our version of the struct, from @from, the caller's. EARG: a size that cannot be,
 * and @to is zero; or a surplus that is not zero, or an unknown flag: @to is filled, so that ud
 * can be destroyed.
 */
int abi_take(const struct mem *m, enum abi_struct which, void *to, const void *from,
	     errand_error **ret_err);
/* The same for the producer in @spec, which may not reach out of it. */
int abi_take_spec(const struct mem *m, struct errand_task_spec *to,
		  const struct errand_task_spec *spec, errand_error **ret_err);
