// SPDX-License-Identifier: Apache-2.0
// Cryptography for the frames of a channel, as the protocol core sees it: authenticated encryption
// with associated data (AES-GCM), or the tag alone (AES-GMAC). The core depends on libc only, so
// the daemon gives it an implementation (gateway/cipher).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "gateway/base/secret_sequence.h"

namespace rocegw {

// Key of one direction of one channel. Each sequence number must be sealed at most once, because
// the nonce is made from it: AES-GCM under a repeated nonce gives away the key of its tags. Belongs
// to one worker.
class FrameKey {
 public:
  static constexpr size_t kTagLength = 16;

  virtual ~FrameKey() = default;
  // Writes the tag over `header` and `content`, and encrypts `content` in place if `encrypt`.
  // `header` is never encrypted. Returns false if the library fails; the datagram must not leave
  // then.
  virtual bool Seal(uint64_t sequence, std::span<const uint8_t> header, std::span<uint8_t> content,
                    bool encrypt, std::span<uint8_t, kTagLength> tag) = 0;
  // Returns true if `tag` fits. `plain`: space for the decrypted content, which is undefined if the
  // tag does not fit; nullptr: the content is not encrypted.
  virtual bool Open(uint64_t sequence, std::span<const uint8_t> header,
                    std::span<const uint8_t> content, std::span<const uint8_t, kTagLength> tag,
                    uint8_t* plain) = 0;
};

// Makes keys. All workers of a gateway share one; Derive may be called by any thread.
class FrameCiphers {
 public:
  // Derives the key of a direction of a channel by HKDF (RFC 5869). `salt` and `info` name the
  // direction and are no secret. Returns nullptr if the library fails.
  virtual std::unique_ptr<FrameKey> Derive(const SecretKey& fleet_key,
                                           std::span<const uint8_t> salt,
                                           std::span<const uint8_t> info) const = 0;

 protected:
  ~FrameCiphers() = default;
};

}  // namespace rocegw
