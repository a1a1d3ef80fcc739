/* SPDX-License-Identifier: MIT */
/* doctor.h - is all there that errand needs here, and what to do where it is not. */
#pragma once

#include <stddef.h>

enum doctor_verdict {
	DOCTOR_FINE,
	DOCTOR_POORER, /* it works, with less */
	DOCTOR_BROKEN,
};

/* One finding: of what, and a sentence. Both are borrowed. */
typedef void (*doctor_fn)(void *ud, enum doctor_verdict verdict, const char *what,
			  const char *text);

/* Look at everything; @state as in state_folder(). */
void doctor(const char *state, doctor_fn fn, void *ud);
