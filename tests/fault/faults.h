/* SPDX-License-Identifier: MIT */
/* faults.h - what is to go wrong in this process from now on (faults.c); NULL: nothing. */
#pragma once

void faults_begin(const char *fault);
