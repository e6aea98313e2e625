// SPDX-License-Identifier: Apache-2.0
// Where a capture goes, and how it ends. Write and End are called on the capture's own thread,
// which nobody else waits for; Abort on any thread.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/base/status.h"

namespace rocegw::port {

enum class CaptureEnd : uint8_t { kStopped, kDuration, kBytes, kPackets, kFailed };

struct CaptureSummary {
  uint64_t packets = 0;  // written
  uint64_t missed = 0;   // the buffer was full
  uint64_t bytes = 0;    // of the file
  CaptureEnd end = CaptureEnd::kStopped;
  Status write_status;  // of the sink
};

class CaptureSink {
 public:
  virtual ~CaptureSink() = default;
  // The next bytes of the file. May block; an error ends the capture.
  virtual Status Write(std::span<const uint8_t> bytes) = 0;
  // The last call.
  virtual void End(const CaptureSummary& summary) = 0;
  // A Write under way, and all later ones, return soon with an error.
  virtual void Abort() = 0;
};

}  // namespace rocegw::port
