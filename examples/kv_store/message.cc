// SPDX-License-Identifier: Apache-2.0
#include "examples/kv_store/message.h"

#include <array>
#include <bit>
#include <cstring>

namespace kv {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kMagic = 0x3153564b;  // "KVS1"

struct Header {
  uint32_t magic;
  uint8_t op;
  uint8_t outcome;
  uint8_t moved;
  uint8_t zero;
  uint32_t key_bytes;
  uint32_t value_bytes;
  uint64_t version;
};
static_assert(sizeof(Header) == kHeaderBytes);

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = (value & 1) != 0 ? value >> 1 ^ 0x82f63b78 : value >> 1;
    table[i] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

}  // namespace

uint32_t Checksum(std::span<const std::byte> bytes) {
  uint32_t sum = ~0U;
  for (const std::byte byte : bytes)
    sum = sum >> 8 ^ kTable[(sum ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~sum;
}

uint32_t Checksum(const std::string& text) { return Checksum(std::as_bytes(std::span(text))); }

std::string Encode(const Message& message) {
  const Header header = {kMagic,
                         static_cast<uint8_t>(message.op),
                         static_cast<uint8_t>(message.outcome),
                         message.moved ? uint8_t{1} : uint8_t{0},
                         0,
                         static_cast<uint32_t>(message.key.size()),
                         static_cast<uint32_t>(message.value.size()),
                         message.version};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes += message.key;
  bytes += message.value;
  const uint32_t sum = Checksum(bytes);
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  return bytes;
}

std::optional<Message> Decode(const std::string& bytes) {
  if (bytes.size() < kHeaderBytes + kChecksumBytes || bytes.size() > kLongestMessage)
    return std::nullopt;
  Header header{};
  std::memcpy(&header, bytes.data(), sizeof(header));
  const size_t body = bytes.size() - kHeaderBytes - kChecksumBytes;
  if (header.magic != kMagic || header.zero != 0 || header.moved > 1 ||
      header.key_bytes > kLongestKey || header.value_bytes > kLongestValue ||
      body != size_t{header.key_bytes} + header.value_bytes)
    return std::nullopt;
  if (header.op < static_cast<uint8_t>(Op::kHello) ||
      header.op > static_cast<uint8_t>(Op::kWrite) ||
      header.outcome > static_cast<uint8_t>(Outcome::kRefused))
    return std::nullopt;
  uint32_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - kChecksumBytes, sizeof(sum));
  if (sum != Checksum(std::as_bytes(std::span(bytes).first(bytes.size() - kChecksumBytes))))
    return std::nullopt;
  return Message{.op = static_cast<Op>(header.op),
                 .outcome = static_cast<Outcome>(header.outcome),
                 .moved = header.moved == 1,
                 .version = header.version,
                 .key = bytes.substr(kHeaderBytes, header.key_bytes),
                 .value = bytes.substr(kHeaderBytes + header.key_bytes, header.value_bytes)};
}

}  // namespace kv
