// SPDX-License-Identifier: Apache-2.0
#include "gateway/cipher/openssl_ciphers.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <cstring>

#include "gateway/base/freed_by.h"
#include "gateway/wire/byte_order.h"

namespace rocegw::cipher {
namespace {

constexpr size_t kKeyLength = 16;
constexpr size_t kPrefixLength = 4;  // nonce: prefix, then the sequence number
constexpr size_t kNonceLength = kPrefixLength + 8;

using Nonce = std::array<uint8_t, kNonceLength>;

using Context = std::unique_ptr<EVP_CIPHER_CTX, FreedBy<EVP_CIPHER_CTX_free>>;

class GcmKey final : public FrameKey {
 public:
  // Takes a context that has the key.
  GcmKey(Context context, const uint8_t* prefix) : context_(std::move(context)) {
    std::memcpy(prefix_.data(), prefix, prefix_.size());
  }

  bool Seal(uint64_t sequence, std::span<const uint8_t> header, std::span<uint8_t> content,
            bool encrypt, std::span<uint8_t, kTagLength> tag) override {
    const std::span<const uint8_t> clear = encrypt ? std::span<const uint8_t>{} : content;
    int length = 0;
    return Begin(sequence, 1, header, clear) &&
           (!encrypt || EVP_EncryptUpdate(context_.get(), content.data(), &length, content.data(),
                                          static_cast<int>(content.size())) == 1) &&
           EVP_EncryptFinal_ex(context_.get(), end_, &length) == 1 &&
           EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTagLength, tag.data()) == 1;
  }

  bool Open(uint64_t sequence, std::span<const uint8_t> header, std::span<const uint8_t> content,
            std::span<const uint8_t, kTagLength> tag, uint8_t* plain) override {
    const std::span<const uint8_t> clear = plain != nullptr ? std::span<const uint8_t>{} : content;
    int length = 0;
    return Begin(sequence, 0, header, clear) &&
           (plain == nullptr || EVP_DecryptUpdate(context_.get(), plain, &length, content.data(),
                                                  static_cast<int>(content.size())) == 1) &&
           EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kTagLength,
                               const_cast<uint8_t*>(tag.data())) == 1 &&
           EVP_DecryptFinal_ex(context_.get(), end_, &length) == 1;
  }

 private:
  // Sets the nonce and takes what is not encrypted.
  bool Begin(uint64_t sequence, int encrypts, std::span<const uint8_t> header,
             std::span<const uint8_t> clear) {
    Nonce nonce;
    std::memcpy(nonce.data(), prefix_.data(), kPrefixLength);
    wire::StoreBe64(nonce.data() + kPrefixLength, sequence);
    EVP_CIPHER_CTX* const context = context_.get();
    int length = 0;
    return EVP_CipherInit_ex2(context, nullptr, nullptr, nonce.data(), encrypts, nullptr) == 1 &&
           EVP_CipherUpdate(context, nullptr, &length, header.data(),
                            static_cast<int>(header.size())) == 1 &&
           (clear.empty() || EVP_CipherUpdate(context, nullptr, &length, clear.data(),
                                              static_cast<int>(clear.size())) == 1);
  }

  Context context_;
  std::array<uint8_t, kPrefixLength> prefix_;
  uint8_t end_[16];  // the last call writes nothing, but wants a place
};

// HKDF-Extract and HKDF-Expand.
bool Expand(const SecretKey& fleet_key, std::span<const uint8_t> salt,
            std::span<const uint8_t> info, std::span<uint8_t> out) {
  const std::unique_ptr<EVP_KDF, FreedBy<EVP_KDF_free>> kdf(
      EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  if (kdf == nullptr) return false;
  const std::unique_ptr<EVP_KDF_CTX, FreedBy<EVP_KDF_CTX_free>> context(EVP_KDF_CTX_new(kdf.get()));
  if (context == nullptr) return false;
  std::array<uint8_t, 16> secret;
  wire::StoreBe64(secret.data(), fleet_key[0]);
  wire::StoreBe64(secret.data() + 8, fleet_key[1]);
  char digest[] = "SHA256";
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, const_cast<uint8_t*>(salt.data()),
                                        salt.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, const_cast<uint8_t*>(info.data()),
                                        info.size()),
      OSSL_PARAM_construct_end()};
  const bool done = EVP_KDF_derive(context.get(), out.data(), out.size(), parameters) == 1;
  OPENSSL_cleanse(secret.data(), secret.size());
  return done;
}

}  // namespace

std::unique_ptr<FrameKey> OpensslCiphers::Derive(const SecretKey& fleet_key,
                                                 std::span<const uint8_t> salt,
                                                 std::span<const uint8_t> info) const {
  std::array<uint8_t, kKeyLength + kPrefixLength> material;
  if (!Expand(fleet_key, salt, info, material)) return nullptr;
  Context context(EVP_CIPHER_CTX_new());
  // GCM's default nonce has 12 bytes. The direction is set for each datagram.
  const bool made =
      context != nullptr && EVP_CipherInit_ex2(context.get(), EVP_aes_128_gcm(), material.data(),
                                               nullptr, 1, nullptr) == 1;
  std::unique_ptr<FrameKey> key;
  if (made) key = std::make_unique<GcmKey>(std::move(context), material.data() + kKeyLength);
  OPENSSL_cleanse(material.data(), material.size());
  return key;
}

}  // namespace rocegw::cipher
