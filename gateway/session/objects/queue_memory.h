// SPDX-License-Identifier: Apache-2.0
// Shared memory of a queue: its blocks, and how much of it carries payloads. Control thread.
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

// All or none: false leaves nothing allocated.
bool AllocateBlocks(ClientSession& session, std::span<const WantedBlock> wanted);

// Bytes for a payload beside each entry, where so many in all are worth it; 0: none.
uint32_t PayloadStride(uint32_t entries, uint32_t budget);

}  // namespace rocegw::session
