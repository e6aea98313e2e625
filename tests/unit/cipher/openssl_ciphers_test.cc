// SPDX-License-Identifier: Apache-2.0
// Keys of channel frames by OpenSSL: the bytes of an independent implementation, and that nothing
// opens which was not sealed.
#include "gateway/cipher/openssl_ciphers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace rocegw::cipher {
namespace {

using Octets = std::vector<uint8_t>;
using Tag = std::array<uint8_t, FrameKey::kTagLength>;

constexpr SecretKey kFleet = {0x0001020304050607, 0x08090a0b0c0d0e0f};
constexpr uint64_t kSequence = 0x0102030405060708;

Octets Counting(size_t count, uint8_t from = 0, uint8_t step = 1) {
  Octets bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(from + i * step);
  return bytes;
}

const Octets kSalt = Counting(32, 0x20);
const Octets kHeader = Counting(64);
const Octets kContent = Counting(100, 0, 7);

Octets Info() {
  const char purpose[] = "rocegw channel 1";
  Octets info(purpose, purpose + sizeof purpose - 1);
  const Octets rest = Counting(48);
  info.insert(info.end(), rest.begin(), rest.end());
  return info;
}

std::unique_ptr<FrameKey> Key(const SecretKey& fleet = kFleet, const Octets& salt = kSalt,
                              const Octets& info = Info()) {
  return OpensslCiphers().Derive(fleet, salt, info);
}

struct Sealed {
  Octets content = kContent;
  Tag tag{};
  explicit Sealed(bool encrypt, uint64_t sequence = kSequence) {
    EXPECT_TRUE(Key()->Seal(sequence, kHeader, content, encrypt, tag));
  }
};

bool Opens(FrameKey& key, const Sealed& sealed, bool encrypted, uint64_t sequence = kSequence,
           const Octets& header = kHeader) {
  Octets plain(sealed.content.size());
  return key.Open(sequence, header, sealed.content, sealed.tag,
                  encrypted ? plain.data() : nullptr) &&
         (encrypted ? plain : sealed.content) == kContent;
}

// From Python: HKDF by hmac and hashlib, AES-GCM by `cryptography` 48.
TEST(OpensslCiphers, Authenticated_IsTheTagOfAnotherImplementation) {
  const Sealed sealed(false);
  const Tag expected = {0x6f, 0x6d, 0x3d, 0x46, 0x01, 0xa8, 0xc0, 0xfe,
                        0x35, 0x6b, 0x08, 0xaa, 0x8c, 0x22, 0xf8, 0x7b};
  EXPECT_EQ(sealed.tag, expected);
  EXPECT_EQ(sealed.content, kContent);
}

TEST(OpensslCiphers, Encrypted_IsTheTextOfAnotherImplementation) {
  const Sealed sealed(true);
  const Octets begin = {0x92, 0xde, 0x93, 0x28, 0x00, 0x37, 0x6d, 0x45,
                        0x4c, 0xcd, 0x0e, 0x4e, 0x8f, 0x27, 0x96, 0xaf};
  const Tag expected = {0xed, 0x9d, 0x15, 0x3a, 0x69, 0x3e, 0x95, 0xe4,
                        0x2b, 0x9b, 0x4e, 0x5c, 0x3a, 0xf4, 0xcc, 0x59};
  EXPECT_TRUE(std::equal(begin.begin(), begin.end(), sealed.content.begin()));
  EXPECT_EQ(sealed.tag, expected);
}

TEST(OpensslCiphers, WhatIsSealed_Opens) {
  for (const bool encrypt : {false, true}) {
    const std::unique_ptr<FrameKey> key = Key();
    // The same key opens many, in any order, and what did not fit in between does no harm.
    for (const uint64_t sequence : {uint64_t{9}, uint64_t{1}, UINT64_MAX}) {
      EXPECT_TRUE(Opens(*key, Sealed(encrypt, sequence), encrypt, sequence));
      EXPECT_FALSE(Opens(*key, Sealed(encrypt, sequence), encrypt, sequence - 1));
    }
  }
}

TEST(OpensslCiphers, AnyBitChanged_DoesNotOpen) {
  for (const bool encrypt : {false, true}) {
    const std::unique_ptr<FrameKey> key = Key();
    const Sealed sealed(encrypt);
    const auto closed = [&](const Sealed& other, const Octets& header) {
      EXPECT_FALSE(Opens(*key, other, encrypt, kSequence, header));
    };
    for (size_t bit = 0; bit < 8 * kContent.size(); ++bit) {
      Sealed other = sealed;
      other.content[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      closed(other, kHeader);
    }
    for (size_t bit = 0; bit < 8 * kHeader.size(); ++bit) {
      Octets header = kHeader;
      header[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      closed(sealed, header);
    }
    for (size_t bit = 0; bit < 8 * FrameKey::kTagLength; ++bit) {
      Sealed other = sealed;
      other.tag[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      closed(other, kHeader);
    }
  }
}

TEST(OpensslCiphers, OtherKeySaltOrInfo_DoesNotOpen) {
  const Sealed sealed(true);
  Octets info = Info();
  info.back() ^= 1;
  EXPECT_FALSE(Opens(*Key({1, 2}), sealed, true));
  EXPECT_FALSE(Opens(*Key(kFleet, Counting(32, 0x21)), sealed, true));
  EXPECT_FALSE(Opens(*Key(kFleet, kSalt, info), sealed, true));
  EXPECT_TRUE(Opens(*Key(), sealed, true));
}

TEST(OpensslCiphers, EncryptedIsNotTakenForAuthenticated) {
  EXPECT_FALSE(Opens(*Key(), Sealed(true), false));
  EXPECT_FALSE(Opens(*Key(), Sealed(false), true));
}

}  // namespace
}  // namespace rocegw::cipher
