// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/capture/pcapng.h"

#include <cstring>

namespace rocegw::port {
namespace {

constexpr uint32_t kSectionHeaderBlock = 0x0A0D0D0A;
constexpr uint32_t kInterfaceBlock = 1;
constexpr uint32_t kEnhancedPacketBlock = 6;
constexpr uint32_t kByteOrderMagic = 0x1A2B3C4D;
constexpr uint16_t kLinkTypeEthernet = 1;
constexpr uint16_t kOptionEnd = 0;
constexpr uint16_t kOptionInterfaceName = 2;
constexpr uint16_t kOptionPacketFlags = 2;
constexpr uint16_t kOptionTimeResolution = 9;
constexpr uint8_t kNanoseconds = 9;

// Block under construction: the destructor writes its length at both ends.
class Block {
 public:
  Block(uint32_t type, std::vector<uint8_t>& out) : out_(out), start_(out.size()) {
    Put(type);
    Put(uint32_t{0});
  }
  ~Block() {
    const auto length = static_cast<uint32_t>(out_.size() - start_ + sizeof(uint32_t));
    Put(length);
    std::memcpy(&out_[start_ + sizeof(uint32_t)], &length, sizeof length);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  template <typename T>
  void Put(const T& value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    out_.insert(out_.end(), bytes, bytes + sizeof value);
  }
  void PutBytes(std::span<const uint8_t> bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  void Align() { out_.resize(out_.size() + (4 - (out_.size() - start_) % 4) % 4); }
  void PutOption(uint16_t code, std::span<const uint8_t> value) {
    Put(code);
    Put(static_cast<uint16_t>(value.size()));
    PutBytes(value);
    Align();
  }

 private:
  std::vector<uint8_t>& out_;
  const size_t start_;
};

}  // namespace

void AppendPcapngSection(std::vector<uint8_t>& out) {
  Block block(kSectionHeaderBlock, out);
  block.Put(kByteOrderMagic);
  block.Put(uint16_t{1});  // version 1.0
  block.Put(uint16_t{0});
  block.Put(int64_t{-1});  // section length unknown
}

void AppendPcapngInterface(std::string_view name, size_t snap_length, std::vector<uint8_t>& out) {
  Block block(kInterfaceBlock, out);
  block.Put(kLinkTypeEthernet);
  block.Put(uint16_t{0});
  block.Put(static_cast<uint32_t>(snap_length));
  block.PutOption(kOptionInterfaceName,
                  {reinterpret_cast<const uint8_t*>(name.data()), name.size()});
  const uint8_t resolution[] = {kNanoseconds};
  block.PutOption(kOptionTimeResolution, resolution);
  block.PutOption(kOptionEnd, {});
}

void AppendPcapngPacket(const PcapngPacket& packet, std::vector<uint8_t>& out) {
  Block block(kEnhancedPacketBlock, out);
  const auto time = static_cast<uint64_t>(packet.time_ns);
  block.Put(packet.interface);
  block.Put(static_cast<uint32_t>(time >> 32));
  block.Put(static_cast<uint32_t>(time));
  block.Put(static_cast<uint32_t>(packet.headers.size() + packet.payload.size()));
  block.Put(static_cast<uint32_t>(packet.original_length));
  block.PutBytes(packet.headers);
  block.PutBytes(packet.payload);
  block.Align();
  const uint8_t flags[] = {static_cast<uint8_t>(packet.direction), 0, 0, 0};
  block.PutOption(kOptionPacketFlags, flags);
  block.PutOption(kOptionEnd, {});
}

size_t PcapngBlockLength(std::span<const uint8_t> blocks) {
  uint32_t length = 0;
  std::memcpy(&length, blocks.data() + sizeof(uint32_t), sizeof length);
  return length;
}

}  // namespace rocegw::port
