// SPDX-License-Identifier: Apache-2.0
// Programs that close what they did not open (closefrom(), or one number after the other) do not
// close what this library has open: to them it is not there (os/own_numbers.hpp). Nor do they put
// anything in its place: those who wait in there know it by its number, and the number is to the
// program one beyond what it may have.
#pragma once

namespace strata::preload {

// close(), close_range(), closefrom(), dup2(), dup3(). Also in handlers, and in the child of a
// vfork().
int close_one(int fd);
int close_range_of(unsigned first, unsigned last, int flags);
void close_from(int lowest);
int replace(int fd, int replaced);
int replace_with(int fd, int replaced, int flags);

}  // namespace strata::preload
