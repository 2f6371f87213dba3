/* SPDX-License-Identifier: Apache-2.0 */
/* See pthread.h beside this. */
#pragma GCC system_header
#include_next <spawn.h>
#if !defined STRATA_SHIM_SPAWN_H && !defined __cplusplus
#define STRATA_SHIM_SPAWN_H
#pragma redefine_extname posix_spawn strata_posix_spawn
#pragma redefine_extname posix_spawnp strata_posix_spawnp
#endif
