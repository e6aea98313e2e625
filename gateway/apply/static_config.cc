// SPDX-License-Identifier: Apache-2.0
#include "gateway/apply/static_config.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <set>

#include "gateway/apply/settings_reader.h"

namespace rocegw::apply {
namespace {

using types::v1::ConfigObject;

google::protobuf::Message* ValueOf(ConfigObject& object, const std::string& kind) {
  if (kind == "gateway") return object.mutable_gateway();
  if (kind == "cc_policies") return object.mutable_cc_policy();
  if (kind == "tenants") return object.mutable_tenant();
  if (kind == "pools") return object.mutable_pool();
  return nullptr;
}

std::string NameOf(const ConfigObject& object) {
  if (object.has_cc_policy()) return object.cc_policy().name();
  if (object.has_tenant()) return object.tenant().name();
  return object.pool().name();
}

}  // namespace

StaticResult ReadStatic(const std::vector<StaticEntry>& entries, const std::string& gateway) {
  StaticResult result;
  std::set<std::string> names;
  for (const StaticEntry& entry : entries) {
    const auto problem = [&](const std::string& text) {
      result.problems.push_back(std::to_string(entry.line) + ": static." + entry.kind + ": " +
                                text);
    };
    ConfigObject object;
    google::protobuf::Message* const value = ValueOf(object, entry.kind);
    if (value == nullptr) {
      problem("no such kind of object; known are gateway, tenants, pools, cc_policies");
      continue;
    }
    const auto read = google::protobuf::util::JsonStringToMessage(entry.json, value);
    if (!read.ok()) {
      problem(std::string(read.message()));
      continue;
    }
    if (object.has_gateway()) object.mutable_gateway()->set_name(gateway);
    object.set_name(object.has_gateway() ? gateway : NameOf(object));
    if (const auto wrong = CheckObject(object)) {
      problem((object.name().empty() ? "" : object.name() + ": ") + wrong->text);
    } else if (!names.insert(object.name()).second) {
      problem(object.name() + " is there twice");
    } else {
      result.objects.push_back(std::move(object));
    }
  }
  return result;
}

}  // namespace rocegw::apply
