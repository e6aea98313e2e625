// SPDX-License-Identifier: Apache-2.0
#include "controlplane/model/push_parts.h"

#include <utility>

namespace rocegw::model {

std::vector<types::v1::Push> InParts(types::v1::Push whole, size_t part_bytes) {
  google::protobuf::RepeatedPtrField<types::v1::ConfigObject> objects;
  objects.Swap(whole.mutable_objects());
  std::vector<types::v1::Push> parts = {whole};
  size_t bytes = 0;
  for (types::v1::ConfigObject& object : objects) {
    const size_t size = object.ByteSizeLong();
    if (bytes != 0 && bytes + size > part_bytes) {
      parts.push_back(whole);
      bytes = 0;
    }
    bytes += size;
    parts.back().add_objects()->Swap(&object);
  }
  for (size_t i = 0; i < parts.size(); ++i) parts[i].set_more(i + 1 < parts.size());
  return parts;
}

}  // namespace rocegw::model
