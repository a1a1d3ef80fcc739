/* SPDX-License-Identifier: MIT */
/* launch.h - the first client of a state folder starts its daemon, a newer one a newer one. */
#pragma once

#include "host/link.h"

/*
 * Connect to the host of the state folder, and start one if there is none, or if that is of an
 * older version than ours, which makes way (handover.h). If it does not it serves. Blocks, for some
 * seconds at most. Below an errand-shim only systemd may start it: else it would be part of the
 * task's tree, and end with it. LINK_BROKEN: there is none, and @err says why.
 */
enum link_state launch_link(const struct link_options *o, struct link **ret,
			    struct err *err);
/* Is there a systemd for this user, which is asked to start one? */
bool launch_has_systemd(void);
