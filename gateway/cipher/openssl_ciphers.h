// SPDX-License-Identifier: Apache-2.0
// Keys of channel frames by OpenSSL 3: AES-128-GCM, keys and nonce prefixes by HKDF with SHA-256.
// Thread-safe; the keys that it makes belong to one thread each.
#pragma once

#include "gateway/base/frame_cipher.h"

namespace rocegw::cipher {

class OpensslCiphers final : public FrameCiphers {
 public:
  std::unique_ptr<FrameKey> Derive(const SecretKey& fleet_key, std::span<const uint8_t> salt,
                                   std::span<const uint8_t> info) const override;
};

}  // namespace rocegw::cipher
