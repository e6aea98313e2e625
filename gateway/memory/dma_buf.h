// SPDX-License-Identifier: Apache-2.0
// Dma-bufs that programs pass for registration (ibv_reg_dmabuf_mr(3)). A descriptor of a program
// may be any file, so it is inspected before it is mapped. The gateway maps buffers of exporters
// only whose pages exist for the whole life of the buffer: an access to such a mapping neither
// faults nor waits. Buffers of other exporters can lose their pages (graphics memory that is
// purged), which would raise SIGBUS in the gateway.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/base/status.h"

namespace rocegw::memory {

struct DmaBuf {
  std::string exporter;  // kernel driver that made the buffer
  uint64_t length = 0;   // bytes
};

// Returns OK for a dma-buf; EINVAL: the descriptor is another file. The call may block for any time
// if the descriptor is a file that another party serves (FUSE), so no thread that others need makes
// it. The kernel alone creates dma-bufs: what follows waits for no program.
Status CheckDmaBuf(int fd);
// Describes a dma-buf, which was checked.
StatusOr<DmaBuf> InspectDmaBuf(int fd);

// Returns the exporter that the text of /proc/self/fdinfo/N names; empty: none. The program can
// choose the buffer's name, which is in a later line.
std::string_view ExporterIn(std::string_view fdinfo);

// Returns true if buffers of the exporter keep their pages as long as they exist: "udmabuf" pins
// pages of a memfd that cannot shrink, and the heap "system" allocates them (/dev/dma_heap/system).
bool KeepsPages(std::string_view exporter);

}  // namespace rocegw::memory
