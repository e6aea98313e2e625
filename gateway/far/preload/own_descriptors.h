// SPDX-License-Identifier: Apache-2.0
// Descriptors of this library and of the verbs libraries below it, which the program must neither
// close nor replace: a program may close all numbers, and use one again for its own file, to which
// the library would write then. They have high numbers, which programs expect free less often. Any
// thread, no locks.
#pragma once

#include <vector>

namespace rocegw::far {

// Numbers above a bound are not recorded.
void OwnDescriptor(int fd);
// Open descriptors, in ascending order.
std::vector<int> OpenDescriptors();
// Records descriptors that were opened since `before`, by the verbs libraries, which close them in
// their own ways: they are this library's while the number leads to the same file. When the process
// was not alone, only those that are certainly none of the program: devices and the gateway's
// socket.
void OwnNewDescriptors(const std::vector<int>& before, bool alone);
// Whether the process has one thread.
bool IsAlone();
void DisownDescriptor(int fd);
bool IsOwnDescriptor(int fd);
// The first one at or above `from`; -1: there is none.
int NextOwnDescriptor(int from);
// In a child of fork, which may close all.
void DisownAllDescriptors();

// While an object lives, descriptors that are opened get high numbers: the low ones are taken.
class LowNumbersTaken {
 public:
  LowNumbersTaken();
  ~LowNumbersTaken();
  LowNumbersTaken(const LowNumbersTaken&) = delete;
  LowNumbersTaken& operator=(const LowNumbersTaken&) = delete;

 private:
  static constexpr int kLowest = 100;  // as the verbs library does

  int taken_[kLowest];
  int count_ = 0;
};

}  // namespace rocegw::far
