// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/link/protocol.h"

#include <endian.h>

#include <algorithm>
#include <cstring>

namespace rocegw::far {
namespace {

constexpr uint32_t kMagic = 0x52474d31;  // "RGM1"
constexpr uint32_t kVersion = 1;
constexpr int kMostErrno = 4095;
constexpr uint32_t kDraining = 1;
constexpr uint32_t kContinued = 1;
// In the last byte of the tenant's field, which was the final zero of longer names.
constexpr uint8_t kEndsEarlier = 1;
constexpr uint8_t kBrief = 2;
// Sizes of earlier versions.
constexpr size_t kShortHello = 8 + kTenantBytes;
constexpr size_t kShortWelcome = 20;

// Writes or reads fields one behind the other; the caller's array has room for all of them.
class Writer {
 public:
  explicit Writer(uint8_t* at) : at_(at) {
    U32(kMagic);
    U32(kVersion);
  }
  void U32(uint32_t value) { Put(htobe32(value)); }
  void U64(uint64_t value) { Put(htobe64(value)); }
  uint8_t* at() const { return at_; }
  void Skip(size_t bytes) { at_ += bytes; }

 private:
  template <typename T>
  void Put(T value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }
  uint8_t* at_;
};

class Reader {
 public:
  explicit Reader(const void* data) : at_(static_cast<const uint8_t*>(data)) {}
  bool IsOurs() { return U32() == kMagic && U32() == kVersion; }
  uint32_t U32() { return be32toh(Get<uint32_t>()); }
  uint64_t U64() { return be64toh(Get<uint64_t>()); }
  const uint8_t* at() const { return at_; }
  void Skip(size_t bytes) { at_ += bytes; }

 private:
  template <typename T>
  T Get() {
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  const uint8_t* at_;
};

std::optional<int> ErrorOf(uint32_t value) {
  if (value > kMostErrno) return std::nullopt;
  return static_cast<int>(value);
}

}  // namespace

HelloBytes Encode(const Hello& hello) {
  HelloBytes bytes{};
  Writer writer(bytes.data());
  std::memcpy(writer.at(), hello.tenant.data(), std::min(hello.tenant.size(), kTenantBytes - 1));
  writer.at()[kTenantBytes - 1] =
      static_cast<uint8_t>((hello.ends_earlier ? kEndsEarlier : 0) | (hello.brief ? kBrief : 0));
  writer.Skip(kTenantBytes);
  writer.U64(hello.earlier.session);
  writer.U64(hello.earlier.secret);
  return bytes;
}

WelcomeBytes Encode(const Welcome& welcome) {
  WelcomeBytes bytes{};
  Writer writer(bytes.data());
  writer.U32(welcome.lease_seconds);
  writer.U64(welcome.free_bytes);
  writer.U64(welcome.proof.session);
  writer.U64(welcome.proof.secret);
  writer.U32(welcome.continued ? kContinued : 0);
  return bytes;
}

RefusalBytes Encode(const Refusal& refusal) {
  RefusalBytes bytes{};
  Writer writer(bytes.data());
  writer.U32(static_cast<uint32_t>(refusal.error));
  return bytes;
}

MessageBytes Encode(const Message& message) {
  MessageBytes bytes{};
  Writer writer(bytes.data());
  writer.U32(static_cast<uint32_t>(message.type));
  writer.U32(static_cast<uint32_t>(message.error));
  writer.U64(message.id);
  writer.U64(message.bytes);
  writer.U64(message.lease);
  writer.U64(message.address);
  writer.U64(message.free_bytes);
  writer.U32(message.key);
  writer.U32(message.draining ? kDraining : 0);
  return bytes;
}

std::optional<Hello> DecodeHello(const void* data, size_t size) {
  Reader reader(data);
  if (size < kShortHello || !reader.IsOurs()) return std::nullopt;
  const auto* name = reinterpret_cast<const char*>(reader.at());
  Hello hello;
  hello.tenant.assign(name, strnlen(name, kTenantBytes - 1));
  // The name becomes a metric's label and a line of a log.
  const bool printable = std::all_of(hello.tenant.begin(), hello.tenant.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
  if (!printable) return std::nullopt;
  // Connection managers pad an earlier version's with zeroes, which are no proof.
  if (size < sizeof(HelloBytes)) return hello;
  const uint8_t flags = reader.at()[kTenantBytes - 1];
  hello.ends_earlier = (flags & kEndsEarlier) != 0;
  hello.brief = (flags & kBrief) != 0;
  reader.Skip(kTenantBytes);
  hello.earlier.session = reader.U64();
  hello.earlier.secret = reader.U64();
  return hello;
}

std::optional<Welcome> DecodeWelcome(const void* data, size_t size) {
  Reader reader(data);
  if (size < kShortWelcome || !reader.IsOurs()) return std::nullopt;
  Welcome welcome;
  welcome.lease_seconds = reader.U32();
  welcome.free_bytes = reader.U64();
  if (welcome.lease_seconds == 0) return std::nullopt;
  if (size < sizeof(WelcomeBytes)) return welcome;
  welcome.proof.session = reader.U64();
  welcome.proof.secret = reader.U64();
  welcome.continued = (reader.U32() & kContinued) != 0;
  return welcome;
}

std::optional<Refusal> DecodeRefusal(const void* data, size_t size) {
  Reader reader(data);
  if (size < sizeof(RefusalBytes) || !reader.IsOurs()) return std::nullopt;
  const auto error = ErrorOf(reader.U32());
  if (!error || *error == 0) return std::nullopt;
  return Refusal{*error};
}

std::optional<Message> DecodeMessage(const void* data, size_t size) {
  Reader reader(data);
  if (size < sizeof(MessageBytes) || !reader.IsOurs()) return std::nullopt;
  const uint32_t type = reader.U32();
  const auto error = ErrorOf(reader.U32());
  if (type < static_cast<uint32_t>(MessageType::kLease) ||
      type > static_cast<uint32_t>(MessageType::kClose) || !error) {
    return std::nullopt;
  }
  Message message;
  message.type = static_cast<MessageType>(type);
  message.error = *error;
  message.id = reader.U64();
  message.bytes = reader.U64();
  message.lease = reader.U64();
  message.address = reader.U64();
  message.free_bytes = reader.U64();
  message.key = reader.U32();
  // Donors of earlier versions send zero.
  message.draining = (reader.U32() & kDraining) != 0;
  return message;
}

}  // namespace rocegw::far
