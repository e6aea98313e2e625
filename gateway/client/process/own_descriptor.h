// SPDX-License-Identifier: Apache-2.0
// Descriptor of the library in a program that may close any number at any time (closefrom, as
// daemons do) and reuse the number for its own file. The library uses and closes a number only
// after checking that its file is still the same. Any thread.
#pragma once

#include <cstdint>

namespace rocegw::client {

struct OwnDescriptor {
  int number;         // -1: none
  uint64_t identity;  // socket cookie, or device and inode
};
constexpr OwnDescriptor kNoDescriptor = {-1, 0};

// Records which file the number refers to now.
OwnDescriptor Own(int number);
// Returns false if the program closed the number; it may use it for another file.
bool IsStillOwn(const OwnDescriptor& descriptor);
// Closes the number if it is still ours, and sets kNoDescriptor.
void CloseOwn(OwnDescriptor* descriptor);

// Closes a descriptor that the program cannot know yet, and sets -1.
void CloseIfOpen(int* descriptor);

// Moves a descriptor of the library out of the range that programs use (select, dup2 to small
// numbers).
int MoveAside(int descriptor);

}  // namespace rocegw::client
