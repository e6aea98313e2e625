// SPDX-License-Identifier: Apache-2.0
// Controls of the fake driver libraries (libcuda.so.1, libamdhip64.so.6) in the process that loaded
// one. Functions of a shared library that tests open by its path.
#pragma once

struct FakeCudaCounts {
  int copies = 0;    // asynchronous ones, so far
  int events = 0;    // recorded so far
  int contexts = 0;  // alive
  int opened = 0;    // allocations of other processes, open now
  int pinned = 0;    // pieces of host memory that the driver allocated
};

extern "C" {
// The copy after `after` more ones is refused with that result.
void FakeCudaFail(int result, int after);
// Events say "not ready" so many times; -1: for ever.
void FakeCudaWaits(int queries);
// Every call fails from now on, as after a reset of the device; 0: works again. A context that was
// used meanwhile stays failed.
void FakeCudaLose(int lost);
// Ends all contexts that the calling thread does not use, as the end of their process would.
void FakeCudaEndOthers();
FakeCudaCounts FakeCudaCount();
}
