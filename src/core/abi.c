/* SPDX-License-Identifier: MIT */
#include "core/abi.h"

#include <stdbool.h>
#include <string.h>

#define END_OF(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))
#define ROW(type, last)                                                                    \
	{                                                                                  \
#type, END_OF(struct type, last), sizeof(struct type)                      \
	}

/* @first is the size of the first version, named by its last member: it never changes. */
static const struct abi {
	const char *name;
	size_t first, now;
} structs[] = {
	[ABI_HOST_OPTIONS] = ROW(errand_host_options, oom),
	[ABI_AGENT_OPTIONS] = ROW(errand_agent_options, destroy),
	[ABI_TOOL] = ROW(errand_tool, destroy),
	[ABI_LISTENER] = ROW(errand_listener, destroy),
	[ABI_CALL_OPTIONS] = ROW(errand_call_options, destroy),
	[ABI_PRODUCER] = ROW(errand_producer, destroy),
	[ABI_TASK_SPEC] = {"errand_task_spec",
			   offsetof(struct errand_task_spec, producer) +
				   END_OF(struct errand_producer, destroy),
			   sizeof(struct errand_task_spec)},
};

static bool is_zero(const unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return false;
	return true;
}

int abi_take(const struct mem *m, enum abi_struct which, void *to, const void *from,
	     errand_error **ret_err)
{
	const struct abi *abi = &structs[which];
	uint32_t size;

	memset(to, 0, abi->now);
	memcpy(&size, from, sizeof(size));
	if (size < abi->first || size > ABI_MAX_SIZE)
		return error_make(ret_err, m, ERRAND_EARG,
				  "struct %s: its .size is %u, expected %zu to %d",
				  abi->name, size, abi->first, ABI_MAX_SIZE);
	memcpy(to, from, size < abi->now ? size : abi->now);
	if (size > abi->now &&
	    !is_zero((const unsigned char *)from + abi->now, size - abi->now))
		return error_make(ret_err, m, ERRAND_EARG,
				  "struct %s: it has members that this version of the "
				  "library does not know (.size %u, known %zu)",
				  abi->name, size, abi->now);
	return 0;
}

int abi_take_spec(const struct mem *m, struct errand_task_spec *to,
		  const struct errand_task_spec *spec, errand_error **ret_err)
{
	int rc = abi_take(m, ABI_TASK_SPEC, to, spec, ret_err);

	if (rc != 0)
		return rc;
	if (to->producer.size > spec->size - offsetof(struct errand_task_spec, producer)) {
		memset(&to->producer, 0, sizeof(to->producer));
		return error_make(ret_err, m, ERRAND_EARG,
				  "struct errand_producer: it reaches out of its "
				  "errand_task_spec");
	}
	return abi_take(m, ABI_PRODUCER, &to->producer, &spec->producer, ret_err);
}
