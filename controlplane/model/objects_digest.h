// SPDX-License-Identifier: Apache-2.0
// A number that tells whether two ends know the same objects at the same revisions, whatever their
// order: see Hello.objects_digest. Against mistakes, not against people. Value; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace rocegw::model {

class ObjectsDigest {
 public:
  void Add(std::string_view name, int64_t revision);
  // Never 0, which says that nothing is known.
  uint64_t value() const { return (sum_ & kMask) == 0 ? 1 : sum_ & kMask; }

 private:
  // Numbers of messages are checked as if they were signed.
  static constexpr uint64_t kMask = ~uint64_t{0} >> 1;
  uint64_t sum_ = 0;
};

}  // namespace rocegw::model
