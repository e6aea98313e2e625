// SPDX-License-Identifier: Apache-2.0
// Section `static` of the gateway's configuration file as configuration objects: the messages of a
// push, written with their field names. Pure functions, any thread.
#pragma once

#include <string>
#include <vector>

#include "rocegw/types/v1/push.pb.h"

namespace rocegw::apply {

// Entry of the section, as JSON.
struct StaticEntry {
  std::string kind;  // "tenants", "pools", "cc_policies", "gateway"
  std::string json;
  int line = 0;
};

struct StaticResult {
  std::vector<types::v1::ConfigObject> objects;
  std::vector<std::string> problems;  // "LINE: text"
};

// `gateway` ("gateways/G"): name of the object of entry "gateway".
StaticResult ReadStatic(const std::vector<StaticEntry>& entries, const std::string& gateway);

}  // namespace rocegw::apply
