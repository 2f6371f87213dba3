/* SPDX-License-Identifier: Apache-2.0 */
/* See pthread.h beside this. */
#pragma once
#include <pthread.h>
