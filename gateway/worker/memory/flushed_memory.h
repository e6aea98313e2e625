// SPDX-License-Identifier: Apache-2.0
// Proof that the memory operations that were queued have been executed or handed to their copiers
// (memory_executor.h). A step that may only follow them takes it as an argument.
#pragma once

namespace rocegw::worker {

class FlushedMemory {
 private:
  friend class MemoryExecutor;
  FlushedMemory() {}  // NOLINT(modernize-use-equals-default): an aggregate could be made by anybody
};

}  // namespace rocegw::worker
