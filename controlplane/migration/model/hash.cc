// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/model/hash.h"

#include <openssl/evp.h>

namespace rocegw::migration {

std::string HashText(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  // Fails only without memory or without the algorithm; an empty hash then matches nothing.
  if (EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr) != 1) return {};
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hash = "sha256:";
  for (unsigned int i = 0; i < size; ++i) {
    hash += kDigits[digest[i] >> 4];
    hash += kDigits[digest[i] & 15];
  }
  return hash;
}

}  // namespace rocegw::migration
