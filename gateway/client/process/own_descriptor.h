// SPDX-License-Identifier: Apache-2.0
// A descriptor of the library in a program that may close any number at any time (closefrom, as
// daemons do) and get the number again for a file of its own. The library uses and closes such a
// number only after a look that the file behind it is still the same. Any thread.
#pragma once

#include <cstdint>

namespace rocegw::client {

struct OwnDescriptor {
  int number;         // -1: none
  uint64_t identity;  // socket cookie, or device and inode
};
constexpr OwnDescriptor kNoDescriptor = {-1, 0};

// Records which file the number stands for now.
OwnDescriptor Own(int number);
// False: the program closed the number, and may use it for something else.
bool IsStillOwn(const OwnDescriptor& descriptor);
// Closes the number if it is still ours. kNoDescriptor afterwards.
void CloseOwn(OwnDescriptor* descriptor);

// -1 afterwards. For descriptors that the program had no time to learn about.
void CloseIfOpen(int* descriptor);

// Moves a descriptor of the library out of the range that programs use (select, dup2 to small
// numbers).
int MoveAside(int descriptor);

}  // namespace rocegw::client
