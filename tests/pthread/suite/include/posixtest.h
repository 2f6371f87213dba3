/* SPDX-License-Identifier: Apache-2.0
   The words of the Open POSIX Test Suite, for programs of its shape that test posix_suite.py. */
#pragma once
#define PTS_PASS 0
#define PTS_FAIL 1
#define PTS_UNRESOLVED 2
#define PTS_UNSUPPORTED 4
#define PTS_UNTESTED 5
