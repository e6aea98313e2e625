// SPDX-License-Identifier: Apache-2.0
// Pushes as a controller sends them, for tests. Values.
#pragma once

#include <string>
#include <vector>

#include "rocegw/types/v1/push.pb.h"

namespace rocegw::testing {

inline types::v1::ConfigObject TenantObject(const std::string& id, int64_t revision) {
  types::v1::ConfigObject object;
  object.set_name("tenants/" + id);
  object.set_revision(revision);
  object.mutable_tenant()->set_name(object.name());
  return object;
}

inline types::v1::ConfigObject Removal(const std::string& name) {
  types::v1::ConfigObject object;
  object.set_name(name);
  object.set_removed(true);
  return object;
}

inline types::v1::Push FullPush(const std::string& store, int64_t revision,
                                const std::vector<types::v1::ConfigObject>& objects) {
  types::v1::Push push;
  push.set_nonce("n" + std::to_string(revision));
  push.set_store_uuid(store);
  push.set_revision(revision);
  push.set_full(true);
  for (const auto& object : objects) *push.add_objects() = object;
  return push;
}

inline types::v1::Push Delta(const std::string& store, int64_t base, int64_t revision,
                             const std::vector<types::v1::ConfigObject>& objects) {
  types::v1::Push push = FullPush(store, revision, objects);
  push.set_full(false);
  push.set_base_revision(base);
  return push;
}

}  // namespace rocegw::testing
