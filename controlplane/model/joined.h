// SPDX-License-Identifier: Apache-2.0
// Object from the values of its two keys in the store (model/stored.h); views and answers of the
// API use these functions only. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "controlplane/model/stored.h"

namespace rocegw::model {

template <typename Object>
constexpr bool kHasStatus = requires(const Object& object) {
  object.status();
};

// Reads the intent, with name and etag. Returns false if the value is not such a message.
template <typename Object>
bool ReadIntent(const std::string& value, const std::string& name, int64_t revision, Object& out) {
  const bool readable = out.ParseFromString(value);
  if (!readable) out.Clear();
  if constexpr (kHasStatus<Object>) out.clear_status();
  out.set_name(name);
  out.mutable_meta()->set_etag(EtagOf(revision));
  return readable;
}

// Reads the status; clears it if the value has none.
template <typename Object>
void ReadStatus(const std::string& value, Object& out) {
  if constexpr (kHasStatus<Object>) {
    Object stored;
    out.clear_status();
    if (stored.ParseFromString(value) && stored.has_status())
      out.mutable_status()->Swap(stored.mutable_status());
  }
}

}  // namespace rocegw::model
