// SPDX-License-Identifier: Apache-2.0
// Destination of a capture. Write and End run on the capture's own thread, for which no other
// thread waits; Abort runs on any thread.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/base/status.h"

namespace rocegw::port {

enum class CaptureEnd : uint8_t { kStopped, kDuration, kBytes, kPackets, kFailed };

struct CaptureSummary {
  uint64_t packets = 0;  // written
  uint64_t missed = 0;   // dropped because the buffer was full
  uint64_t bytes = 0;    // size of the file
  CaptureEnd end = CaptureEnd::kStopped;
  Status write_status;  // error of the sink
};

class CaptureSink {
 public:
  virtual ~CaptureSink() = default;
  // Writes the next bytes of the file. May block; an error ends the capture.
  virtual Status Write(std::span<const uint8_t> bytes) = 0;
  // Ends the capture; the last call.
  virtual void End(const CaptureSummary& summary) = 0;
  // Makes the current Write and all later ones return soon with an error.
  virtual void Abort() = 0;
};

}  // namespace rocegw::port
