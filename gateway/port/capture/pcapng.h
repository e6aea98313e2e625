// SPDX-License-Identifier: Apache-2.0
// Blocks of a pcapng file (draft-ietf-opsawg-pcapng): section header, interface description and
// enhanced packet blocks, in host byte order, times in nanoseconds. Pure; appends to a buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rocegw::port {

enum class CaptureDirection : uint8_t { kInbound = 1, kOutbound = 2 };  // as in epb_flags

struct PcapngPacket {
  uint32_t interface = 0;  // number in order of AppendPcapngInterface
  int64_t time_ns = 0;     // since 1970
  CaptureDirection direction = CaptureDirection::kInbound;
  size_t original_length = 0;
  // Captured bytes, in two pieces.
  std::span<const uint8_t> headers;
  std::span<const uint8_t> payload;
};

void AppendPcapngSection(std::vector<uint8_t>& out);
// Appends an Ethernet interface; snap_length 0 means whole packets.
void AppendPcapngInterface(std::string_view name, size_t snap_length, std::vector<uint8_t>& out);
void AppendPcapngPacket(const PcapngPacket& packet, std::vector<uint8_t>& out);
// Returns the length of the first block of `blocks`.
size_t PcapngBlockLength(std::span<const uint8_t> blocks);

}  // namespace rocegw::port
