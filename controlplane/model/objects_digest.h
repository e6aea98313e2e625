// SPDX-License-Identifier: Apache-2.0
// Digest by which two ends check that they have the same objects, in any order: the sum, modulo
// 2^63, of FNV-1a (64 bits) of "NAME@REVISION" for each object; for a peer of
// "NAME@ADDRESS@ADDRESS", since a peer's revision also changes with its gateway's reports. Protects
// against mistakes, not against attackers. Value; any thread.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "rocegw/types/v1/push.pb.h"

namespace rocegw::model {

class ObjectsDigest {
 public:
  void Add(const types::v1::ConfigObject& object);
  void Add(std::string_view name, int64_t revision);
  void AddPeer(std::string_view name,
               const google::protobuf::RepeatedPtrField<std::string>& addresses);
  // Never 0, which means unknown.
  uint64_t value() const { return (sum_ & kMask) == 0 ? 1 : sum_ & kMask; }

 private:
  // Rules for message fields check numbers as signed ones.
  static constexpr uint64_t kMask = ~uint64_t{0} >> 1;
  uint64_t sum_ = 0;
};

}  // namespace rocegw::model
