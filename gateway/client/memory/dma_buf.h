// SPDX-License-Identifier: Apache-2.0
// Registration of dma-bufs (ibv_reg_dmabuf_mr). Program and gateway map the same buffer: the
// library maps it for payloads that it copies when requests are posted and polled, the gateway for
// all others. Only exporters whose buffers have pages that processors can map and that never vanish
// are accepted; the gateway decides (gateway/memory/dma_buf.h). Control path; any thread.
#pragma once

#include <cstdint>

#include "gateway/client/session/session.h"

namespace rocegw::client {

// Mapping of a registered dma-buf; part of its memory region's object.
struct DmaBufMapping {
  void* base;       // address of the buffer's first byte; nullptr: the region is no dma-buf
  uint64_t length;  // bytes of the mapping
  uint32_t region;  // the daemon's handle
};

// Unmaps the buffer here and in the gateway. Call when the daemon has released the registration.
void EndDmaBuf(Session* session, DmaBufMapping* mapping);

}  // namespace rocegw::client
