// SPDX-License-Identifier: Apache-2.0
#include "controlplane/model/objects_digest.h"

#include <string>

namespace rocegw::model {

void ObjectsDigest::Add(std::string_view name, int64_t revision) {
  // FNV-1a.
  uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) {
      hash ^= static_cast<unsigned char>(c);
      hash *= 0x100000001B3;
    }
  };
  add(name);
  add("@");
  add(std::to_string(revision));
  sum_ += hash;
}

}  // namespace rocegw::model
