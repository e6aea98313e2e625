// SPDX-License-Identifier: Apache-2.0
#include "controlplane/model/objects_digest.h"

namespace rocegw::model {
namespace {

class Fnv1a {
 public:
  void Add(std::string_view text) {
    for (const char c : text) {
      hash_ ^= static_cast<unsigned char>(c);
      hash_ *= 0x100000001B3;
    }
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xCBF29CE484222325;
};

}  // namespace

void ObjectsDigest::Add(const types::v1::ConfigObject& object) {
  if (object.has_peer()) return AddPeer(object.name(), object.peer().addresses());
  Add(object.name(), object.revision());
}

void ObjectsDigest::Add(std::string_view name, int64_t revision) {
  Fnv1a hash;
  hash.Add(name);
  hash.Add("@");
  hash.Add(std::to_string(revision));
  sum_ += hash.value();
}

void ObjectsDigest::AddPeer(std::string_view name,
                            const google::protobuf::RepeatedPtrField<std::string>& addresses) {
  Fnv1a hash;
  hash.Add(name);
  for (const std::string& address : addresses) {
    hash.Add("@");
    hash.Add(address);
  }
  sum_ += hash.value();
}

}  // namespace rocegw::model
