// SPDX-License-Identifier: Apache-2.0
// Shared memory of a queue: its blocks, and their payload space. Control thread.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/session/client_session.h"

namespace rocegw::session {

struct WantedBlock {
  shm::Block& block;
  shm::Writer writer;
  uint64_t bytes;  // 0: none is needed
};

// Allocates all blocks or none; returns false for none.
bool AllocateBlocks(ClientSession& session, std::span<const WantedBlock> wanted);

// Returns the payload bytes per entry within a total budget; 0: too few to be useful.
uint32_t PayloadStride(uint32_t entries, uint32_t budget);

}  // namespace rocegw::session
