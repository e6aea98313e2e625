// SPDX-License-Identifier: Apache-2.0
#include "controlplane/model/field_mask.h"

#include <google/protobuf/util/field_mask_util.h>

namespace rocegw::model {
namespace {

using google::protobuf::FieldMask;
using google::protobuf::util::FieldMaskUtil;

bool IsClients(const std::string& path) {
  return path == "spec" || path.starts_with("spec.") || path == "meta.labels";
}

}  // namespace

std::vector<Violation> Merge(const google::protobuf::Message& from, const FieldMask& mask,
                             google::protobuf::Message& to) {
  FieldMask meant = mask;
  if (meant.paths().empty()) {
    meant.add_paths("spec");
    meant.add_paths("meta.labels");
  }
  std::vector<Violation> violations;
  for (int i = 0; i < meant.paths_size(); ++i) {
    const std::string& path = meant.paths(i);
    const std::string at = "update_mask.paths[" + std::to_string(i) + "]";
    if (!FieldMaskUtil::GetFieldDescriptors(to.GetDescriptor(), path, nullptr)) {
      violations.push_back({at, "'" + path + "' is no field"});
    } else if (!IsClients(path)) {
      violations.push_back(
          {at, "'" + path + "' is not the client's to write: spec and meta.labels are"});
    }
  }
  if (!violations.empty()) return violations;
  FieldMaskUtil::MergeOptions options;
  options.set_replace_message_fields(true);
  options.set_replace_repeated_fields(true);
  FieldMaskUtil::MergeMessageTo(from, meant, options, &to);
  return violations;
}

}  // namespace rocegw::model
