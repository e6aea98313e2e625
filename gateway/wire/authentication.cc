// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/authentication.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "gateway/wire/byte_order.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::wire {
namespace {

constexpr size_t kGidLength = 16;
// Length of the prefix: kind of message and destination QPN.
constexpr size_t kPrefixLength = 4;
constexpr uint8_t kOfControl = 1;
constexpr uint8_t kOfMad = 2;

// Input of the tag: kind of message, destination QPN, source address, destination address, message.
template <size_t kMostBytes>
class Covered {
 public:
  Covered(uint8_t kind, Qpn to, const Gid& source, const Gid& destination,
          std::span<const uint8_t> message)
      : size_(kHead + std::min(message.size(), kMostBytes)) {
    StoreBe32(bytes_.data(), uint32_t{kind} << 24 | to.value);
    std::copy(source.bytes.begin(), source.bytes.end(), bytes_.begin() + kPrefixLength);
    std::copy(destination.bytes.begin(), destination.bytes.end(),
              bytes_.begin() + kPrefixLength + kGidLength);
    std::memcpy(bytes_.data() + kHead, message.data(), size_ - kHead);
  }
  void Clear(size_t at, size_t length) { std::memset(bytes_.data() + kHead + at, 0, length); }
  uint64_t Tag(const SecretKey& key) const { return SipHash(key, std::span(bytes_).first(size_)); }

 private:
  static constexpr size_t kHead = kPrefixLength + 2 * kGidLength;
  std::array<uint8_t, kHead + kMostBytes> bytes_;
  size_t size_;
};

using CoveredControl = Covered<kMaxControlLength>;
using CoveredMad = Covered<kMadLength>;

CoveredControl CoverControl(const Gid& source, const Gid& destination, Qpn to,
                            std::span<const uint8_t> body) {
  return {kOfControl, to, source, destination, body.first(body.size() - kTagLength)};
}

CoveredMad CoverMad(const Gid& source, const Gid& destination, std::span<const uint8_t> mad) {
  CoveredMad covered(kOfMad, kGsiQpn, source, destination, mad);
  covered.Clear(kMadTagHighAt, 4);
  covered.Clear(kMadTagLowAt, 4);
  return covered;
}

template <typename Message>
bool MadeByOne(std::span<const SecretKey> keys, const Message& covered, uint64_t tag) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const SecretKey& key) { return covered.Tag(key) == tag; });
}

}  // namespace

void SealControl(const SecretKey& key, const Gid& source, const Gid& destination, Qpn to,
                 std::span<uint8_t> body) {
  if (body.size() < kTagLength) return;
  StoreBe64(body.data() + body.size() - kTagLength,
            CoverControl(source, destination, to, body).Tag(key));
}

bool IsAuthentic(std::span<const SecretKey> keys, const Gid& source, const Gid& destination, Qpn to,
                 std::span<const uint8_t> body) {
  if (body.size() < kTagLength || body.size() > kMaxControlLength) return false;
  return MadeByOne(keys, CoverControl(source, destination, to, body),
                   LoadBe64(body.data() + body.size() - kTagLength));
}

void SealGatewayMad(const SecretKey& key, const Gid& source, const Gid& destination,
                    std::span<uint8_t, kMadLength> mad) {
  mad[kMadTaggedAt] = 1;
  const uint64_t tag = CoverMad(source, destination, mad).Tag(key);
  StoreBe32(mad.data() + kMadTagHighAt, static_cast<uint32_t>(tag >> 32));
  StoreBe32(mad.data() + kMadTagLowAt, static_cast<uint32_t>(tag));
}

bool IsAuthenticMad(std::span<const SecretKey> keys, const Gid& source, const Gid& destination,
                    std::span<const uint8_t> mad) {
  if (mad.size() != kMadLength) return false;
  const uint64_t tag =
      uint64_t{LoadBe32(mad.data() + kMadTagHighAt)} << 32 | LoadBe32(mad.data() + kMadTagLowAt);
  return MadeByOne(keys, CoverMad(source, destination, mad), tag);
}

}  // namespace rocegw::wire
