/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What programs call of the headers that are not <pthread.h>, from a source that does not include
 * that. */
void alone_yield_until(int (*done)(void));
void alone_usleep_until(int (*done)(void));
void alone_nanosleep_until(int (*done)(void));
int alone_block(int number);
int alone_raise(int number);
